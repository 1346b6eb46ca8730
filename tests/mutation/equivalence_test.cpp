#include "tests/mutation/equivalence.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "ir/operators.h"
#include "ir/scalar.h"
#include "passes/finish/passes.h"
#include "passes/pass.h"
#include "runtime/execute.h"
#include "tests/mutation/interleavings.h"
#include "tests/sim/sim.h"

namespace tilewright {

bool is_killed(const Plan& plan, const MutationRun& run, std::uint64_t orders) {
  if (!verify(plan).empty()) return true;
  for (std::uint64_t seed = 1; seed <= orders; ++seed) {
    SimulatorOptions options;
    options.seed = seed;
    options.most_steps = 20000000;
    Arguments arguments = bind_arguments(plan, run.inputs, run.dims);
    try {
      const RunReport report = simulate(plan, arguments, options);
      if (!report.faults.empty() || report.error.has_value() != run.has_error) return true;
    } catch (const UserError& error) {
      return !error.diagnostics().front().message.starts_with("unsupported");
    }
    for (const Param& param : plan.params)
      if (arguments.tensors.at(param.name).data != run.right.tensors.at(param.name).data) return true;
  }
  return false;
}

MutationRun run_of(const Plan& plan, const std::map<std::string, std::int64_t>& dims) {
  MutationRun run{dims, exact_inputs(plan, dims), {}};
  run.right = bind_arguments(plan, run.inputs, dims);
  const RunReport report = simulate(plan, run.right);
  if (!report.faults.empty()) throw std::runtime_error("a report on a right kernel: " + report.faults.front());
  run.has_error = report.error.has_value();
  return run;
}

namespace {

// ---- The same text once index arithmetic and conditions that intervals decide are gone.
bool is_same_simplified(const Plan& plan, const Mutant& mutant) {
  return print(simplify(plan, target_for("sm_90a"))) == print(simplify(mutant.plan, target_for("sm_90a")));
}

// ---- An instruction that orders, reads and writes nothing, by its row: what it is for is not correctness.
bool has_no_effect(const Mutant& mutant) {
  const Instr* instr = as<Instr>(mutant.before);
  const InstrInfo* row = instr != nullptr && mutant.after.empty() ? find_instruction(instr->op) : nullptr;
  return row != nullptr && row->effect == Effect::None && !row->result && instr->op.starts_with("setmaxnreg");
}

// ---- Values of the variables of an index, all of them.
using Values = std::map<std::string, std::int64_t>;

std::optional<std::int64_t> value_of(const Expr& expr, const Values& values) {
  if (const Const* node = as<Const>(expr)) return is_float(expr->dtype) ? std::nullopt : std::optional(node->bits);
  if (const Var* node = as<Var>(expr)) {
    const auto found = values.find(node->name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  if (const Cast* node = as<Cast>(expr)) return is_float(expr->dtype) ? std::nullopt : value_of(node->operand, values);
  if (const Call* node = as<Call>(expr); node && node->function == "uniform") return value_of(node->arguments[0], values);
  const Binary* node = as<Binary>(expr);
  if (node == nullptr) return std::nullopt;
  const auto a = value_of(node->lhs, values);
  const auto b = value_of(node->rhs, values);
  if (!a || !b) return std::nullopt;
  return apply(node->op, node->lhs->dtype, integer_scalar(*a), integer_scalar(*b)).i;
}

void add_variables(const Expr& expr, std::set<std::string>& names) {
  walk(expr, [&](const Expr& node) {
    if (const Var* variable = as<Var>(node)) names.insert(variable->name);
    return true;
  });
}

// Loops of constant extent and `let`s around and in front of the statement.
struct Scope {
  std::map<std::string, std::int64_t> extents;
  std::vector<std::pair<std::string, Expr>> lets;
};

Scope scope_of(const Kernel& kernel) {
  Scope scope;
  walk(kernel.body, [&](const Stmt& stmt) {
    if (const Loop* loop = as<Loop>(stmt))
      for (const Axis& axis : loop->axes)
        if (const auto extent = integer_value(axis.hi); extent && (!axis.lo || is_integer_constant(axis.lo, 0)) && !axis.step) {
          std::int64_t& known = scope.extents[axis.name];
          known = std::max(known, *extent);
        }
    if (const Let* let = as<Let>(stmt)) scope.lets.emplace_back(let->name, let->value);
    return true;
  });
  return scope;
}

// Whether the changed places have one value for every thread and every trip around them.
bool is_same_index(const Plan& plan, const Mutant& mutant) {
  if (mutant.kind != MutationKind::Layout || !mutant.before || mutant.after.size() != 1) return false;
  const auto indices_of = [](const Stmt& stmt) {
    std::vector<Expr> indices;
    const auto add = [&](const Access& access) { indices.insert(indices.end(), access.index.begin(), access.index.end()); };
    if (const Store* store = as<Store>(stmt)) add(store->target);
    map_expressions(stmt, [&](const Expr& top) {
      walk(top, [&](const Expr& node) {
        if (const Load* place = as<Load>(node)) add(place->access);
        return true;
      });
      return top;
    });
    return indices;
  };
  const std::vector<Expr> before = indices_of(mutant.before), after = indices_of(mutant.after.front());
  if (before.size() != after.size()) return false;
  const Kernel& kernel = std::get<Kernel>(plan.steps[mutant.step]);
  const Scope scope = scope_of(kernel);
  const std::vector<std::int64_t>& block = kernel.launch.block;
  for (std::size_t n = 0; n < before.size(); ++n) {
    if (before[n] == after[n]) continue;
    Expr one = before[n], other = after[n];
    for (auto let = scope.lets.rbegin(); let != scope.lets.rend(); ++let) {
      one = substitute(one, {{let->first, let->second}});
      other = substitute(other, {{let->first, let->second}});
    }
    std::set<std::string> names;
    add_variables(one, names);
    add_variables(other, names);
    std::vector<std::pair<std::string, std::int64_t>> loops;
    for (const std::string& name : names) {
      if (name.starts_with("thread") || name == "lane" || name == "warp") continue;
      const auto extent = scope.extents.find(name);
      if (extent == scope.extents.end()) return false;
      loops.emplace_back(name, extent->second);
    }
    std::int64_t threads = 1;
    for (const std::int64_t extent : block) threads *= extent;
    Values values;
    const std::function<bool(std::size_t)> all_same = [&](std::size_t loop) {
      if (loop < loops.size()) {
        for (std::int64_t trip = 0; trip < loops[loop].second; ++trip) {
          values[loops[loop].first] = trip;
          if (!all_same(loop + 1)) return false;
        }
        return true;
      }
      for (std::int64_t thread = 0; thread < threads; ++thread) {
        values["thread"] = thread;
        values["thread.x"] = thread % block[0];
        values["thread.y"] = block.size() > 1 ? thread / block[0] % block[1] : 0;
        values["lane"] = thread % 32;
        values["warp"] = thread / 32;
        const auto a = value_of(one, values), b = value_of(other, values);
        if (!a || !b || *a != *b) return false;
      }
      return true;
    };
    if (!all_same(0)) return false;
  }
  return true;
}

// ---- A statement of an unrolled loop that goes over all slots, each once: the same set in another order.
bool is_same_set(const Plan& plan, const Mutant& mutant) {
  const Instr* before = as<Instr>(mutant.before);
  const Instr* after = mutant.after.size() == 1 ? as<Instr>(mutant.after.front()) : nullptr;
  if (!before || !after || before->op != "mbarrier.init" || after->op != before->op || !(before->operands[1] == after->operands[1])) return false;
  const Scope scope = scope_of(std::get<Kernel>(plan.steps[mutant.step]));
  const auto places = [&](const Instr& instr) {
    std::multiset<std::int64_t> result;
    const Access& access = as<Load>(instr.operands[0])->access;
    std::set<std::string> names;
    add_variables(access.index[0], names);
    if (names.size() != 1 || !scope.extents.contains(*names.begin())) return result;
    for (std::int64_t trip = 0; trip < scope.extents.at(*names.begin()); ++trip) result.insert(value_of(access.index[0], {{*names.begin(), trip}}).value_or(-1 - trip));
    return result;
  };
  return !places(*before).empty() && places(*before) == places(*after) && as<Load>(before->operands[0])->access.buffer == as<Load>(after->operands[0])->access.buffer;
}

// ---- A wait for a thread's own groups, in threads that never open one: every statement that opens one stands under the condition
// that was dropped.
bool waits_for_nothing(const Plan& plan, const Mutant& mutant) {
  const If* branch = as<If>(mutant.before);
  if (!branch || !branch->else_body.empty() || branch->then_body.size() != 1) return false;
  const Instr* wait = as<Instr>(branch->then_body[0]);
  if (!wait || !wait->op.starts_with("bulk.wait_group")) return false;
  bool all_inside = true;
  std::size_t stores = 0;
  const std::function<void(const Block&, bool)> look = [&](const Block& body, bool is_inside) {
    for (const Stmt& stmt : body) {
      const Instr* instr = as<Instr>(stmt);
      if (instr && (instr->op.starts_with("tma.store") || instr->op == "bulk.commit")) all_inside &= is_inside, ++stores;
      const If* inner = as<If>(stmt);
      map_bodies(stmt, [&](const Block& nested) {
        look(nested, is_inside || (inner && inner->condition == branch->condition && nested == inner->then_body));
        return nested;
      });
    }
  };
  look(std::get<Kernel>(plan.steps[mutant.step]).body, false);
  return all_inside && stores > 0;
}

// ---- Sizes: every one along each axis up to what the runs have, the others as in a run; poison for what the plan does not compute.
std::vector<std::map<std::string, std::int64_t>> sizes_around(const Plan& plan, const std::vector<MutationRun>& runs) {
  std::set<std::map<std::string, std::int64_t>> sizes;
  for (const auto& [name, first] : runs.front().dims) {
    std::int64_t most = first;
    for (const MutationRun& run : runs) most = std::max(most, run.dims.at(name));
    const std::int64_t step = most > 100 ? 8 : 1;
    for (const MutationRun* base : {&runs.front(), &runs.back()})
      for (std::int64_t value = 0; value <= most; ++value) {
        if (step > 1 && value % step > 1 && value % step < step - 1) continue;  // of large ones those beside multiples of 8
        std::map<std::string, std::int64_t> dims = base->dims;
        dims[name] = value;
        const std::vector<std::pair<std::string, std::int64_t>> names(dims.begin(), dims.end());
        const bool fits = std::all_of(plan.facts.begin(), plan.facts.end(), [&](const Fact& fact) {
          return fact.kind != Fact::Kind::Condition || evaluate_index(cast(Dtype::Index, fact.condition), names) != 0;
        });
        if (fits) sizes.insert(std::move(dims));
      }
  }
  return {sizes.begin(), sizes.end()};
}

// ---- Only barrier objects are told or waited for otherwise: all interleavings of two warps.
Compared interleaved(const Plan& plan, const Mutant& mutant, RunsOfSizes& sizes) {
  if (!mutant.before) return Compared::Unknown;
  bool only_objects = true;
  walk(mutant.after.empty() ? Block{mutant.before} : mutant.after, [&](const Stmt& stmt) {
    const Instr* instr = as<Instr>(stmt);
    only_objects &= as<If>(stmt) != nullptr || (instr && instr->op.starts_with("mbarrier.") && instr->op != "mbarrier.init");
    return true;
  });
  if (!only_objects) return Compared::Unknown;
  std::vector<std::map<std::string, std::int64_t>> dims;
  for (const MutationRun& run : sizes.all()) {
    std::vector<std::pair<std::string, std::int64_t>> names(run.dims.begin(), run.dims.end());
    for (const Dim& dim : plan.dims) {
      const Call* count = as<Call>(dim.value);
      if (dim.value) names.emplace_back(dim.name, count && count->function == "resident" ? 1 : evaluate_index(dim.value, names));  // one block does all tiles
    }
    dims.emplace_back(names.begin(), names.end());
  }
  try {
    return compare_interleavings(std::get<Kernel>(plan.steps[mutant.step]), std::get<Kernel>(mutant.plan.steps[mutant.step]), dims);
  } catch (const std::runtime_error&) {
    return Compared::Unknown;  // the text does not say what the events are
  }
}

enum class AtSizes : std::uint8_t { NotAsked, Same, Differs };

AtSizes at_sizes(const Plan& plan, const Mutant& mutant, RunsOfSizes& sizes) {
  if (mutant.kind != MutationKind::Predicate && mutant.kind != MutationKind::Fill) return AtSizes::NotAsked;
  const std::optional<Plan> poisoned = mutant.poisoned.empty() ? std::nullopt : std::optional(with_statement(plan, mutant.step, mutant.position, mutant.poisoned));
  const bool differs = std::any_of(sizes.all().begin(), sizes.all().end(), [&](const MutationRun& run) { return is_killed(mutant.plan, run, 1) || (poisoned && is_killed(*poisoned, run, 1)); });
  return differs ? AtSizes::Differs : AtSizes::Same;
}

}  // namespace

const std::vector<MutationRun>& RunsOfSizes::all() {
  std::call_once(once_, [&] {
    for (const auto& dims : sizes_around(plan_, runs_)) try {
        made_.push_back(run_of(plan_, dims));
      } catch (const std::exception&) {
        if (!is_hand_written_) throw;
      }
  });
  return made_;
}

MutantVerdict verdict_of(const Plan& plan, const Mutant& mutant, RunsOfSizes& sizes) {
  const auto same = [](std::string reason) { return MutantVerdict{false, std::move(reason)}; };
  if (is_same_simplified(plan, mutant)) return same("the same after simplify");
  if (has_no_effect(mutant)) return same("orders, reads and writes nothing");
  if (is_same_index(plan, mutant)) return same("one place for every thread and trip");
  if (is_same_set(plan, mutant)) return same("the same slots in another order");
  if (waits_for_nothing(plan, mutant)) return same("waits in threads that have no groups");
  switch (interleaved(plan, mutant, sizes)) {
    case Compared::Same: return same("the same under all interleavings of two warps");
    case Compared::Differs: return {true, ""};
    case Compared::Unknown: break;
  }
  switch (at_sizes(plan, mutant, sizes)) {
    case AtSizes::Differs: return {true, ""};
    case AtSizes::Same: return same("no difference at any size, poison included");
    case AtSizes::NotAsked: break;
  }
  return {};
}

}  // namespace tilewright
