// split_roles: one body a role; without roles, the copies of a pipe run ahead of the work.
//
//   before   serial k.block in T { @producer acquire p; @producer copy …; @producer commit p; @consumer wait p; @consumer mma …; @consumer release p }
//   after    @consumer serial k.block in T { wait p; mma …; release p }
//            @producer serial k.block in T { acquire p; copy …; commit p }
//
// Unlabelled loops and values are repeated in each role that needs them; shared buffers and pipes stay in front, register
// buffers go to the roles that use them. From here on the roles are processes that meet in pipes only. (Without roles: see
// run_ahead.cpp.)
#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/finish/passes.h"
#include "passes/finish/run_ahead.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

bool mentions(const Block& body, const std::string& name) {
  bool found = mentions_var(body, name) || mentions_buffer(body, name);
  walk(body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) found |= store->target.buffer == name;
    if (const Fill* fill = as<Fill>(stmt)) found |= fill->buffer == name;
    if (const Copy* copy = as<Copy>(stmt)) found |= copy->target.buffer == name || copy->source.buffer == name;
    if (const Mma* mma = as<Mma>(stmt)) found |= mma->target.buffer == name || mma->a.buffer == name || mma->b.buffer == name;
    if (const Fold* fold = as<Fold>(stmt)) found |= fold->target.buffer == name || fold->source.buffer == name || fold->total == name;
    return !found;
  });
  return found;
}

bool is_declaration(const Stmt& stmt) { return as<Buffer>(stmt) || as<Let>(stmt); }

// Without the names that nothing behind them uses; empty where only declarations are left.
Block needed(Block body) {
  Block result;
  for (std::size_t n = body.size(); n-- > 0;) {
    const Buffer* buffer = as<Buffer>(body[n]);
    const Let* let = as<Let>(body[n]);
    if ((buffer && !mentions(result, buffer->name)) || (let && !mentions(result, let->name))) continue;
    result.insert(result.begin(), body[n]);
  }
  return result;
}

// What one role does of a body.
Block part_of(const Block& body, const std::string& role) {
  Block result;
  for (const Stmt& stmt : body) {
    if (const Labelled* labelled = as<Labelled>(stmt)) {
      if (labelled->role == role) result.push_back(labelled->statement);
    } else if (const Loop* loop = as<Loop>(stmt)) {
      Loop node = *loop;
      node.body = part_of(loop->body, role);
      if (!node.body.empty()) result.push_back(make_stmt(std::move(node), stmt->span));
    } else if (const If* branch = as<If>(stmt)) {
      If node{branch->condition, part_of(branch->then_body, role), part_of(branch->else_body, role)};
      if (!node.then_body.empty() || !node.else_body.empty()) result.push_back(make_stmt(std::move(node), stmt->span));
    } else if (is_declaration(stmt)) {
      result.push_back(stmt);
    } else {
      throw UserError(stmt->span, "a statement of a kernel with roles belongs to none of them", "label it with the role that does it");
    }
  }
  return needed(std::move(result));
}

Block separated(const Block& body, const std::vector<Role>& roles) {
  Block result;
  Block work;
  for (const Stmt& stmt : body) {
    const Buffer* buffer = as<Buffer>(stmt);
    bool is_common = as<Pipe>(stmt) || as<Let>(stmt) || (buffer && buffer->space == Space::Shared);
    (is_common ? result : work).push_back(stmt);
  }
  for (const Role& role : roles)
    for (Stmt& stmt : part_of(work, role.name)) result.push_back(make_stmt(Labelled{role.name, stmt}, stmt->span));
  return result;
}

}  // namespace

Plan split_roles(const Plan& plan, const Target&) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.stage == Stage::Thread) return kernel;
    std::vector<Role> roles;
    for (const Stmt& stmt : kernel.body)
      if (const Role* role = as<Role>(stmt)) roles.push_back(*role);
    Kernel result = kernel;
    result.body = roles.empty() ? run_ahead(kernel.body) : map_block_body(kernel.body, [&](const Block& body) { return separated(body, roles); });
    return result;
  });
}

}  // namespace tilewright
