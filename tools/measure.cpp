// Candidates for one job, compiled, checked and timed side by side.
#include "tools/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "ir/diagnostic.h"
#include "runtime/cublas.h"
#include "runtime/disassemble.h"
#include "runtime/hand.h"
#include "runtime/library/hands.h"
#include "runtime/ptx/ptx.h"

namespace tilewright {

const BenchItem* choose_bench(const Program& program, const TensorFn& fn, const std::string& name) {
  std::string known;
  const BenchItem* first = nullptr;
  for (const BenchItem& bench : program.benches) {
    if (bench.fn != fn.name) continue;
    if (bench.name == name) return &bench;
    if (!first) first = &bench;
    known += (known.empty() ? "" : ", ") + bench.name;
  }
  if (!name.empty()) throw UserError({}, fmt::format("there is no bench \"{}\"", name), known.empty() ? fmt::format("`{}` has none", fn.name) : "there are " + known);
  return first;
}

Settings bench_settings(const Options& options, const Program& program, const TensorFn& fn, const BenchItem** bench) {
  Settings settings = settings_of(options, program, fn);
  *bench = nullptr;
  bool sizes_given = !options.inputs.empty();
  for (const auto& [name, value] : settings.inputs.values) sizes_given |= std::find(fn.dims.begin(), fn.dims.end(), name) != fn.dims.end();
  if (sizes_given && options.bench.empty()) return settings;
  *bench = choose_bench(program, fn, options.bench);
  if (*bench) {
    for (const auto& [name, value] : (*bench)->sizes) settings.inputs.values.emplace(name, std::to_string(value));
    for (const auto& [name, value] : (*bench)->reals) settings.inputs.values.emplace(name, fmt::format("{}", value));
  }
  return settings;
}

DimMap small_dims(const TensorFn& fn, const std::vector<Fact>& facts, std::int64_t about) {
  DimMap dims;
  for (const std::string& dim : fn.dims) {
    dims[dim] = about;
    about += 5;  // no two alike, where they need not be
  }
  return fitting_dims(fn, facts, dims);
}

namespace {

// One thing to be timed, and what it was made from.
struct Entry {
  MeasuredRow row;
  std::optional<CompiledPlan> plan;
  std::optional<CompiledHand> hand;
  std::optional<HandPtx> hand_ptx;  // without a GPU
  const Rung* rung = nullptr;
  std::unique_ptr<Candidate> candidate;
};

std::string code_of(const CompiledPlan& compiled) {
  std::string code;
  for (const CompiledKernel& kernel : compiled.kernels) code += instruction_bytes(kernel.cubin, kernel.source.kernel);
  return code;
}

class Measuring {
 public:
  Measuring(const Options& options, const LoadedProgram& loaded, const MeasureRequest& request) : options_(options), loaded_(loaded), request_(request) {}

  Measurement run() {
    const TensorFn& fn = choose_fn(loaded_.program, options_.fn);
    const BenchItem* bench = nullptr;
    Settings settings = bench_settings(options_, loaded_.program, fn, &bench);
    if (options_.device == "cpu" || options_.device == "interpreter")
      throw UserError({}, fmt::format("`--device {}`: times are taken on a GPU only", options_.device), "take --device sim: the rungs are compiled and checked on the simulator, hand kernels on the PTX machine");
    call_ = prepare_with(loaded_, fn, settings);
    std::vector<GpuInfo> gpus = list_gpus();
    has_gpu_ = !gpus.empty() && call_.settings.execution.device == DeviceKind::Cuda;
    result_.fn = fn.name;
    result_.schedule = call_.selection.made_by_rules ? "by rules" : call_.selection.schedule;
    result_.bench = bench ? bench->name : "";
    result_.dims = call_.dims;
    result_.device = has_gpu_ ? gpus[0].name : gpus.empty() ? "no GPU" : "sim, without times";
    result_.arch = call_.settings.execution.arch;
    compile_rungs();
    compile_others(settings);
    compile_hands();
    if (has_gpu_) on_gpu();
    else on_simulator();
    for (Entry& entry : entries_) result_.rows.push_back(std::move(entry.row));
    return std::move(result_);
  }

 private:
  void compile_rungs() {
    std::size_t first = request_.every_rung ? 0 : call_.rungs.size() - 1;
    std::string before;
    for (std::size_t n = first; n < call_.rungs.size(); ++n)
      for (Backend backend : request_.backends) {
        const std::string name = n == 0 ? "(lowered)" : call_.rungs[n].line;
        compile_rung(&call_.rungs[n], request_.every_rung ? name : result_.schedule.empty() ? "generated" : "\"" + result_.schedule + "\"", backend);
        Entry& entry = entries_.back();
        std::string code = code_of(*entry.plan);
        if (request_.every_rung && request_.backends.size() == 1) {
          entry.row.same_code = !before.empty() && code == before;
          before = std::move(code);
        }
      }
  }

