// Comparison of results with the oracle.
#include "runtime/library/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "ir/scalar.h"
#include "runtime/instruments.h"

namespace tilewright {

std::vector<std::int64_t> tile_sizes_of(const Plan& plan) {
  std::set<std::int64_t> sizes;
  for (const Kernel* kernel : kernels_of(plan)) {
    auto note = [&](const std::vector<Axis>& axes) {
      for (const Axis& axis : axes)
        if (auto extent = integer_value(axis.hi); extent && *extent > 1) sizes.insert(*extent);
    };
    walk(kernel->body, [&](const Stmt& stmt) {
      if (const Loop* loop = as<Loop>(stmt); loop && loop->kind == LoopKind::Each) note(loop->axes);
      if (const Buffer* buffer = as<Buffer>(stmt); buffer && buffer->space == Space::Shared)
        for (const BufferAxis& axis : buffer->axes)
          if (axis.extent > 1) sizes.insert(axis.extent);
      return true;
    });
  }
  return {sizes.begin(), sizes.end()};
}

namespace {

// A sample of a large output: corners, the last 64 rows and columns thinly, and elements at random.
std::vector<std::int64_t> sample_of(const std::vector<std::int64_t>& shape, std::int64_t count) {
  std::int64_t elements = 1;
  for (std::int64_t extent : shape) elements *= extent;
  std::set<std::int64_t> chosen;
  std::mt19937_64 random(12345);
  std::uniform_int_distribution<std::int64_t> any(0, elements - 1);
  for (std::int64_t n = 0; n < count / 2; ++n) chosen.insert(any(random));
  for (std::int64_t n = 0; n < count / 2; ++n) {  // near the end of each axis
    std::int64_t flat = 0;
    for (std::int64_t extent : shape) {
      std::int64_t back = std::min<std::int64_t>(extent, 64);
      bool edge = random() & 1;
      std::uniform_int_distribution<std::int64_t> place(edge ? extent - back : 0, extent - 1);
      flat = flat * extent + place(random);
    }
    chosen.insert(flat);
  }
  chosen.insert(0);
  chosen.insert(elements - 1);
  return {chosen.begin(), chosen.end()};
}

}  // namespace

Reference reference_of(const TensorFn& fn, const std::map<std::string, HostTensor>& inputs, const std::map<std::string, std::int64_t>& dims, bool worst_case, std::int64_t most_operations) {
  Arguments before = bind_arguments(signature_plan(fn), inputs, dims);
  OracleOptions options;
  options.is_worst_case = worst_case;
  std::int64_t terms = 1;  // of the largest reduction, so that large calls are sampled
  std::vector<std::pair<std::string, std::int64_t>> names(before.dims.begin(), before.dims.end());
  bool recursive = !fn.lets.empty();
  for (const TensorStmt& stmt : fn.statements) {
    // A bound may go as far as an index of the statement, which goes to its own end.
    std::vector<std::pair<std::string, std::int64_t>> known = names;
    for (const Axis& axis : stmt.axes) try {
        known.emplace_back(axis.name, evaluate_index(axis.hi, known) - 1);
      } catch (const std::exception&) {
        // a bound read from a tensor
      }
    walk(stmt.value, [&](const Expr& node) {
      if (const Reduce* reduction = as<Reduce>(node)) {
        std::int64_t product = 1;
        for (const Axis& axis : reduction->axes) {
          try {
            product *= std::max<std::int64_t>(1, evaluate_index(axis.hi, known) - (axis.lo ? evaluate_index(axis.lo, known) : 0));
          } catch (const std::exception&) {
            product *= 16;
          }
          product = std::min<std::int64_t>(product, 1'000'000'000);
        }
        terms = std::max(terms, product);
      }
      return true;
    });
  }
  Reference reference;
  for (const Param& param : fn.params) {
    if (param.kind == ParamKind::In || recursive) continue;
    const HostTensor& tensor = before.tensors.at(param.name);
    if (tensor.elements() <= most_operations / terms || tensor.elements() < 4096) continue;
    options.sample[param.name] = sample_of(tensor.shape, std::clamp<std::int64_t>(most_operations / terms, 2048, 1 << 20));
    reference.is_sample = true;
  }
  reference.oracle = evaluate(fn, before, options);
  return reference;
}

Verdict judge(const Reference& reference, const Plan& plan, const Arguments& results) {
  const std::vector<std::int64_t> tiles = tile_sizes_of(plan);
  Verdict verdict;
  std::string wrong;
  for (const OracleTensor& output : reference.oracle.outputs) {
    const HostTensor& got = results.tensors.at(output.name);
    const Comparison comparison = compare(output, got, {}, TileSizes(got.shape.size(), tiles));
    verdict.worst_ratio = std::max(verdict.worst_ratio, comparison.worst_ratio);
    verdict.compared += comparison.compared;
    verdict.wrong += comparison.wrong;
    if (!comparison.is_right()) wrong += (wrong.empty() ? "" : "\n") + comparison.text;
  }
  verdict.text = verdict.is_right() ? fmt::format("right: {} elements{}, largest error / bound {:.3f}", verdict.compared,
                                                  reference.is_sample ? " (a sample and the edges)" : "", verdict.worst_ratio)
                                    : "wrong: " + wrong;
  return verdict;
}

}  // namespace tilewright
