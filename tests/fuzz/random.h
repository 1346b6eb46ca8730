// Numbers for drawing: one seed gives the same draws on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/random.h"

namespace tilewright::fuzz {

class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  // 0 .. count - 1; 0 for a count of 0.
  std::size_t below(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(next() % count); }
  std::int64_t between(std::int64_t least, std::int64_t most) { return least + static_cast<std::int64_t>(below(static_cast<std::size_t>(most - least + 1))); }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }
  template <class T>
  const T& pick(const std::vector<T>& values) { return values[below(values.size())]; }
  template <class T>
  T pick(std::initializer_list<T> values) { return values.begin()[below(values.size())]; }
  // A position in a list of weights, each as likely as it weighs.
  std::size_t weighted(std::initializer_list<int> weights) {
    int total = 0;
    for (const int weight : weights) total += weight;
    auto rest = static_cast<int>(below(static_cast<std::size_t>(total)));
    std::size_t position = 0;
    for (const int weight : weights) {
      if (rest < weight) return position;
      rest -= weight;
      ++position;
    }
    return 0;
  }
};

// The seed of program `number` of a run.
inline std::uint64_t seed_of(std::uint64_t run, std::uint64_t number) {
  Random random(run * 0x100000001b3ULL + number);
  return random.next();
}

}  // namespace tilewright::fuzz
