// roles: some warps fetch, the others compute.
//
//   roles producer 1 warpgroup registers 40, consumer 2 warpgroups registers 232
//   before   kernel C warps 8 { grid … { …; fill acc <- 0.0
//              serial k.block … { acquire p; copy As[p.in, …] <- A[…]; commit p; wait p; mma …; release p }
//              each i, j { C[…] = … } } }
//   after    kernel C { role consumer warps 0 .. 8 registers 232; role producer warps 8 .. 12 registers 40
//              grid … { …; @consumer fill acc <- 0.0
//                serial k.block … { @producer acquire p; @producer copy As[p.in, …] <- A[…]; @producer commit p
//                                   @consumer wait p; @consumer mma …; @consumer release p }
//                @consumer each i, j { C[…] = … } } }
//
// Labels on statements; a loop that holds both roles has none, each role runs it. The producer's warps come behind the
// kernel's, so no layout changes. `registers` moves registers of a thread from one role to the other.
//
// Needs: `warps` (the consumer's number), a pipeline, and that nothing but its pipe carries a value between the roles.
// Refuses: more registers than a block gets when it starts.
#include <fmt/format.h>

#include <algorithm>

#include "passes/loops.h"
#include "passes/schedule/kernel_threads.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/shared_tile.h"

namespace tilewright {

namespace {

constexpr std::int64_t warpgroup_warps = 4;  // warps of a warpgroup
constexpr std::int64_t lanes_of_warp = 32;

struct RoleRequest {
  std::int64_t warps = 0;
  std::int64_t registers = 0;  // 0: not said
  Span span;                   // of the number of warps
  Span registers_span;
};

struct RoleLine {
  RoleRequest producer;
  RoleRequest consumer;
};

RoleRequest read_role(LineReader& reader) {
  RoleRequest result;
  LineNumber count = reader.number("a number of warps or warpgroups");
  result.span = count.span;
  if (reader.accept("warpgroup") || reader.accept("warpgroups"))
    result.warps = count.value * warpgroup_warps;
  else if (reader.accept("warp") || reader.accept("warps"))
    result.warps = count.value;
  else
    reader.fail("`warps` or `warpgroups`");
  if (reader.accept("registers")) {
    LineNumber registers = reader.number("registers a thread");
    result.registers = registers.value;
    result.registers_span = registers.span;
    if (registers.value % 8 != 0 || registers.value < 24 || registers.value > 256)
      throw UserError(registers.span,
                      fmt::format("registers {}: a multiple of 8 from 24 to 256 is possible", registers.value));
    if (result.warps % warpgroup_warps != 0)
      throw UserError(registers.span, fmt::format("registers are moved by whole warpgroups of {} warps, and this role "
                                                  "has {}",
                                                  warpgroup_warps, result.warps));
  }
  return result;
}

RoleLine read_roles_line(const ScheduleLine& line) {
  LineReader reader(line);
  RoleLine result;
  do {
    LineName name = reader.name("`producer` or `consumer`");
    if (name.text != "producer" && name.text != "consumer")
      throw UserError(name.span,
                      fmt::format("there is no role `{}`; a `producer` fetches, a `consumer` computes", name.text));
    RoleRequest& role = name.text == "producer" ? result.producer : result.consumer;
    if (role.warps) throw UserError(name.span, fmt::format("role `{}` is given twice", name.text));
    role = read_role(reader);
  } while (reader.accept(","));
  reader.end();
  if (!result.producer.warps || !result.consumer.warps)
    throw UserError(line.span, fmt::format("role `{}` is missing", result.producer.warps ? "consumer" : "producer"),
                    fmt::format("as in `{}`", reader.syntax()));
  return result;
}

class Labelling {
 public:
  explicit Labelling(const Block& block) {
    walk(block, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt)) buffers_.insert(buffer->name);
      const Pipe* pipe = as<Pipe>(stmt);
      if (!pipe || pipe->mechanism == "registers" || pipe->mechanism == "tma.store") return true;
      fetching_.insert(pipe->name);
      piped_.insert(pipe->buffers.begin(), pipe->buffers.end());
      return true;
    });
  }

  bool has_fetching_pipe() const { return !fetching_.empty(); }

  Block apply(const Block& body) const {
    Block result;
    for (const Stmt& stmt : body) result.push_back(labelled(stmt));
    return result;
  }

  // What a producer's copy reads besides tensors; empty where it is none.
  std::string carried(const Block& body) const {
    std::string found;
    walk(body, [&](const Stmt& stmt) {
      const Copy* copy = as<Copy>(stmt);
      if (!copy || !is_producer(stmt)) return true;
      if (buffers_.count(copy->source.buffer)) found = copy->source.buffer;
      walk_expressions({stmt}, [&](const Expr& expr) {
        for (const std::string& name : buffers_)
          if (uses_buffer(expr, name)) found = name;
      });
      return true;
    });
    return found;
  }

 private:
  bool is_producer(const Stmt& stmt) const {
    if (const Copy* copy = as<Copy>(stmt)) return piped_.count(copy->target.buffer) > 0;
    const Verb* verb = as<Verb>(stmt);
    return verb && fetching_.count(verb->pipe) > 0 &&
           (verb->kind == VerbKind::Acquire || verb->kind == VerbKind::Commit);
  }

  static bool is_declaration(const Stmt& stmt) {
    return as<Buffer>(stmt) || as<Pipe>(stmt) || as<Let>(stmt) || as<Chain>(stmt);
  }

  Stmt labelled(const Stmt& stmt) const {
    if (is_declaration(stmt)) return stmt;
    bool fetches = false;
    bool computes = false;
    walk({stmt}, [&](const Stmt& inner) {
      if (as<Loop>(inner) || as<If>(inner) || is_declaration(inner)) return true;
      (is_producer(inner) ? fetches : computes) = true;
      return true;
    });
    if (fetches && computes) return map_bodies(stmt, [&](const Block& inner) { return apply(inner); });
    return make_stmt(Labelled{fetches ? "producer" : "consumer", stmt}, stmt->span);
  }

  std::set<std::string> buffers_;
  std::set<std::string> fetching_;  // pipes
  std::set<std::string> piped_;     // their buffers
};

