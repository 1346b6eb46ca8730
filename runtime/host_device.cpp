// Running a plan on the cores of this host; see host_device.h.
#include "runtime/host_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "runtime/table.h"

namespace tilewright {

namespace {

int thread_count(const HostOptions& options) {
  return options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// A few pieces a thread, so that none waits long for the last one.
constexpr std::int64_t pieces_per_thread = 8;
// Where the clock may stop it: small ones, for one that takes long is not cut short.
constexpr std::int64_t pieces_with_limit = 8192;

// Runs a kernel, or as much of it as a limit allows; gives the share that was run.
double run_kernel(const HostKernel& kernel, const std::vector<void*>& tensors, const std::vector<std::int64_t>& dims,
                  int threads, double limit_ms, std::int64_t* error_word) {
  const std::int64_t iterations = kernel.iterations(dims);
  if (iterations <= 0) return 1;
  const std::int64_t used = std::min<std::int64_t>(threads, iterations);
  if (used == 1 && limit_ms <= 0) {
    kernel.run(tensors, dims, 0, iterations, error_word);
    return 1;
  }
  const std::int64_t pieces = limit_ms > 0 ? pieces_with_limit : used * pieces_per_thread;
  const std::int64_t piece = std::max<std::int64_t>(1, iterations / pieces);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(limit_ms);
  std::atomic<std::int64_t> next{0};
  std::atomic<std::int64_t> done{0};
  const auto work = [&] {
    for (std::int64_t first = next.fetch_add(piece); first < iterations; first = next.fetch_add(piece)) {
      const std::int64_t last = std::min(first + piece, iterations);
      kernel.run(tensors, dims, first, last, error_word);
      done += last - first;
      if (limit_ms > 0 && std::chrono::steady_clock::now() > end) break;
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::int64_t index = 1; index < used; ++index) workers.emplace_back(work);
    work();
  }
  return static_cast<double>(done.load()) / static_cast<double>(iterations);
}

// Stores the value in every element.
void clear_tensor(HostTensor& tensor, const Expr& value) {
  const auto scalar = constant_scalar(value);
  if (!scalar) internal_error("run on cpu: a clear without a constant");
  const auto width = static_cast<std::size_t>(bytes_of(tensor.dtype));
  for (std::size_t at = 0; at < tensor.data.size(); at += width)
    store_scalar(tensor.dtype, tensor.data.data() + at, *scalar);
}

}  // namespace

HostPlan::HostPlan(const Plan& plan) : plan_(plan) {
  for (const Kernel* kernel : kernels_of(plan_)) {
    if (kernel->stage == Stage::Thread) {
      throw UserError(
          {}, fmt::format("kernel `{}` is at thread stage, and the cpu device runs the tile stage", kernel->name),
          "run it with --device cuda or --device sim");
    }
    kernels_.push_back(compile_for_host(plan_, *kernel));
  }
}

RunReport HostPlan::run(Arguments& arguments, const HostOptions& options) const {
  const int threads = thread_count(options);
  const auto known = dim_values(plan_, arguments);
  std::vector<std::pair<std::string, std::int64_t>> names;
  std::vector<std::int64_t> dims;
  for (const Dim& dim : plan_.dims) {
    const auto value =
        std::find_if(known.begin(), known.end(), [&](const auto& each) { return each.first == dim.name; });
    // `resident(C)`: as many workers as there are threads.
    names.emplace_back(dim.name, value == known.end() ? threads : value->second);
    dims.push_back(names.back().second);
  }

  std::map<std::string, HostTensor> temporaries;
  std::vector<void*> tensors;
  for (const Param& param : plan_.params) tensors.push_back(arguments.tensors.at(param.name).data.data());
  for (const Temp& temp : plan_.temps) {
    HostTensor& tensor =
        temporaries.emplace(temp.name, make_tensor(temp.dtype, shape_of(temp.shape, names))).first->second;
    poison(tensor);
    tensors.push_back(tensor.data.data());
  }
  for (const Step& step : plan_.steps) {
    const auto* table = std::get_if<Table>(&step);
    if (!table) continue;
    HostTensor& tensor = temporaries.emplace(table->name, make_table(*table, names)).first->second;
    tensors.push_back(tensor.data.data());
  }

  std::array<std::int64_t, 3> error_word{};
  double scaled_ms = 0;
  const auto start = std::chrono::steady_clock::now();
  std::size_t kernel = 0;
  RunReport report;
  for (const Step& step : plan_.steps) {
    if (const auto* clear = std::get_if<Clear>(&step)) {
      const auto temporary = temporaries.find(clear->tensor);
      clear_tensor(temporary == temporaries.end() ? arguments.tensors.at(clear->tensor) : temporary->second,
                   clear->value);
    } else if (std::holds_alternative<Kernel>(step)) {
      const auto kernel_start = std::chrono::steady_clock::now();
      const double share =
          run_kernel(*kernels_.at(kernel++), tensors, dims, threads, options.limit_ms, error_word.data());
      const double spent =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - kernel_start).count();
      report.share = std::min(report.share, share);
      scaled_ms += spent / share;
    }
  }
  report.milliseconds = options.limit_ms > 0 ? scaled_ms : std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (error_word[0] != 0) report.error = ErrorHit{static_cast<int>(error_word[0] - 1), error_word[1]};
  return report;
}

RunReport run_on_host(const Plan& plan, Arguments& arguments, const HostOptions& options) {
  return HostPlan(plan).run(arguments, options);
}

}  // namespace tilewright
