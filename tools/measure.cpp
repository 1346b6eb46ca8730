// Candidates for one job, compiled, checked and timed side by side.
#include "tools/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <thread>

#include "ir/diagnostic.h"
#include "runtime/cublas.h"
#include "runtime/disassemble.h"
#include "runtime/hand.h"
#include "runtime/host_device.h"
#include "runtime/library/access_report.h"
#include "runtime/library/hands.h"
#include "runtime/library/ladder/forms.h"
#include "runtime/library/ladder/parts.h"
#include "runtime/library/ladder/sass.h"
#include "runtime/library/verdict.h"
#include "runtime/parallel.h"
#include "runtime/plan_ptx.h"
#include "runtime/ptx/ptx.h"
#include "tools/progress.h"
#include "tools/resources.h"

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

constexpr double loops_limit_ms = 1500;                 // plain loops are stopped then, and scaled
constexpr double most_loop_bytes = 1.5e9;               // of tensors, on a machine without a GPU

// One thing to be timed, and what it was made from.
struct Entry {
  LadderRow row;
  std::optional<CompiledPlan> plan;
  std::optional<CompiledHand> hand;
  std::optional<HandPtx> hand_ptx;
  const Rung* rung = nullptr;
  Selection selection;  // of a rung: the lines that it stands for
  std::unique_ptr<Candidate> candidate;
  bool has_code() const { return plan || hand; }
};

std::string_view backend_name(Backend backend) { return backend == Backend::Llvm ? "llvm" : "nvrtc"; }
Backend other(Backend backend) { return backend == Backend::Llvm ? Backend::Nvrtc : Backend::Llvm; }

std::string code_of(const CompiledPlan& compiled) {
  std::string code;
  for (const CompiledKernel& kernel : compiled.kernels) code += instruction_bytes(kernel.cubin, kernel.source.kernel);
  return code;
}

CompileTime compile_time_of(const CompiledPlan& compiled, Backend backend) {
  CompileTime time{std::string(backend_name(backend)), 0, 0};
  for (const CompiledKernel& kernel : compiled.kernels) time.generate_ms += kernel.generate_ms, time.compile_ms += kernel.compile_ms;
  return time;
}

// A value of a sweep.
struct Swept {
  std::string name;
  const Rung* rung = nullptr;  // null: refused
  Selection selection;
  std::string refusal;
};

class Measuring {
 public:
  Measuring(const Options& options, const LoadedProgram& loaded, const MeasureRequest& request) : options_(options), loaded_(loaded), request_(request) {}

  Ladder run() {
    const TensorFn& fn = choose_fn(loaded_.program, options_.fn);
    const BenchItem* bench = nullptr;
    Settings settings = bench_settings(options_, loaded_.program, fn, &bench);
    if (options_.device == "cpu" || options_.device == "interpreter")
      throw UserError({}, fmt::format("`--device {}`: times are taken on a GPU only", options_.device), "take --device sim: the rungs are compiled and checked on the simulator, hand kernels on the PTX machine");
    call_ = request_.sweep ? prepare_sweep(fn, settings) : prepare_with(loaded_, fn, settings);
    std::vector<GpuInfo> gpus = list_gpus();
    has_gpu_ = !gpus.empty() && call_.settings.execution.device == DeviceKind::Cuda;
    result_.verb = request_.verb;
    result_.fn = fn.name;
    result_.schedule = request_.every_schedule ? "" : call_.selection.made_by_rules ? "by rules" : call_.selection.schedule;
    result_.bench = bench ? bench->name : "";
    result_.dims = call_.dims;
    result_.device = has_gpu_ ? gpus[0].name : gpus.empty() ? "no GPU" : "sim, without times";
    result_.driver = has_gpu_ ? gpus[0].driver : "";
    result_.arch = call_.settings.execution.arch;
    result_.program_file = options_.file;
    if (request_.code) result_.program = loaded_.sources.empty() ? "" : loaded_.sources.front().text;
    card_ = options_.gpu.empty() ? card_of_gpu(has_gpu_ ? gpus[0].name : "", result_.arch) : &card_by_name(options_.gpu);
    if (card_ != nullptr) result_.card = card_->name, result_.card_title = card_->title;
    work_ = work_of(fn, call_.dims);
    result_.work_operations = work_.operations;
    result_.compulsory_bytes = work_.bytes;
    if (request_.sweep) compile_sweep();
    else if (request_.every_schedule) compile_schedules(settings);
    else compile_rungs();
    compile_others(settings);
    compile_hands();
    if (request_.parts) count();
    if (has_gpu_) result_.protocol = request_.timing;
    if (has_gpu_) on_gpu();
    else on_simulator();
    if (request_.code) add_forms();
    if (request_.code && request_.parts) add_notes();
    if (request_.loops) time_loops();
    for (Entry& entry : entries_) result_.rows.push_back(std::move(entry.row));
    if (!request_.sweep) add_verdicts(result_);  // the values do not build on each other
    return std::move(result_);
  }

