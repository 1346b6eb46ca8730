// Mutants of right kernels: one synchronisation instruction dropped or weakened, one condition, bound, count, phase, slot or
// descriptor changed. Each is killed by a report or a wrong result under some order, or stands in tests/sim/mutants/*.survivors
// with the reason why nothing can tell it from the original. A new survivor fails; the score is printed.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "tests/locations.h"
#include "tests/sim/sim.h"

namespace tilewright {

namespace {

struct Mutant {
  std::string text;  // what was done, and to which statement
  Block statements;  // stand instead of it
};

Expr negated_parity(const Expr& parity) { return binary(BinaryOp::BitXor, parity, integer(1, parity->dtype)); }

// The same place one slot further.
Expr next_slot(const Expr& place, std::int64_t slots) {
  Access access = as<Load>(place)->access;
  const Expr& slot = access.index.front();
  access.index.front() = binary(BinaryOp::Mod, binary(BinaryOp::Add, slot, integer(1, slot->dtype)), integer(slots, slot->dtype));
  return load(access, place->dtype);
}

class Mutator {
 public:
  explicit Mutator(const Kernel& kernel) {
    walk(kernel.body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt); buffer && !buffer->axes.empty()) slots_[buffer->name] = buffer->axes.front().extent;
      return true;
    });
  }

  std::vector<Mutant> mutants_of(const Stmt& stmt) const {
    std::vector<Mutant> result;
    const std::string line = print(stmt).substr(0, print(stmt).find('\n'));
    const auto add = [&](const std::string& what, Block statements) { result.push_back({fmt::format("{}: {}", what, line), std::move(statements)}); };
    if (const Instr* instr = as<Instr>(stmt)) of_instruction(*instr, add);
    if (const If* branch = as<If>(stmt)) of_branch(*branch, add);
    return result;
  }

 private:
  template <class Add>
  void of_instruction(const Instr& instr, const Add& add) const {
    const InstrInfo& row = *find_instruction(instr.op);
    const auto with = [&](std::size_t operand, const Expr& value) {
      Instr changed = instr;
      changed.operands[operand] = value;
      return Block{make_stmt(changed)};
    };
    const auto constant_at = [&](std::size_t operand) { return integer_value(instr.operands.at(operand)); };
    const bool is_sync = row.effect == Effect::Orders || instr.op.ends_with(".commit") || instr.op.starts_with("cluster.") || instr.op == "mbarrier.init" || instr.op.starts_with("setmaxnreg");
    if (is_sync) add("dropped", {});
    if (instr.op == "cp.async.wait" || instr.op.starts_with("bulk.wait") || instr.op == "wgmma.wait") add("one group more open", with(0, integer(*constant_at(0) + 1)));
    if (instr.op == "mbarrier.init") {
      add("one arrival more", with(1, integer(*constant_at(1) + 1)));
      if (*constant_at(1) > 1) add("one arrival fewer", with(1, integer(*constant_at(1) - 1)));
    }
    if (instr.op == "mbarrier.arrive.expect_tx") {
      add("fewer bytes", with(1, integer(*constant_at(1) / 2)));
      add("more bytes", with(1, integer(*constant_at(1) * 2)));
    }
    if (instr.op == "mbarrier.wait") add("other phase", with(1, negated_parity(instr.operands[1])));
    if (instr.op == "barrier.named") add("one barrier for all", with(0, integer(1, instr.operands[0]->dtype)));
    // Another slot of a ring, of a barrier object or of data.
    for (std::size_t n = 0; n < instr.operands.size(); ++n) {
      const Load* place = as<Load>(instr.operands[n]);
      const auto slots = place && !place->access.index.empty() ? slots_.find(place->access.buffer) : slots_.end();
      if (slots == slots_.end() || slots->second < 2 || integer_value(place->access.index.front())) continue;
      if (instr.op.starts_with("mbarrier.") || instr.op.starts_with("tma.") || (instr.op == "cp.async" && n == 0)) add(fmt::format("next slot of `{}`", place->access.buffer), with(n, next_slot(instr.operands[n], slots->second)));
    }
    if (wgmma_form(instr.op)) {
      if (!(instr.operands[3] == boolean(true))) add("adds always", with(3, boolean(true)));
      add("other transposition of B", with(5, integer(1 - *constant_at(5), instr.operands[5]->dtype)));
      for (const std::size_t side : {std::size_t{1}, std::size_t{2}})
        if (const Call* descriptor = as<Call>(instr.operands[side])) {
          Call changed = *descriptor;
          changed.arguments[2] = binary(BinaryOp::Mul, changed.arguments[2], integer(2, changed.arguments[2]->dtype));
          add(side == 1 ? "double stride of A" : "double stride of B", with(side, call(changed.function, changed.arguments, Dtype::U64)));
        }
    }
    if (instr.op.starts_with("tma.load"))
      add("column of the box moved", with(2, binary(BinaryOp::Add, instr.operands[2], integer(8, instr.operands[2]->dtype))));
    if (instr.op == "tma.load.2d.multicast") add("for one block", with(instr.operands.size() - 1, integer(1, instr.operands.back()->dtype)));
  }

  template <class Add>
  void of_branch(const If& branch, const Add& add) const {
    if (!branch.else_body.empty()) return;
    add("always", branch.then_body);
    if (const Binary* both = as<Binary>(branch.condition); both && both->op == BinaryOp::And) {
      add("without the second condition", {make_stmt(If{both->lhs, branch.then_body, {}})});
      add("without the first condition", {make_stmt(If{both->rhs, branch.then_body, {}})});
    }
    if (const Binary* compared = as<Binary>(branch.condition); compared && compared->op == BinaryOp::Lt)
      add("one more", {make_stmt(If{binary(BinaryOp::Le, compared->lhs, compared->rhs), branch.then_body, {}})});
  }

  std::map<std::string, std::int64_t> slots_;
};

