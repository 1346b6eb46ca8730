// Compiles and runs a case. What is compared with what:
//
//   the oracle, every operation rounded    the lowered plan without contraction, bit for bit
//   the oracle, with its bound             the lowered plan; everything behind a line that is not `exact`
//   the lowered plan                       every rung in the tile interpreter, its loops in three orders; cpu; sim in several
//                                          orders with all checks; PTX of both generators; cuda: bit for bit
//
// Library functions differ between devices within their ulps: there, too, the oracle's bound decides.
#include "tests/fuzz/check.h"

#include <fmt/format.h>

#include <cmath>

#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "runtime/cuda_device.h"
#include "runtime/host_device.h"
#include "runtime/plan_ptx.h"
#include "runtime/ptx/ptx.h"

namespace tilewright::fuzz {

namespace {

using Tensors = std::map<std::string, HostTensor>;

constexpr std::int64_t most_interpreted_steps = 400'000;
constexpr std::int64_t most_simulated_steps = 40'000'000;

// Runs `f`; whatever it throws that no input may cause becomes a finding.
template <class F>
auto guarded(const std::string& where, F f) {
  try {
    return f();
  } catch (const UserError&) {
    throw;
  } catch (const Finding&) {
    throw;
  } catch (const ptx::Unsupported&) {
    throw;
  } catch (const InternalError& error) {
    throw Finding{"internal error in " + where, error.what()};
  } catch (const std::exception& error) {
    throw Finding{"exception in " + where, error.what()};
  }
}

std::string first_message(const UserError& error) { return error.diagnostics().front().message; }

bool calls_library(const Plan& plan) {
  bool found = false;
  for (const Kernel* kernel : kernels_of(plan))
    walk_expressions(kernel->body, [&](const Expr& expr) {
      walk(expr, [&](const Expr& node) {
        if (const Call* call = as<Call>(node))
          if (const FunctionInfo* row = find_function(call->function)) found |= row->group == FunctionGroup::Library || row->group == FunctionGroup::Fast;
        return !found;
      });
    });
  return found;
}

// Bytes and halves are combined by way of the aligned word around them, which may reach past the end of a tensor: no GPU
// minds, and the PTX machine reports it.
bool has_narrow_atomics(const Plan& plan) {
  bool found = false;
  for (const Kernel* kernel : kernels_of(plan))
    walk(kernel->body, [&](const Stmt& stmt) {
      if (const Store* store = as<Store>(stmt)) found |= store->atomic && info(store->value->dtype).bits < 32;
      return !found;
    });
  return found;
}

// How many statements a compiler sees behind unrolling: of many NVRTC makes a minute's work.
std::int64_t unrolled_statements(const Block& body) {
  std::int64_t count = 0;
  for (const Stmt& stmt : body) {
    std::int64_t inside = 1;
    map_bodies(stmt, [&](const Block& inner) {
      inside += unrolled_statements(inner);
      return inner;
    });
    if (const Loop* loop = as<Loop>(stmt); loop && loop->kind != LoopKind::Serial)
      for (const Axis& axis : loop->axes) inside *= integer_value(axis.hi).value_or(1);
    count += inside;
  }
  return count;
}

bool is_quickly_compiled(const Plan& plan) {
  std::int64_t count = 0;
  for (const Kernel* kernel : kernels_of(plan)) count += unrolled_statements(kernel->body);
  return count <= 300;
}

class Comparer {
 public:
  Comparer(const Compiled& compiled, const Run& run, Tally& tally) : compiled_(compiled), rungs_(compiled.rungs), run_(run), tally_(tally), inputs_(make_data(run.data, compiled.fn, run.dims, run.seed)) {}

  bool run(const Devices& devices) {
    try {
      run_all(devices);
    } catch (const UserError& error) {
      if (first_message(error).starts_with("the interpreter has executed")) return false;
      if (first_message(error).find("has no element to read") != std::string::npos) {
        tally_.count("undecided", "calls refused: a rule needs an element of a tensor that has none");
        return true;
      }
      if (first_message(error).find("no whole warpgroups") != std::string::npos) {  // beside a warpgroup, single warps: the simulator does not have it
        tally_.count("undecided", "wgmma in blocks of odd warps, which the simulator refuses");
        return true;
      }
      throw Finding{"a run is refused", first_message(error)};
    }
    return true;
  }