 private:
  CompileOptions compile_options(Backend backend) const {
    CompileOptions compile;
    compile.backend = backend;
    compile.arch = result_.arch;
    compile.use_cache = !options_.no_cache && !request_.both_compile_times;  // what the cache gives has no time
    return compile;
  }

  bool wants_sass() const { return request_.parts || request_.instructions; }

  void compile_rungs() {
    std::size_t first = request_.every_rung ? 0 : call_.rungs.size() - 1;
    std::string before;
    for (std::size_t n = first; n < call_.rungs.size(); ++n)
      for (Backend backend : request_.backends) {
        progress_.step(fmt::format("compile rung {} of {}", n, call_.rungs.size() - 1));
        const std::string name = n == 0 ? "(lowered)" : call_.rungs[n].line;
        compile_rung(&call_.rungs[n], request_.every_rung ? name : result_.schedule.empty() ? "generated" : "\"" + result_.schedule + "\"", backend, prefix(call_.selection, n));
        Entry& entry = entries_.back();
        std::string code = code_of(*entry.plan);
        if (request_.every_rung && request_.backends.size() == 1) {
          entry.row.same_code = !before.empty() && code == before;
          if (entry.row.same_code) keep_resources(entry.row, entries_[entries_.size() - 2].row);
          before = std::move(code);
        }
      }
  }

  // The call for each value of the sweep; the first that is not refused stands for all.
  PreparedCall prepare_sweep(const TensorFn& fn, const Settings& settings) {
    std::optional<PreparedCall> first;
    for (const std::int64_t value : request_.sweep->values) {
      Settings own = settings;
      own.schedule.parameters[request_.sweep->name] = value;
      Swept swept{fmt::format("{} = {}", request_.sweep->name, value), nullptr, {}, ""};
      try {
        PreparedCall call = prepare_with(loaded_, fn, own);
        swept.selection = call.selection;
        others_.push_back(call.rungs.back());
        swept.rung = &others_.back();
        if (!first) first = std::move(call);
      } catch (const UserError& error) {
        swept.refusal = error.diagnostics().front().message;
      }
      swept_.push_back(std::move(swept));
    }
    if (!first) throw UserError({}, fmt::format("every value of `{}` is refused; {}", request_.sweep->name, swept_.front().refusal));
    return std::move(*first);
  }

  void compile_sweep() {
    for (const Swept& swept : swept_) {
      progress_.step("compile " + swept.name);
      if (swept.rung != nullptr) compile_rung(swept.rung, swept.name, request_.backends.front(), swept.selection);
      else add_absent(swept.name, "refused: " + swept.refusal);
    }
  }

  // The lowered plan, then each schedule of the fn, in the order of the program.
  void compile_schedules(const Settings& settings) {
    compile_rung(&call_.rungs.front(), "(lowered)", request_.backends.front(), prefix(call_.selection, 0));
    for (const auto& [schedule, against] : weigh_schedules(loaded_.program, *call_.fn, call_.dims, settings.schedule)) {
      progress_.step(fmt::format("compile \"{}\"", schedule->name));
      if (!against.empty()) {
        add_absent(schedule->name, fmt::format("passed over: {}", fmt::join(against, "; ")));
        continue;
      }
      Settings own = settings;
      own.schedule.schedule = schedule->name;
      PreparedCall call = prepare_with(loaded_, *call_.fn, own);
      others_.push_back(call.rungs.back());
      compile_rung(&others_.back(), schedule->name, request_.backends.front(), call.selection);
    }
  }

  // A row without a kernel, and why.
  void add_absent(const std::string& name, std::string note) {
    Entry& entry = entries_.emplace_back();
    entry.row.name = name;
    entry.row.backend = backend_name(request_.backends.front());
    entry.row.note = std::move(note);
  }

  // With its first `count` lines only.
  static Selection prefix(Selection selection, std::size_t count) {
    selection.lines.resize(std::min(count, selection.lines.size()));
    return selection;
  }

