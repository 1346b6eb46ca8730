// How right is decided: three kinds of data, what the definition expects of each, and a comparison that says what is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "runtime/oracle.h"
#include "runtime/tensor.h"

namespace tilewright {

// Exact: small integers whose sums are exact in any order. Random: normal numbers, judged by the bound. Special: the same
// with NaN, infinities, signed zeros and denormals in some places, judged by class and sign, finite results by the bound.
enum class Instrument : std::uint8_t { Exact, Random, Special };

// All inputs (and inout tensors) of a fn. Integer tensors that stand in indices hold valid indices, those that bound a
// reduction grow and stay within what they bound. One seed gives the same data everywhere.
std::map<std::string, HostTensor> instrument_inputs(Instrument instrument, const TensorFn& fn, const std::map<std::string, std::int64_t>& dims,
                                                    std::uint64_t seed);

// How an output is compared.
struct ComparisonRule {
  bool is_bitwise = false;          // values equal (zeros of either sign)
  bool compares_zero_sign = false;  // Special, where no sum can make or lose the sign
};

struct Expectation {
  OracleResult oracle;
  ComparisonRule rule;
};

// What the definition gives for these arguments. Exact data is compared bit for bit where every operation of the fn is
// exact on it, else by the bound. `sample` as in OracleOptions.
Expectation expect(const TensorFn& fn, Instrument instrument, const Arguments& arguments,
                   const std::map<std::string, std::vector<std::int64_t>>& sample = {}, bool is_worst_case = false);

// Sizes of tiles, blocks and vectors along each axis of an output, for the description. May be empty.
using TileSizes = std::vector<std::vector<std::int64_t>>;

struct Comparison {
  std::int64_t compared = 0;
  std::int64_t wrong = 0;
  std::int64_t unwritten = 0;        // of the wrong: poison still stands there
  double worst_ratio = 0;            // largest error / bound among what was judged by a bound
  std::vector<std::int64_t> first;   // index of the first wrong element, and its values
  double got = 0, want = 0, bound = 0;
  std::vector<std::int64_t> lowest, highest;  // the box of wrong indices, both ends inclusive
  std::string text;                  // one line where all is right; else what is wrong
  bool is_right() const { return wrong == 0; }
};

Comparison compare(const OracleTensor& expected, const HostTensor& got, const ComparisonRule& rule = {}, const TileSizes& tiles = {});
// Against another run's result, bit for bit (NaN equals NaN).
Comparison compare(const HostTensor& expected, const HostTensor& got, const std::string& name, const TileSizes& tiles = {});

}  // namespace tilewright
