// Comparison of results with the oracle.
#include "runtime/library/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "ir/scalar.h"
#include "runtime/oracle.h"

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

std::vector<std::int64_t> coordinates_of(std::int64_t element, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> result(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    result[d] = element % shape[d];
    element /= shape[d];
  }
  return result;
}

struct Wrong {
  std::string tensor;
  std::vector<std::int64_t> first;
  double got = 0;
  double want = 0;
  double bound = 0;
  std::vector<std::int64_t> lowest;
  std::vector<std::int64_t> highest;
  std::int64_t count = 0;
  std::int64_t unwritten = 0;
  std::vector<std::int64_t> shape;
};

std::string relation_to_tiles(const Wrong& wrong, const std::vector<std::int64_t>& tiles) {
  std::vector<std::string> facts;
  for (std::size_t d = 0; d < wrong.shape.size(); ++d) {
    if (wrong.lowest[d] == 0) continue;
    for (auto tile = tiles.rbegin(); tile != tiles.rend(); ++tile)
      if (wrong.lowest[d] % *tile == 0) {
        bool last = wrong.lowest[d] == (wrong.shape[d] - 1) / *tile * *tile;
        facts.push_back(fmt::format("axis {} is wrong from {}, a multiple of {}{}", d, wrong.lowest[d], *tile, last ? ", where the last, partial tile begins" : ""));
        break;
      }
  }
  return facts.empty() ? "" : fmt::format("\n  {}", fmt::join(facts, "\n  "));
}

std::string describe_wrong(const Wrong& wrong, const std::vector<std::int64_t>& tiles) {
  std::string place = wrong.first.empty() ? wrong.tensor : fmt::format("{}[{}]", wrong.tensor, fmt::join(wrong.first, ", "));
  std::string text = fmt::format("{} is {}, the definition gives {} (bound {:.3g})", place, wrong.got, wrong.want, wrong.bound);
  if (!wrong.first.empty()) {
    std::vector<std::string> box;
    for (std::size_t d = 0; d < wrong.lowest.size(); ++d) box.push_back(fmt::format("{} .. {}", wrong.lowest[d], wrong.highest[d] + 1));
    text += fmt::format("\n  {} elements are wrong, all within {}[{}]", wrong.count, wrong.tensor, fmt::join(box, ", "));
  }
  if (wrong.unwritten == wrong.count) text += "\n  they were never written";
  else if (wrong.unwritten > 0) text += fmt::format("\n  {} of them were never written", wrong.unwritten);
  return text + relation_to_tiles(wrong, tiles);
}

}  // namespace

Verdict judge(const TensorFn& fn, const Plan& plan, const std::map<std::string, HostTensor>& inputs, const std::map<std::string, std::int64_t>& dims,
              const Arguments& results, bool worst_case, std::int64_t most_operations) {
  Arguments before = bind_arguments(signature_plan(fn), inputs, dims);
  OracleOptions options;
  options.is_worst_case = worst_case;
  std::int64_t terms = 1;  // of the largest reduction, so that large calls are sampled
  std::vector<std::pair<std::string, std::int64_t>> names(before.dims.begin(), before.dims.end());
  bool recursive = !fn.lets.empty();
  for (const TensorStmt& stmt : fn.statements)
    walk(stmt.value, [&](const Expr& node) {
      if (const Reduce* reduction = as<Reduce>(node)) {
        std::int64_t product = 1;
        for (const Axis& axis : reduction->axes) {
          try {
            product *= std::max<std::int64_t>(1, evaluate_index(axis.hi, names) - (axis.lo ? evaluate_index(axis.lo, names) : 0));
          } catch (const std::exception&) {
            product *= 16;
          }
          product = std::min<std::int64_t>(product, 1'000'000'000);
        }
        terms = std::max(terms, product);
      }
      return true;
    });
  bool sampled = false;
  for (const Param& param : fn.params) {
    if (param.kind == ParamKind::In || recursive) continue;
    const HostTensor& tensor = before.tensors.at(param.name);
    if (tensor.elements() <= most_operations / terms || tensor.elements() < 4096) continue;
    options.sample[param.name] = sample_of(tensor.shape, std::clamp<std::int64_t>(most_operations / terms, 2048, 1 << 20));
    sampled = true;
  }
  OracleResult oracle = evaluate(fn, before, options);
  Verdict verdict;
  std::vector<Wrong> all_wrong;
  for (const OracleTensor& output : oracle.outputs) {
    const HostTensor& got = results.tensors.at(output.name);
    Wrong wrong;
    wrong.tensor = output.name;
    wrong.shape = got.shape;
    for (std::size_t n = 0; n < output.count(); ++n) {
      std::int64_t element = output.element(n);
      double bound = output.bounds.empty() ? 0 : output.bounds[n];
      double want = 0, have = 0;
      bool right = true;
      if (is_float(output.dtype)) {
        want = output.values[n].f;
        have = read_real(got, element);
        if (std::isnan(want) || std::isnan(have)) right = std::isnan(want) && std::isnan(have);
        else if (std::isinf(want) || std::isinf(have)) right = want == have || (std::isinf(bound));
        else {
          double error = std::abs(have - want);
          double ratio = bound > 0 ? error / bound : error > 0 ? INFINITY : 0;
          right = ratio <= 1;
          verdict.worst_ratio = std::max(verdict.worst_ratio, ratio);
        }
      } else {
        want = static_cast<double>(output.values[n].i);
        have = static_cast<double>(read_integer(got, element));
        right = std::abs(have - want) <= bound && (bound > 0 || read_integer(got, element) == output.values[n].i);
      }
      ++verdict.compared;
      if (right) continue;
      std::vector<std::int64_t> place = coordinates_of(element, got.shape);
      if (wrong.count == 0) {
        wrong.first = place;
        wrong.got = have;
        wrong.want = want;
        wrong.bound = bound;
        wrong.lowest = wrong.highest = place;
      }
      for (std::size_t d = 0; d < place.size(); ++d) {
        wrong.lowest[d] = std::min(wrong.lowest[d], place[d]);
        wrong.highest[d] = std::max(wrong.highest[d], place[d]);
      }
      ++wrong.count;
      if (is_poison(got, element)) ++wrong.unwritten;
    }
    verdict.wrong += wrong.count;
    if (wrong.count > 0) all_wrong.push_back(std::move(wrong));
  }
  if (all_wrong.empty()) {
    verdict.text = fmt::format("right: {} elements{}, largest error / bound {:.3f}", verdict.compared, sampled ? " (a sample and the edges)" : "", verdict.worst_ratio);
    return verdict;
  }
  verdict.text = "wrong: ";
  for (std::size_t n = 0; n < all_wrong.size(); ++n) verdict.text += (n ? "\n" : "") + describe_wrong(all_wrong[n], tile_sizes_of(plan));
  return verdict;
}

}  // namespace tilewright