struct MutantPlan {
  std::string text;
  Plan plan;
};

std::vector<MutantPlan> mutants_of(const Plan& plan) {
  std::vector<MutantPlan> result;
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    const Kernel* kernel = std::get_if<Kernel>(&plan.steps[step]);
    if (kernel == nullptr) continue;
    const Mutator mutator(*kernel);
    // Statement by statement, mutant by mutant: each time the body is rewritten anew.
    for (std::size_t wanted = 0;; ++wanted) {
      std::size_t next = 0;
      std::string text;
      const Block body = rewrite_statements(kernel->body, [&](const Stmt& stmt) -> Block {
        for (Mutant& mutant : mutator.mutants_of(stmt))
          if (next++ == wanted) {
            text = mutant.text;
            return std::move(mutant.statements);
          }
        return {stmt};
      });
      if (text.empty()) break;
      Plan changed = plan;
      std::get<Kernel>(changed.steps[step]).body = body;
      result.push_back({text, changed});
    }
  }
  return result;
}

// A report, or other bytes than `right`.
bool is_killed(const Plan& plan, const std::map<std::string, HostTensor>& inputs, const std::map<std::string, std::int64_t>& dims, const Arguments& right, std::uint64_t orders) {
  if (!verify(plan).empty()) return true;
  for (std::uint64_t seed = 1; seed <= orders; ++seed) {
    SimulatorOptions options;
    options.seed = seed;
    options.most_steps = 20000000;
    Arguments arguments = bind_arguments(plan, inputs, dims);
    try {
      if (!simulate(plan, arguments, options).faults.empty()) return true;
    } catch (const UserError&) {
      return true;
    }
    for (const Param& param : plan.params)
      if (arguments.tensors.at(param.name).data != right.tensors.at(param.name).data) return true;
  }
  return false;
}

// The texts of survivors known, each in front of the reason why it means the same: `text  // reason`.
std::multiset<std::string> known_survivors(const std::string& name) {
  std::multiset<std::string> result;
  std::ifstream stream(source_root() / "tests/sim/mutants" / (name + ".survivors"));
  for (std::string line; std::getline(stream, line);) {
    const std::size_t reason = line.find("  // ");
    REQUIRE_MESSAGE(reason != std::string::npos, line);
    result.insert(line.substr(0, reason));
  }
  return result;
}

struct Score {
  std::size_t killed = 0;
  std::size_t equivalent = 0;
  std::size_t all = 0;
};

// The dims of one run: `// run` lines at the start of the file.
struct Run {
  std::map<std::string, std::int64_t> dims;
  std::map<std::string, HostTensor> inputs;
  Arguments right;
};

Score score_of(const std::string& name, const std::string& text, std::uint64_t orders) {
  const Plan plan = plan_of(text);
  std::vector<Run> runs;
  for (std::size_t at = 0; text.compare(at, 7, "// run ") == 0; at = text.find('\n', at) + 1) {
    Run run{dims_of_text(text.substr(at)), {}, {}};
    run.inputs = exact_inputs(plan, run.dims);
    run.right = run_without_faults(plan, run.inputs, run.dims);
    runs.push_back(std::move(run));
  }
  std::multiset<std::string> known = known_survivors(name);
  Score score;
  for (const MutantPlan& mutant : mutants_of(plan)) {
    ++score.all;
    if (std::any_of(runs.begin(), runs.end(), [&](const Run& run) { return is_killed(mutant.plan, run.inputs, run.dims, run.right, orders); })) {
      ++score.killed;
      continue;
    }
    const auto found = known.find(mutant.text);
    CHECK_MESSAGE(found != known.end(), fmt::format("{}: survives: {}", name, mutant.text));
    if (found == known.end()) continue;
    known.erase(found);
    ++score.equivalent;
  }
  for (const std::string& unused : known) CHECK_MESSAGE(false, fmt::format("{}: is killed, or no mutant any more: {}", name, unused));
  MESSAGE(fmt::format("{}: {} of {} mutants killed, {} mean the same", name, score.killed, score.all, score.equivalent));
  return score;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("mutants of small kernels are killed") {
    Score all;
    for (const auto& entry : std::filesystem::directory_iterator(source_root() / "tests/sim/faults")) {
      const std::string name = entry.path().stem().string();
      if (entry.path().extension() != ".ir" || !name.starts_with("right_") || name == "right_hopper") continue;
      const Score score = score_of(name.substr(6), text_of(entry.path()), 4);
      all.killed += score.killed;
      all.equivalent += score.equivalent;
      all.all += score.all;
    }
    MESSAGE(fmt::format("small kernels: {} of {} mutants killed, {} mean the same", all.killed, all.all, all.equivalent));
    CHECK(all.all >= 60);
  }
}

TEST_SUITE("sim full") {
  TEST_CASE("mutants of the last Hopper rung are killed") {
    CHECK(score_of("hopper", text_of(source_root() / "tests/sim/faults/right_hopper.ir"), 6).all >= 60);
  }
}

}  // namespace tilewright