void require_pool(const RoleLine& roles, const Target& target, Span line) {
  std::int64_t warps = roles.producer.warps + roles.consumer.warps;
  std::int64_t threads = warps * lanes_of_warp;
  if (threads > target.most_threads)
    throw UserError(
        line, fmt::format("{} warps are {} threads, a block has at most {}", warps, threads, target.most_threads));
  std::int64_t pool = register_pool(target, threads);
  auto taken = [&](const RoleRequest& role) {
    return role.warps * lanes_of_warp * (role.registers ? role.registers : pool / threads);
  };
  std::int64_t sum = taken(roles.producer) + taken(roles.consumer);
  if (sum <= pool) return;
  std::int64_t most = (pool - taken(roles.producer)) / (roles.consumer.warps * lanes_of_warp) / 8 * 8;
  throw UserError(
      line,
      fmt::format("the roles take {} registers ({} for the producer, {} for the consumer), {} more than the "
                  "{} that {} threads start with",
                  sum, taken(roles.producer), taken(roles.consumer), sum - pool, pool, threads),
      most >= 24 ? fmt::format("`consumer … registers {}` fits", most) : "");
}

Kernel with_roles(const Kernel& kernel, const RoleLine& roles, const Target& target, Span line) {
  if (!roles_of(kernel).empty()) throw UserError(line, fmt::format("kernel `{}` has roles already", kernel.name));
  if (kernel.warps == 0)
    throw UserError(line, fmt::format("kernel `{}` has no number of warps", kernel.name),
                    fmt::format("put `warps {}` in front", roles.consumer.warps));
  if (kernel.warps != roles.consumer.warps)
    throw UserError(roles.consumer.span,
                    fmt::format("the consumer has {} warps, and kernel `{}` is shared among {}", roles.consumer.warps,
                                kernel.name, kernel.warps),
                    "the consumer's warps are those of the `warps` line");
  const Block& block = block_body(kernel.body);
  Labelling labelling(block);
  if (!labelling.has_fetching_pipe())
    throw UserError(line, fmt::format("kernel `{}` has no pipeline that a producer could fill", kernel.name),
                    "put `pipeline … via tma` or `via cp.async` in front");
  if (std::string name = labelling.carried(block); !name.empty())
    throw UserError(line, fmt::format("the producer's copy reads `{}`, which the consumer writes; only a pipe carries "
                                      "values between roles",
                                      name));
  Kernel result = kernel;
  result.warps = 0;
  result.body = map_block_body(kernel.body, [&](const Block& body) { return labelling.apply(body); });
  int consumers = static_cast<int>(roles.consumer.warps);
  int all = consumers + static_cast<int>(roles.producer.warps);
  Block declarations;
  declarations.push_back(make_stmt(Role{"consumer", 0, consumers, static_cast<int>(roles.consumer.registers)}, line));
  declarations.push_back(make_stmt(Role{"producer", consumers, all, static_cast<int>(roles.producer.registers)}, line));
  result.body.insert(result.body.begin(), declarations.begin(), declarations.end());
  require_registers_fit(result, target, line, "give the consumer more `registers`, or make its tile smaller");
  return result;
}

bool has_pipe(const Kernel& kernel) {
  bool found = false;
  walk(kernel.body, [&](const Stmt& stmt) {
    found |= as<Pipe>(stmt) != nullptr;
    return !found;
  });
  return found;
}

}  // namespace

Plan roles(const Plan& plan, const ScheduleLine& line, const Target& target) {
  RoleLine read = read_roles_line(line);
  bool moves_registers = read.producer.registers || read.consumer.registers;
  if (moves_registers && capability(target) < 90)
    throw UserError(read.producer.registers ? read.producer.registers_span : read.consumer.registers_span,
                    fmt::format("{} does not move registers between warpgroups, sm_90a does", target.arch));
  require_pool(read, target, line.span);
  std::size_t count = kernels_of(plan).size();
  return map_kernels_with(plan, line, {}, [&](const Kernel& kernel) {
    bool meant = !line.target.empty() || count == 1 || has_pipe(kernel);
    return meant ? with_roles(kernel, read, target, line.span) : kernel;
  });
}

}  // namespace tilewright