 private:
  void run_all(const Devices& devices) {
    const Plan& lowered = rungs_.front().plan;
    reference_.push_back(outputs_of("the lowered plan", lowered, [&](Arguments& arguments) { return interpreted(lowered, arguments, LoopOrder::Forwards); }));
    has_library_ = calls_library(lowered);
    compare_with_rounding_oracle(lowered);
    expect_bound("the lowered plan", reference_.front());
    bool is_exact = true, is_reassociated = false;
    for (std::size_t n = 0; n < rungs_.size(); ++n) {
      const Rung& rung = rungs_[n];
      is_exact &= rung.numeric == NumericClass::Exact;
      is_reassociated |= rung.numeric == NumericClass::Reassociates;
      const auto order = static_cast<LoopOrder>((n + 1 + run_.seed) % 3);
      const Outcome outcome = outputs_of("rung", rung.plan, [&](Arguments& arguments) { return interpreted(rung.plan, arguments, order); });
      const std::string where = n == 0 ? std::string("the lowered plan in another order") : fmt::format("behind `{}`", rung.line);
      expect_same(n == 0 ? "loop order differs" : "rung differs", where, outcome, is_exact);
      tally_.count("compared", "rung");
      if (rung.numeric == NumericClass::ChangesPrecision) {  // from here on this is what counts
        reference_.push_back(outcome);
        is_exact = !is_reassociated;  // the tensor cores' order of summation is open on every device
        is_precision_changed_ |= rung.line.find("math") != std::string::npos;
      }
      standing_.push_back(Standing{reference_.size() - 1, is_exact, is_precision_changed_});
    }
    run_devices(devices, is_exact);
  }

  struct Outcome {
    Tensors outputs;
    bool has_error = false;
  };

  // What the results of a rung are compared with: bit for bit where it is exact, else with the oracle unless it is `math fast`.
  struct Standing {
    std::size_t reference = 0;
    bool is_exact = true;
    bool is_fast = false;
  };

  RunReport interpreted(const Plan& plan, Arguments& arguments, LoopOrder order) {
    InterpreterOptions options;
    options.order = order;
    options.seed = run_.seed;
    options.workers = 1 + static_cast<std::int64_t>(run_.seed % 3);
    options.most_steps = most_interpreted_steps;
    return interpret(plan, arguments, options);
  }

  template <class Execute>
  Outcome outputs_of(const std::string& device, const Plan& plan, Execute execute) {
    return guarded(device, [&] {
      Arguments arguments = bind_arguments(plan, inputs_, run_.dims);
      const RunReport report = execute(arguments);
      if (!report.faults.empty()) throw Finding{device + " reports a fault", report.faults.front()};
      Outcome outcome;
      outcome.has_error = report.error.has_value();
      for (const Param& param : plan.params)
        if (param.kind != ParamKind::In) outcome.outputs[param.name] = std::move(arguments.tensors.at(param.name));
      return outcome;
    });
  }

  void compare_with_rounding_oracle(const Plan& lowered) {
    const Plan plan = guarded("contract off", [&] { return apply_line(lowered, tokenize_line("contract off"), Target{}); });
    const Outcome outcome = outputs_of("the plan without contraction", plan, [&](Arguments& arguments) { return interpreted(plan, arguments, LoopOrder::Forwards); });
    OracleOptions options;
    options.mode = FloatMode::Typed;
    options.threads = 1;
    const OracleResult oracle = guarded("the oracle", [&] { return evaluate(compiled_.fn, bind_arguments(signature_plan(compiled_.fn), inputs_, run_.dims), options); });
    if (oracle.error.has_value() != outcome.has_error) throw Finding{"oracle differs about the error word", outcome.has_error ? "only the plan reports an access outside" : "only the oracle reports an access outside"};
    for (const OracleTensor& expected : oracle.outputs) {
      HostTensor tensor = make_tensor(expected.dtype, expected.shape);
      for (std::size_t n = 0; n < expected.values.size(); ++n) store_scalar(expected.dtype, tensor.data.data() + n * static_cast<std::size_t>(bytes_of(expected.dtype)), expected.values[n]);
      const Comparison comparison = compare(tensor, outcome.outputs.at(expected.name), expected.name);
      if (!comparison.is_right()) throw Finding{"oracle differs", comparison.text};
    }
    tally_.count("compared", "oracle, rounded");
  }

