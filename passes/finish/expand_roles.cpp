// Roles: a branch on the warp, one body each.
//
//   before   @consumer serial …; @producer serial k.block in T { acquire p; copy …; commit p }       warps 0 .. 8 and 8 .. 12
//   after    if wg == 2 { setmaxnreg.dec(40); if warp == 8 and elect() { … } } else { setmaxnreg.inc(232); … }
//
// A role whose work is all the copy engine's is done by one thread. Needs: split_roles before it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/diagnostic.h"
#include "passes/finish/expander.h"

namespace tilewright {

namespace {

constexpr std::int64_t registers_of_an_sm = 65536;

const Role* find_role(const Block& kernel_body, const std::string& name) {
  for (const Stmt& stmt : kernel_body)
    if (const Role* role = as<Role>(stmt); role && role->name == name) return role;
  return nullptr;
}

bool is_aligned(const Role& role) { return role.first_warp % 4 == 0 && role.last_warp % 4 == 0; }

}  // namespace

BlockShape Expander::role_shape(const std::string& name) const {
  const Role* role = find_role(kernel_.body, name);
  if (!role) internal_error(fmt::format("role `{}` is not declared", name));
  return BlockShape{(role->last_warp - role->first_warp) * 32, 1, 1, role->first_warp * 32};
}

// Whether only the copy engine works in a body.
bool Expander::is_for_one_thread(const Block& body) const {
  bool result = true;
  walk(body, [&](const Stmt& stmt) {
    const Verb* verb = as<Verb>(stmt);
    const Copy* copy = as<Copy>(stmt);
    const Loop* loop = as<Loop>(stmt);
    bool is_engine = false;
    for (const PipeState& state : pipes_) {
      if (state.pipe.mechanism != "tma") continue;
      is_engine |= verb && verb->pipe == state.pipe.name && (verb->kind == VerbKind::Acquire || verb->kind == VerbKind::Commit);
      for (const std::string& buffer : state.pipe.buffers) is_engine |= copy && copy->target.buffer == buffer;
    }
    result &= is_engine || as<Let>(stmt) || as<If>(stmt) || (loop && loop->kind != LoopKind::Each);
    return result;
  });
  return result;
}

// Warps of the role, by whole warpgroups where it begins and ends with one. `is_highest`: those of higher warps are gone.
Expr Expander::is_in_role(const Role& role, bool is_highest) {
  int unit = is_aligned(role) ? 4 : 1;
  Expr index = unit == 4 ? warpgroup_of_block() : call("uniform", {var("warp")}, Dtype::Index);
  int first = role.first_warp / unit;
  int last = role.last_warp / unit;
  if (last - first == 1) return binary(BinaryOp::Eq, index, integer(first));
  Expr behind_first = first > 0 ? binary(BinaryOp::Le, integer(first), index) : Expr{};
  Expr before_last = is_highest ? Expr{} : less(index, integer(last));
  return behind_first || before_last ? both(behind_first, before_last) : boolean(true);
}

Block Expander::role_body(const Role& role, const Block& body) {
  Span span = body[0]->span;
  Block out;
  if (role.registers) {
    if (!is_aligned(role))
      throw UserError(span, fmt::format("role `{}` sets its registers and is made of warps {} .. {}, not of whole warpgroups", role.name, role.first_warp, role.last_warp));
    std::int64_t at_entry = registers_of_an_sm / whole_.total() / 8 * 8;
    bool takes = role.registers > at_entry;
    if (role.registers != at_entry) out.push_back(make_stmt(Instr{takes ? "setmaxnreg.inc" : "setmaxnreg.dec", {integer(role.registers)}}, span));
    sets_registers_ = true;
  }
  BlockShape outer = std::exchange(context_.block, role_shape(role.name));
  is_single_thread_ = is_for_one_thread(body);
  Block work;
  declare_cursors(body, work);
  block_level(body, work);
  finish_pipes(body, work);
  if (is_single_thread_) {
    Expr one = both(binary(BinaryOp::Eq, var("warp"), integer(role.first_warp)), call("elect", {}, Dtype::Bool));
    work = {make_stmt(If{one, std::move(work), {}}, span)};
  }
  is_single_thread_ = false;
  context_.block = outer;
  out.insert(out.end(), work.begin(), work.end());
  return out;
}

// All labelled statements of a block, from the one at `at` on. The highest warps branch off first.
std::size_t Expander::roles(const Block& statements, std::size_t at, Block& out) {
  struct Part {
    const Role* role;
    Block body;
  };
  std::vector<Part> parts;
  for (const Stmt& stmt : kernel_.body)
    if (const Role* role = as<Role>(stmt)) parts.push_back({role, {}});
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.role->first_warp < b.role->first_warp; });
  std::size_t end = at;
  for (; end < statements.size() && as<Labelled>(statements[end]); ++end)
    for (Part& part : parts)
      if (const Labelled* labelled = as<Labelled>(statements[end]); labelled->role == part.role->name) part.body.push_back(labelled->statement);
  if (end != statements.size()) refuse(statements[end], "a statement of no role behind those of roles");

  std::int64_t warps = 0;  // from 0 on, all of them in a role that does something
  for (const Part& part : parts)
    if (part.role->first_warp == warps && !part.body.empty()) warps = part.role->last_warp;
  bool covers = warps * 32 == whole_.total();
  Block chain;
  for (const Part& part : parts) {
    if (part.body.empty()) continue;
    Block work = role_body(*part.role, part.body);
    bool is_rest = covers && part.role->first_warp == 0 && parts.size() > 1;
    chain = is_rest ? std::move(work) : Block{make_stmt(If{is_in_role(*part.role, covers), std::move(work), std::move(chain)}, statements[at]->span)};
  }
  out.insert(out.end(), chain.begin(), chain.end());
  return end - 1;
}

}  // namespace tilewright
