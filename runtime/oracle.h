// The oracle: a fn's definition evaluated directly, floats in f64 and integers exactly, with a bound for what a kernel of
// the declared dtypes may differ.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/scalar.h"
#include "ir/tensor.h"
#include "runtime/slot_program.h"
#include "runtime/tensor.h"

namespace tilewright {

struct OracleOptions {
  // Real rounds to the declared dtypes at three places: assignments, `let`s and casts. Typed rounds every operation, as
  // the naive kernel does; it follows no errors.
  FloatMode mode = FloatMode::Real;
  bool follows_errors = true;
  bool is_worst_case = false;  // h instead of 6·√h for the depth h of a sum
  // Only these elements of an output; an output without an entry is evaluated in full.
  std::map<std::string, std::vector<std::int64_t>> sample;
  int threads = 0;  // 0: as many as there are cores
};

// One output. `elements` lists which elements the values belong to; empty where they are all.
struct OracleTensor {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> elements;
  std::vector<Scalar> values;
  // |kernel - value| stays below this: 6·√h·u·Σ|terms| of each sum, carried through all that is computed from it, the
  // listed ulps of functions, and the rounding to the output's dtype. 0 for what is exact (also for NaN and infinities,
  // which are compared by class). Empty where errors are not followed.
  std::vector<double> bounds;

  std::size_t count() const { return values.size(); }
  std::int64_t element(std::size_t position) const {
    return elements.empty() ? static_cast<std::int64_t>(position) : elements[position];
  }
};

struct OracleResult {
  std::vector<OracleTensor> outputs;  // in order of the parameters
  std::optional<ErrorHit> error;      // one offence of a checked access, where there is any
};

// `arguments` as bind_arguments gives them, before the run (the start of inout tensors counts). Outputs are not read.
OracleResult evaluate(const TensorFn& fn, const Arguments& arguments, const OracleOptions& options = {});

// Parameters and dims of a fn as a plan without steps, to bind arguments.
Plan signature_plan(const TensorFn& fn);

}  // namespace tilewright
