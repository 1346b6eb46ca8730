// Work in a process of its own, so that a crash or a hang is a finding and not the end of the run.
#pragma once

#include <functional>
#include <string>

namespace tilewright::fuzz {

struct Isolated {
  enum class End : std::uint8_t { Done, Crashed, TimedOut };
  End end = End::Done;
  int signal = 0;            // Crashed
  std::string text;          // what the work gave, as far as it came
  std::int64_t reached = 0;  // the last number that the work set
};

// What the work in the child process tells its parent, at once.
class Telling {
 public:
  Telling(volatile std::int64_t& reached, int pipe) : reached_(reached), pipe_(pipe) {}
  void reach(std::int64_t number) { reached_ = number; }
  void tell(const std::string& text);

 private:
  volatile std::int64_t& reached_;
  int pipe_;
};

// Runs `work` in a child process. Ends it where it has not reached another number for `seconds`.
Isolated run_isolated(const std::function<void(Telling& parent)>& work, double seconds);

}  // namespace tilewright::fuzz
