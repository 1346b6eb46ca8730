// NVML, opened at run time; see nvml.h.
#include "runtime/nvml.h"

#include <dlfcn.h>

#include "runtime/driver.h"

namespace tilewright {

namespace {

constexpr int clock_sm = 1;

struct Nvml {
  using Device = void*;
  Device device = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;

  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return;
    const auto initialise = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    const auto find = reinterpret_cast<int (*)(const char*, Device*)>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    const auto read = reinterpret_cast<int (*)(Device, int, unsigned*)>(dlsym(library, "nvmlDeviceGetClockInfo"));
    if (initialise == nullptr || find == nullptr || read == nullptr || initialise() != 0) return;
    // Its order of devices is not the driver's: the bus tells which one is meant.
    if (find(use_gpu().bus.c_str(), &device) == 0) clock = read;
  }
};

}  // namespace

std::optional<int> sm_clock_mhz() {
  static const Nvml opened;
  unsigned value = 0;
  if (opened.clock == nullptr || opened.clock(opened.device, clock_sm, &value) != 0) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace tilewright
