// Sizes and inputs for running the plans of the passes' tests.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "passes/affine.h"
#include "passes/pass.h"
#include "runtime/execute.h"

namespace tilewright {

using Sizes = std::map<std::string, std::int64_t>;

// Sizes that meet the plan's facts of the kind `N % 4 == 0`: nothing, one, primes, and one behind a tile.
inline std::vector<Sizes> usual_sizes(const Plan& plan) {
  Divisors divisors = divisors_of(plan.facts);
  std::vector<Sizes> result;
  for (const std::vector<std::int64_t>& pattern :
       std::vector<std::vector<std::int64_t>>{{0}, {1}, {7, 19, 5}, {33, 17, 20}}) {
    Sizes sizes;
    std::size_t n = 0;
    for (const Dim& dim : plan.dims) {
      if (dim.value) continue;
      auto found = divisors.find(dim.name);
      std::int64_t multiple = found == divisors.end() ? 1 : found->second;
      sizes[dim.name] = (pattern[n++ % pattern.size()] + multiple - 1) / multiple * multiple;
    }
    result.push_back(std::move(sizes));
  }
  return result;
}

// What the results of two plans have in common: all bits on any data, or on data whose sums are exact in any order.
enum class Agreement : std::uint8_t { AnyData, ExactData };

inline std::map<std::string, HostTensor> random_inputs(const Plan& plan, const Sizes& sizes, Agreement agreement) {
  std::mt19937 random(7);
  std::map<std::string, HostTensor> result;
  std::vector<std::pair<std::string, std::int64_t>> dims(sizes.begin(), sizes.end());
  for (const Param& param : plan.params) {
    if (param.kind == ParamKind::Out) continue;
    HostTensor tensor = make_tensor(param.dtype, shape_of(param.shape, dims));
    for (std::int64_t n = 0; n < tensor.elements(); ++n) {
      if (is_float(param.dtype) && agreement == Agreement::ExactData)
        write_real(tensor, n, static_cast<double>(random() % 3) - 1.0);
      else if (is_float(param.dtype))
        write_real(tensor, n, static_cast<double>(random() % 2001) / 500.0 - 2.0);
      else
        write_integer(tensor, n, static_cast<std::int64_t>(random() % 5));
    }
    result.emplace(param.name, std::move(tensor));
  }
  return result;
}

inline std::string in_text(const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += name + " " + std::to_string(size) + " ";
  return text;
}

}  // namespace tilewright