  // Finishes and compiles the plan of `rung`, which outlives the entry.
  void compile_rung(const Rung* rung, std::string name, Backend backend) {
    CompileOptions compile;
    compile.backend = backend;
    compile.arch = result_.arch;
    compile.use_cache = !options_.no_cache;
    Entry entry;
    entry.rung = rung;
    entry.row.name = std::move(name);
    entry.row.backend = backend == Backend::Llvm ? "llvm" : "nvrtc";
    entry.plan = compile_plan(thread_stage(rung->plan, target_for(result_.arch)), compile);
    for (const CompiledKernel& kernel : entry.plan->kernels) {
      entry.row.generate_ms += kernel.generate_ms;
      entry.row.compile_ms += kernel.compile_ms;
      if (!kernel.resources) continue;
      entry.row.registers = std::max(entry.row.registers, kernel.resources->registers);
      entry.row.spill_bytes += kernel.resources->spill_store_bytes + kernel.resources->spill_load_bytes;
    }
    for (const Kernel* kernel : kernels_of(entry.plan->plan)) entry.row.shared_bytes = std::max(entry.row.shared_bytes, kernel->launch.shared_bytes);
    entry.row.kernels = static_cast<int>(entry.plan->kernels.size());
    entries_.push_back(std::move(entry));
  }

  // Each other schedule, or plan file, on the same tensors.
  void compile_others(const Settings& settings) {
    for (const std::string& other : request_.others) {
      LoadedProgram loaded;
      Settings own = settings;
      if (is_plan_file(other)) {
        loaded = load_plan_for(other, *call_.fn);
      } else {
        loaded.program = loaded_.program;
        own.schedule.schedule = other;
      }
      PreparedCall call = prepare_with(loaded, *call_.fn, own);
      others_.push_back(std::move(call.rungs.back()));
      const std::string name = is_plan_file(other) ? other : "\"" + call.selection.schedule + "\"";
      for (Backend backend : request_.backends) compile_rung(&others_.back(), name, backend);
    }
  }

  void compile_hands() {
    std::vector<HandProgram> hands;
    if (!request_.hand_file.empty()) hands.push_back(hand_from_file(request_.hand_file, *call_.fn));
    else if (request_.hand) hands = hand_programs(loaded_.program, *call_.fn, loaded_.folder, call_.dims);
    for (HandProgram& hand : hands) {
      Entry entry;
      entry.row.kind = RowKind::Hand;
      entry.row.name = hand.name;
      entry.row.backend = "hand";
      entry.hand = compile_hand(hand, result_.arch, !options_.no_cache);
      entry.row.compile_ms = entry.hand->compile_ms;
      if (!has_gpu_ && request_.check) entry.hand_ptx = compile_hand_to_ptx(hand, result_.arch, !options_.no_cache);
      for (const auto& [name, resources] : entry.hand->resources) {
        entry.row.registers = std::max(entry.row.registers, resources.registers);
        entry.row.spill_bytes += resources.spill_store_bytes + resources.spill_load_bytes;
        entry.row.shared_bytes = std::max<std::int64_t>(entry.row.shared_bytes, resources.shared_bytes);
      }
      entry.row.kernels = static_cast<int>(entry.hand->resources.size());
      if (!entry.hand->source.left_out.empty()) entry.row.note = fmt::format("left out: {}", fmt::join(entry.hand->source.left_out, "; "));
      entries_.push_back(std::move(entry));
    }
  }

  void judge_into(Entry& entry, const std::map<std::string, HostTensor>& inputs, const DimMap& dims, const Arguments& results, const RunReport& report) {
    const Plan& plan = entry.rung ? entry.rung->plan : call_.rungs.back().plan;
    if (report.error) {
      entry.row.is_wrong = true;
      entry.row.check = describe(plan, *report.error);
      return;
    }
    if (!report.faults.empty()) {
      entry.row.is_wrong = true;
      entry.row.check = report.faults.front();
      return;
    }
    if (call_.fn->statements.empty()) {
      entry.row.check = "not checked: a plan file says no definition (give the fn by -e)";
      return;
    }
    Verdict verdict = judge(*call_.fn, plan, inputs, dims, results, options_.bound == "worst", 200'000'000);
    entry.row.is_wrong = !verdict.is_right();
    entry.row.check = verdict.is_right() ? fmt::format("right ({:.2f} of the bound)", verdict.worst_ratio) : verdict.text;
  }

