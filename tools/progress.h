// What a longer run is doing, on the error stream: nothing in the first seconds, then a line a step.
#pragma once

#include <chrono>
#include <string>

namespace tilewright {

class Progress {
 public:
  // The step that begins now.
  void step(const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
  Clock::time_point said_ = Clock::now();
};

}  // namespace tilewright
