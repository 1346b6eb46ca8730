// Progress; see progress.h.
#include "tools/progress.h"

#include <fmt/format.h>

#include "tools/options.h"

namespace tilewright {

namespace {

constexpr std::chrono::seconds quiet{5};      // at first
constexpr std::chrono::seconds between{1};    // two lines

}  // namespace

void Progress::step(const std::string& what) {
  const Clock::time_point now = Clock::now();
  if (now - start_ < quiet || now - said_ < between) return;
  said_ = now;
  announce(fmt::format("[{:.0f} s] {}", std::chrono::duration<double>(now - start_).count(), what));
}

}  // namespace tilewright