  void on_gpu() {
    use_gpu();
    std::map<std::string, HostTensor> inputs = make_inputs(*call_.fn, call_.dims, call_.settings.inputs);
    Arguments arguments = bind_arguments(signature_of(), inputs, call_.dims);
    if (request_.check && !options_.once)
      for (Entry& entry : entries_) {
        Arguments results = arguments;
        RunReport report = entry.plan ? run_on_cuda(*entry.plan, results) : run_hand_on_cuda(*entry.hand, signature_of(), results);
        judge_into(entry, inputs, call_.dims, results, report);
      }
    Stream stream;
    RotatedTensors tensors(signature_of(), arguments, stream, request_.timing.once);
    std::vector<const Candidate*> candidates;
    std::vector<std::size_t> owners;
    for (std::size_t n = 0; n < entries_.size(); ++n) {
      Entry& entry = entries_[n];
      if (entry.row.same_code) continue;
      if (entry.plan) entry.candidate = std::make_unique<PlanCandidate>(entry.row.name, *entry.plan, arguments, tensors, stream);
      else entry.candidate = std::make_unique<HandCandidate>(*entry.hand, plan_for_hands_, arguments, tensors, stream);
      candidates.push_back(entry.candidate.get());
      owners.push_back(n);
    }
    if (request_.library) add_library(tensors, candidates, owners);
    std::vector<Timing> timings = time_candidates(candidates, tensors.count(), stream, request_.timing);
    for (std::size_t n = 0; n < timings.size(); ++n) entries_[owners[n]].row.timing = timings[n];
    for (std::size_t n = 1; n < entries_.size(); ++n)
      if (entries_[n].row.same_code) entries_[n].row.timing = entries_[n - 1].row.timing;
    for (Entry& entry : entries_) entry.candidate.reset();
  }

  // cuBLAS, where the fn is a plain matrix product of two matrices.
  void add_library(const RotatedTensors& tensors, std::vector<const Candidate*>& candidates, std::vector<std::size_t>& owners) {
    auto product = plain_product(*call_.fn);
    if (!product) return;
    Entry entry;
    entry.row.kind = RowKind::Library;
    entry.row.name = "cuBLAS";
    entry.row.backend = "library";
    entry.row.check = "not checked";
    try {
      entry.candidate = cublas_matmul(product->dtype, evaluate(product->m), evaluate(product->n), evaluate(product->k), product->a, product->b, product->c, tensors);
      candidates.push_back(entry.candidate.get());
      owners.push_back(entries_.size());
    } catch (const MachineError& error) {
      entry.row.note = fmt::format("absent: {}", error.what());
    }
    entries_.push_back(std::move(entry));
  }

  std::int64_t evaluate(const Expr& expr) {
    return evaluate_index(expr, std::vector<std::pair<std::string, std::int64_t>>(call_.dims.begin(), call_.dims.end()));
  }

  // Without a GPU each rung runs on the simulator at small sizes, and each hand kernel on the PTX machine.
  void on_simulator() {
    result_.check_dims = small_dims(*call_.fn, call_.selection.when, 33);
    std::map<std::string, HostTensor> inputs = make_inputs(*call_.fn, result_.check_dims, call_.settings.inputs);
    Arguments arguments = bind_arguments(signature_of(), inputs, result_.check_dims);
    for (Entry& entry : entries_) {
      if (!request_.check) continue;
      Arguments results = arguments;
      if (!entry.plan) {
        judge_hand_into(entry);
        continue;
      }
      SimulatorOptions options;
      options.names_ir_lines = true;
      RunReport report = simulate(entry.plan->plan, results, options);
      judge_into(entry, inputs, result_.check_dims, results, report);
    }
  }

  void judge_hand_into(Entry& entry) {
    const std::vector<Fact>& when = entry.hand_ptx->program.when;
    const DimMap dims = failed_conditions(*call_.fn, when, result_.check_dims).empty() ? result_.check_dims : small_dims(*call_.fn, when, 33);
    try {
      const HandVerdict verdict = check_hand(*entry.hand_ptx, *call_.fn, signature_of(), dims, options_.seed, options_.bound == "worst");
      entry.row.is_wrong = !verdict.is_right;
      entry.row.check = verdict.text;
      if (!verdict.printed.empty()) announce(fmt::format("printed by {}:\n{}", entry.row.name, verdict.printed));
    } catch (const ptx::Unsupported& missing) {
      entry.row.check = fmt::format("not run: {}", missing.what());
    }
  }

  const Plan& signature_of() {
    plan_for_hands_ = call_.rungs.front().plan;
    return plan_for_hands_;
  }

  const Options& options_;
  const LoadedProgram& loaded_;
  const MeasureRequest& request_;
  PreparedCall call_;
  Measurement result_;
  std::vector<Entry> entries_;
  std::deque<Rung> others_;
  Plan plan_for_hands_;
  bool has_gpu_ = false;
};

}  // namespace

Measurement measure(const Options& options, const LoadedProgram& loaded, const MeasureRequest& request) { return Measuring(options, loaded, request).run(); }

}  // namespace tilewright