  const Expectation& expectation() {
    if (!expectation_) {
      expectation_ = guarded("the oracle", [&] { return expect(compiled_.fn, instrument_of(run_.data), bind_arguments(signature_plan(compiled_.fn), inputs_, run_.dims)); });
      for (OracleTensor& output : expectation_->oracle.outputs) leave_out_unknown(output);
    }
    return *expectation_;
  }

  // Where f32 may overflow the bound is infinite, and nothing can be said.
  void leave_out_unknown(OracleTensor& output) {
    OracleTensor known{output.name, output.dtype, output.shape, {}, {}, {}};
    bool is_all = true;
    for (std::size_t n = 0; n < output.count(); ++n) {
      if (!output.bounds.empty() && !std::isfinite(output.bounds[n])) {
        is_all = false;
        continue;
      }
      known.elements.push_back(output.element(n));
      known.values.push_back(output.values[n]);
      if (!output.bounds.empty()) known.bounds.push_back(output.bounds[n]);
    }
    tally_.count("undecided", "elements whose bound is infinite", static_cast<std::int64_t>(output.count() - known.count()));
    tally_.count("compared", "elements with a bound", static_cast<std::int64_t>(known.count()));
    if (!is_all) output = std::move(known);
  }

  void expect_bound(const std::string& where, const Outcome& outcome) {
    ComparisonRule rule = expectation().rule;
    rule.compares_zero_sign = false;  // contraction may keep a sign that a rounded product loses
    for (const OracleTensor& expected : expectation().oracle.outputs) {
      if (expected.count() == 0) continue;
      const Comparison comparison = compare(expected, outcome.outputs.at(expected.name), rule);
      if (!comparison.is_right()) throw Finding{"bound exceeded", where + ": " + comparison.text};
    }
    tally_.count("compared", "oracle, bound");
  }

  void expect_same(const std::string& kind, const std::string& where, const Outcome& outcome, bool is_exact) { expect_same(kind, where, outcome, Standing{reference_.size() - 1, is_exact, is_precision_changed_}); }
  void expect_same(const std::string& kind, const std::string& where, const Outcome& outcome, const Standing& standing) {
    const Outcome& reference = reference_[standing.reference];
    if (outcome.has_error != reference.has_error) throw Finding{kind + " about the error word", where + (outcome.has_error ? " reports an access outside" : " reports no access outside")};
    if (!standing.is_exact) {
      if (!standing.is_fast) expect_bound(where, outcome);
      return;
    }
    for (const auto& [name, tensor] : outcome.outputs) {
      const Comparison comparison = compare(reference.outputs.at(name), tensor, name);
      if (!comparison.is_right()) throw Finding{kind, where + ": " + comparison.text};
    }
  }

