// The simulator allocates for a launch, not for its steps: the count of allocations does not grow with the trips of a loop.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/sim/sim.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

// Counted in the whole test program; sanitizers bring their own.
#if !defined(__SANITIZE_ADDRESS__)
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace tilewright {

namespace {

std::int64_t allocations_of(const Plan& plan, const std::map<std::string, std::int64_t>& dims, bool checks) {
  Arguments arguments = bind_arguments(plan, exact_inputs(plan, dims), dims);
  SimulatorOptions options;
  options.checks = checks;
  options.sms = 1;
  const std::int64_t before = allocations;
  const RunReport report = simulate(plan, arguments, options);
  const std::int64_t made = allocations - before;
  CHECK(report.faults.empty());
  return made;
}

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("a run allocates nothing step by step") {
    for (const bool checks : {false, true}) {
      CAPTURE(checks);
      const Plan tiled = ladder_plan("matmul.ch5.thread.ir");
      const std::int64_t few = allocations_of(tiled, {{"M", 48}, {"N", 48}, {"K", 64}}, checks);
      CHECK(allocations_of(tiled, {{"M", 48}, {"N", 48}, {"K", 512}}, checks) <= few + 8);
      // 40 trips through four slots instead of 8: lists of copies in flight may grow once more.
      const Plan hopper = ladder_plan("matmul.09.persist.thread.ir");
      const std::int64_t short_run = allocations_of(hopper, {{"M", 128}, {"N", 256}, {"K", 512}}, checks);
      CHECK(allocations_of(hopper, {{"M", 128}, {"N", 256}, {"K", 2560}}, checks) <= short_run + 16);
#if !defined(__SANITIZE_ADDRESS__)
      CHECK(few > 0);  // they are counted
#endif
    }
  }
}

}  // namespace tilewright
