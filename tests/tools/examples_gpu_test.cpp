// Every example on the GPU: each schedule of each fn and each hand kernel, against the definition by all three kinds of
// data at sizes 1, a prime and one beyond a tile; the two generators bit for bit the same.
#include <doctest/doctest.h>

#include <filesystem>
#include <random>

#include "runtime/cuda_device.h"
#include "runtime/hand.h"
#include "runtime/instruments.h"
#include "runtime/library/hands.h"
#include "tests/locations.h"
#include "tools/measure.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t sizes[] = {1, 17, 67};
constexpr Instrument instruments[] = {Instrument::Exact, Instrument::Random, Instrument::Special};

// What is wrong with a run's outputs, empty where nothing is.
std::string faults_of(const RunReport& report, const Expectation& expected, const Arguments& results) {
  std::string text;
  if (report.error && !expected.oracle.error) text = "a checked access left its tensor";
  for (const std::string& fault : report.faults) text += fault + "\n";
  for (const OracleTensor& output : expected.oracle.outputs) {
    const Comparison comparison = compare(output, results.tensors.at(output.name), expected.rule);
    if (!comparison.is_right()) text += comparison.text + "\n";
  }
  return text;
}

class Example {
 public:
  explicit Example(const fs::path& file) : folder_(file.parent_path().string()), program_(load_program(file.string())), arch_(use_gpu().arch) {}

  const TensorFn& fn(const std::string& name) const { return choose_fn(program_, name); }
  std::size_t compilations() const { return compiled_.size(); }

  // Every schedule that fits sizes of the caller's choice.
  void run_fitting(const TensorFn& fn, const DimMap& dims) {
    for (const Schedule& schedule : program_.schedules)
      if (schedule.fn == fn.name && (schedule.arch.empty() || schedule.arch == arch_) && failed_conditions(fn, schedule.when, dims).empty())
        run_at(fn, schedule.name, dims);
  }

  void run() {
    for (const TensorFn& fn : program_.fns) {
      bool has_tensor = false;
      for (const Param& param : fn.params) has_tensor |= !param.shape.empty();
      if (!has_tensor) continue;  // a helper, inlined where it is called
      INFO("fn ", fn.name);
      run_schedule(fn, "none", {});
      for (const Schedule& schedule : program_.schedules)
        if (schedule.fn == fn.name && (schedule.arch.empty() || schedule.arch == arch_)) run_schedule(fn, schedule.name, schedule.when);
      run_hands(fn);
    }
  }

 private:
  void run_schedule(const TensorFn& fn, const std::string& schedule, const std::vector<Fact>& when) {
    for (const std::int64_t size : sizes) run_at(fn, schedule, small_dims(fn, when, size));
  }

  void run_at(const TensorFn& fn, const std::string& schedule, const DimMap& dims) {
    std::string place;
    for (const auto& [name, value] : dims) place += " " + name + " = " + std::to_string(value);
    INFO("schedule ", schedule, " at", place);
    SelectionRequest request;
    request.schedule = schedule;
    request.arch = arch_;
    const Selection selection = select_schedule(program_, fn, dims, request);
    const Plan plan = rungs_of(fn, selection, dims, arch_).back().plan;
    for (const Instrument instrument : instruments) {
      INFO("instrument ", static_cast<int>(instrument));
      const Arguments arguments = bind_arguments(plan, instrument_inputs(instrument, fn, dims, 1), dims);
      const Expectation expected = expect(fn, instrument, arguments);
      Arguments by_nvrtc = arguments, by_llvm = arguments;
      CHECK(faults_of(run_on_cuda(compiled(plan, Backend::Nvrtc), by_nvrtc), expected, by_nvrtc) == "");
      CHECK(faults_of(run_on_cuda(compiled(plan, Backend::Llvm), by_llvm), expected, by_llvm) == "");
      for (const Param& param : fn.params)
        if (param.kind != ParamKind::In) {
          const Comparison same = compare(by_nvrtc.tensors.at(param.name), by_llvm.tensors.at(param.name), param.name);
          CHECK_MESSAGE(same.is_right(), "NVRTC and LLVM differ: ", same.text);
        }
    }
  }

  void run_hands(const TensorFn& fn) {
    for (const std::int64_t size : sizes) {
      DimMap dims = small_dims(fn, {}, size);
      for (auto& [name, value] : dims) value = (value + 3) / 4 * 4;  // hand kernels with vectors say so in their `when`
      for (const HandProgram& hand : hand_programs(program_, fn, folder_, dims)) {
        INFO("hand kernel ", hand.name, ", size ", size);
        const CompiledHand compiled = compile_hand(hand, arch_);
        const Plan plan = lower(fn);
        for (const Instrument instrument : instruments) {
          const Arguments arguments = bind_arguments(plan, instrument_inputs(instrument, fn, dims, 1), dims);
          const Expectation expected = expect(fn, instrument, arguments);
          Arguments results = arguments;
          CHECK(faults_of(run_hand_on_cuda(compiled, plan, results), expected, results) == "");
        }
      }
    }
  }

  // A plan is compiled once for all sizes of its class.
  const CompiledPlan& compiled(const Plan& plan, Backend backend) {
    const std::string key = print(plan) + (backend == Backend::Llvm ? "llvm" : "nvrtc");
    auto found = compiled_.find(key);
    if (found == compiled_.end()) {
      CompileOptions options;
      options.backend = backend;
      options.arch = arch_;
      found = compiled_.emplace(key, compile_plan(finish(plan, target_for(arch_)), options)).first;
    }
    return found->second;
  }

  std::string folder_;
  Program program_;
  std::string arch_;
  std::map<std::string, CompiledPlan> compiled_;
};

}  // namespace

TEST_SUITE("gpu: examples") {
  TEST_CASE("examples: every schedule by both generators, every hand kernel") {
    for (const fs::directory_entry& folder : fs::directory_iterator(source_root() / "examples")) {
      if (!folder.is_directory()) continue;
      for (const fs::directory_entry& file : fs::directory_iterator(folder.path()))
        if (file.path().extension() == ".tw") {
          INFO("file ", file.path().filename().string());
          Example(file.path()).run();
        }
    }
  }

  TEST_CASE("examples: the tensor-core matmul at random sizes and at every count of trips") {
    if (use_gpu().arch != "sm_90a") TILEWRIGHT_SKIP("the schedules are for sm_90a");
    constexpr std::int64_t extents[] = {1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 1008};
    Example example(source_root() / "examples/ch16_hopper_matmul/matmul.tw");
    const TensorFn& fn = example.fn("matmul");
    std::mt19937 random(1);
    const auto any = [&] { return extents[random() % std::size(extents)]; };
    for (int n = 0; n < 200; ++n) {
      const std::int64_t m = any(), columns = any(), k = any();
      example.run_fitting(fn, {{"M", m}, {"N", columns}, {"K", k}});
    }
    for (const std::int64_t k : {0, 8, 64, 192, 256, 320}) example.run_fitting(fn, {{"M", 300}, {"N", 520}, {"K", k}});
    CHECK(example.compilations() <= 20);
  }
}

}  // namespace tilewright