  // Finishes and compiles the plan of `rung`, which outlives the entry.
  void compile_rung(const Rung* rung, std::string name, Backend backend, Selection selection) {
    Entry entry;
    for (const ScheduleLine& line : selection.lines) entry.row.lines.push_back(line.text);
    entry.selection = std::move(selection);
    entry.rung = rung;
    entry.row.name = std::move(name);
    entry.row.backend = backend_name(backend);
    const Plan threads = thread_stage(rung->plan, target_for(result_.arch));
    entry.plan = compile_plan(threads, compile_options(backend));
    entry.row.compile.push_back(compile_time_of(*entry.plan, backend));
    if (request_.both_compile_times) {
      try {
        entry.row.compile.push_back(compile_time_of(compile_plan(threads, compile_options(other(backend))), other(backend)));
      } catch (const MachineError& error) {
        entry.row.note = fmt::format("{}: {}", backend_name(other(backend)), error.what());
      }
    }
    describe_plan(entry.row, *entry.plan, result_.arch, wants_sass());
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
      for (Backend backend : request_.backends) compile_rung(&others_.back(), name, backend, call.selection);
    }
  }

  void compile_hands() {
    std::vector<HandProgram> hands;
    if (!request_.hand_file.empty()) hands.push_back(hand_from_file(request_.hand_file, *call_.fn));
    else if (request_.hand) hands = hand_programs(loaded_.program, *call_.fn, loaded_.folder, call_.dims);
    for (HandProgram& hand : hands) {
      progress_.step(fmt::format("compile the hand kernel {}", hand.name));
      Entry entry;
      entry.row.kind = RowKind::Hand;
      entry.row.name = hand.name;
      entry.row.backend = "hand";
      entry.hand = compile_hand(hand, result_.arch, !options_.no_cache && !request_.both_compile_times);
      entry.row.compile.push_back({"hand", 0, entry.hand->compile_ms});
      if ((!has_gpu_ && request_.check) || request_.parts) entry.hand_ptx = compile_hand_to_ptx(hand, result_.arch, !options_.no_cache);
      describe_hand(entry.row, *entry.hand, result_.arch, call_.dims, wants_sass());
      if (!entry.hand->source.left_out.empty()) entry.row.note = fmt::format("left out: {}", fmt::join(entry.hand->source.left_out, "; "));
      entries_.push_back(std::move(entry));
    }
  }

  // Blocks of each kernel on the PTX machine, at the sizes of the call, on tensors without data.
  void count() {
    if (card_ == nullptr) {
      for (Entry& entry : entries_)
        if (entry.has_code()) entry.row.not_counted.push_back(fmt::format("no rates of {} ({}) are known: name a card by --gpu", result_.device, result_.arch));
      return;
    }
    progress_.step(fmt::format("count {} kernels on the PTX machine", entries_.size()));
    const Plan& signature = signature_of();
    for_each_in_parallel(entries_.size(), [&](std::size_t n) {
      Entry& entry = entries_[n];
      if (entry.row.same_code || !entry.has_code()) return;
      Arguments arguments = arguments_without_data();
      std::vector<std::string> open = std::move(entry.row.not_counted);
      const std::vector<GridCounts> counts = entry.plan ? count_on_ptx(entry.plan->plan, arguments, entry.plan->options) : count_hand_on_ptx(*entry.hand_ptx, signature, arguments);
      add_parts(entry.row, work_, counts, *card_, has_tensor_instructions(entry.row.instructions));
      entry.row.not_counted.insert(entry.row.not_counted.begin(), open.begin(), open.end());
    });
  }

  Arguments arguments_without_data() {
    TensorFn scalars = *call_.fn;
    std::erase_if(scalars.params, [](const Param& param) { return !param.shape.empty() || param.kind == ParamKind::Out; });
    InputRequest request = call_.settings.inputs;
    request.inputs.clear();
    Arguments arguments;
    arguments.dims = call_.dims;
    arguments.tensors = make_inputs(scalars, call_.dims, request);
    const std::vector<std::pair<std::string, std::int64_t>> dims(call_.dims.begin(), call_.dims.end());
    for (const Param& param : call_.fn->params)
      if (arguments.tensors.count(param.name) == 0) arguments.tensors[param.name] = HostTensor{param.dtype, shape_of(param.shape, dims), {}};
    return arguments;
  }

  void add_forms() {
    progress_.step(fmt::format("texts of {} rows", entries_.size()));
    for_each_in_parallel(entries_.size(), [&](std::size_t n) {
      Entry& entry = entries_[n];
      if (entry.rung) entry.row.forms = forms_of(entry.rung->plan, entry.plan->options, &entry.row.note);
      else if (entry.hand) entry.row.forms = forms_of(entry.hand->program, result_.arch, &entry.row.note);
    });
  }

  // Every access of the rungs, in the simulator, at sizes of a few blocks.
  void add_notes() {
    progress_.step("count accesses in the simulator");
    std::int64_t size = 160;  // rows of whole sectors, and no two sizes alike
    for (const std::string& dim : call_.fn->dims) result_.note_dims[dim] = size, size += 32;
    result_.note_dims = fitting_dims(*call_.fn, call_.selection.when, result_.note_dims);
    std::map<std::string, HostTensor> inputs;
    try {
      inputs = make_inputs(*call_.fn, result_.note_dims, call_.settings.inputs);
    } catch (const UserError&) {  // a file that was given fits one size
      result_.note_dims.clear();
      return;
    }
    for_each_in_parallel(entries_.size(), [&](std::size_t n) {
      Entry& entry = entries_[n];
      if (entry.rung == nullptr || entry.row.same_code) return;
      AccessRequest request;
      request.fn = call_.fn;
      if (!loaded_.plan) request.selection = &entry.selection, request.sources = loaded_.sources;
      request.dims = result_.note_dims;
      request.arch = result_.arch;
      request.seed = options_.seed;
      try {
        entry.row.notes = notes_of(access_report(entry.rung->plan, inputs, request));
      } catch (const UserError& error) {
        entry.row.not_counted.push_back(fmt::format("accesses in the simulator: {}", error.diagnostics().front().message));
      }
    });
  }

  // The naive plan on this host: on one core, and on all.
  void time_loops() {
    std::vector<LadderRow> rows(2);
    for (LadderRow& row : rows) row.kind = RowKind::Loops, row.backend = "cpu", row.kernels = static_cast<int>(kernels_of(call_.rungs.front().plan).size());
    rows[0].name = "plain loops, one core";
    rows[1].name = fmt::format("plain loops, {} cores", std::max(1u, std::thread::hardware_concurrency()));
    try {
      if (work_.bytes > most_loop_bytes && !has_gpu_) throw UserError({}, fmt::format("the tensors take {} bytes, and plain loops are timed up to {}", number_text(work_.bytes), number_text(most_loop_bytes)));
      const HostPlan plan(call_.rungs.front().plan);
      if (inputs_.empty()) inputs_ = make_inputs(*call_.fn, call_.dims, call_.settings.inputs);
      Arguments arguments = bind_arguments(signature_of(), inputs_, call_.dims);
      for (std::size_t n = 0; n < 2; ++n) {
        progress_.step(rows[n].name);
        const RunReport report = plan.run(arguments, HostOptions{n == 0 ? 1 : 0, loops_limit_ms});
        Timing timing;
        timing.median_ms = timing.lowest_ms = timing.highest_ms = report.milliseconds;
        timing.launches = 1;
        timing.is_single = report.share >= 1;
        timing.share = report.share;
        rows[n].timing = timing;
        rows[n].check = "not checked";
      }
    } catch (const UserError& error) {
      for (LadderRow& row : rows) row.note = fmt::format("absent: {}", error.diagnostics().front().message);
    }
    result_.rows.insert(result_.rows.begin(), rows.begin(), rows.end());
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
    if (!reference_) reference_ = reference_of(*call_.fn, inputs, dims, options_.bound == "worst", 200'000'000);
    const Verdict verdict = judge(*reference_, plan, results);
    entry.row.is_wrong = !verdict.is_right();
    entry.row.check = verdict.is_right() ? fmt::format("right ({:.2f} of the bound)", verdict.worst_ratio) : verdict.text;
  }

  void on_gpu() {
    use_gpu();
    inputs_ = make_inputs(*call_.fn, call_.dims, call_.settings.inputs);
    const std::map<std::string, HostTensor>& inputs = inputs_;
    Arguments arguments = bind_arguments(signature_of(), inputs, call_.dims);
    if (request_.check && !options_.once)
      for (Entry& entry : entries_) {
        if (!entry.has_code() || entry.row.same_code) continue;
        progress_.step(fmt::format("check `{}`", entry.row.name));
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
      if (entry.row.same_code || !entry.has_code()) continue;
      if (entry.plan) entry.candidate = std::make_unique<PlanCandidate>(entry.row.name, *entry.plan, arguments, tensors, stream);
      else entry.candidate = std::make_unique<HandCandidate>(*entry.hand, plan_for_hands_, arguments, tensors, stream);
      candidates.push_back(entry.candidate.get());
      owners.push_back(n);
    }
    if (request_.with_library) add_library(tensors, candidates, owners);
    progress_.step(fmt::format("time {} candidates in {} rounds", candidates.size(), request_.timing.rounds));
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
      if (!request_.check || entry.row.same_code || !entry.has_code()) continue;
      progress_.step(fmt::format("check `{}` without a GPU", entry.row.name));
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
  Ladder result_;
  std::vector<Entry> entries_;
  std::deque<Rung> others_;
  std::vector<Swept> swept_;
  std::map<std::string, HostTensor> inputs_;  // at the sizes of the call, once they are made
  std::optional<Reference> reference_;        // what they should give; one set of inputs is judged
  Plan plan_for_hands_;
  const Card* card_ = nullptr;
  Work work_;
  Progress progress_;
  bool has_gpu_ = false;
};

}  // namespace

Ladder measure(const Options& options, const LoadedProgram& loaded, const MeasureRequest& request) { return Measuring(options, loaded, request).run(); }

}  // namespace tilewright
