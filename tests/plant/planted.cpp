// The switch between the faults.
#include "tests/plant/planted.h"

#include <atomic>

namespace tilewright {

namespace {
std::string current;
std::atomic<bool> reached = false;
}  // namespace

void plant(std::string name) {
  current = std::move(name);
  reached = false;
}

bool planted(std::string_view name) {
  if (name != current) return false;
  reached = true;
  return true;
}

bool was_reached() { return reached; }

}  // namespace tilewright