  void run_devices(const Devices& devices, bool is_exact) {
    const Plan& last = compiled_.rungs.back().plan;
    if (devices.cpu) {
      const Outcome outcome = outputs_of("cpu", last, [&](Arguments& arguments) { return run_on_host(last, arguments, HostOptions{1}); });
      expect_same("cpu differs", "cpu", outcome, is_exact && !has_library_);
      tally_.count("compared", "cpu");
    }
    if (devices.sim)
      for (const auto& [rung, finished_rung] : compiled_.finished)
        for (int order = 0; order < devices.sim_orders; ++order) {
          const Plan& plan = finished_rung;
          SimulatorOptions options;
          options.seed = run_.seed + static_cast<std::uint64_t>(order);
          options.most_steps = most_simulated_steps;
          const Outcome outcome = outputs_of("sim", plan, [&](Arguments& arguments) { return simulate(plan, arguments, options); });
          expect_same("sim differs", rungs_[rung].line.empty() ? "sim" : fmt::format("sim behind `{}`", rungs_[rung].line), outcome, standing_[rung]);
          tally_.count("compared", "sim");
        }
    const auto finished = compiled_.finished.find(rungs_.size() - 1);
    if ((!devices.ptx && !devices.cuda) || finished == compiled_.finished.end()) return;
    const Plan& plan = finished->second;
    if (!is_quickly_compiled(plan)) {
      tally_.count("undecided", "PTX of plans that unroll to more than 300 statements");
      return;
    }
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      CompileOptions options;
      options.backend = backend;
      options.use_cache = false;
      const std::string name = backend == Backend::Nvrtc ? "CUDA C" : "LLVM";
      if (devices.ptx && has_narrow_atomics(plan)) tally_.count("undecided", "PTX of atomics on less than 32 bits");
      else if (devices.ptx) try {
          const Outcome outcome = outputs_of("PTX of " + name, plan, [&](Arguments& arguments) { return run_on_ptx(plan, arguments, options); });
          expect_same("PTX of " + name + " differs", "PTX of " + name, outcome, is_exact && !has_library_);
          tally_.count("compared", "PTX of " + name);
        } catch (const ptx::Unsupported& lacks) {
          tally_.count("undecided", kind_of_refusal(lacks.what()));
        }
      if (devices.cuda) {
        const Outcome outcome = outputs_of("cuda by " + name, plan, [&](Arguments& arguments) { return run_on_cuda(compile_plan(plan, options), arguments); });
        // What `math fast` takes on the device, such as its division, is not what it is here.
        expect_same("cuda by " + name + " differs", "cuda by " + name, outcome, is_exact && !has_library_ && !is_precision_changed_);
        tally_.count("compared", "cuda by " + name);
      }
    }
  }

  const Compiled& compiled_;
  const std::vector<Rung>& rungs_;
  const Run& run_;
  Tally& tally_;
  Tensors inputs_;
  std::vector<Outcome> reference_;   // what counts: of the lowered plan, then behind each line that changes precision
  std::vector<Standing> standing_;   // of each rung
  std::optional<Expectation> expectation_;
  bool has_library_ = false;
  bool is_precision_changed_ = false;  // by `math fast`, whose errors the oracle does not know
};

void check_text(const Plan& plan, const std::string& where) {
  guarded("printing " + where, [&] {
    if (parse_plan(print(plan)) != plan) throw Finding{"another plan comes back from the text", where + "\n" + print(plan)};
  });
}

}  // namespace

std::optional<Plan> finished_plan(const Plan& plan, std::string* refusal) {
  try {
    Plan result = guarded("the finishing passes", [&] { return finish(plan, Target{}); });
    check_text(result, "the thread stage");
    return result;
  } catch (const UserError& error) {
    if (refusal) *refusal = first_message(error);
    return std::nullopt;
  }
}

std::optional<Compiled> compile(const std::string& text, int index_bits, std::string* refusal) {
  try {
    Compiled compiled;
    const Program program = guarded("the frontend", [&] { return parse_program(text, "case.tw"); });
    compiled.fn = choose_fn(program, "f");
    CallClass call_class;
    call_class.index_bits = std::max(index_bits, index_bits_of(compiled.fn));
    std::vector<ScheduleLine> lines;
    std::vector<Fact> when;
    for (const Schedule& schedule : program.schedules) {
      lines = schedule.lines;
      when = schedule.when;
    }
    guarded("lowering", [&] {
      if (const auto faults = verify(compiled.fn); !faults.empty()) throw Finding{"the frontend's fn does not verify", faults.front()};
      if (const auto faults = verify(lower(compiled.fn)); !faults.empty()) throw Finding{"the lowered plan does not verify", faults.front()};
    });
    compiled.rungs = guarded("a schedule line", [&] { return build_rungs(compiled.fn, "drawn", "", when, lines, Target{}, call_class); });
    for (const Rung& rung : compiled.rungs) check_text(rung.plan, rung.line.empty() ? "the lowered plan" : "behind `" + rung.line + "`");
    return compiled;
  } catch (const UserError& error) {
    if (refusal) *refusal = first_message(error);
    return std::nullopt;
  }
}

bool check_run(const Compiled& compiled, const Run& run, const Devices& devices, Tally& tally) { return Comparer(compiled, run, tally).run(devices); }

}  // namespace tilewright::fuzz
