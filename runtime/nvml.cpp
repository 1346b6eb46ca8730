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
  int (*power_limit)(Device, unsigned*) = nullptr;         // in milliwatts
  int (*processes)(Device, unsigned*, void*) = nullptr;    // only counted

  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return;
    const auto initialise = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    const auto find = reinterpret_cast<int (*)(const char*, Device*)>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    const auto read = reinterpret_cast<int (*)(Device, int, unsigned*)>(dlsym(library, "nvmlDeviceGetClockInfo"));
    if (initialise == nullptr || find == nullptr || read == nullptr || initialise() != 0) return;
    // Its order of devices is not the driver's: the bus tells which one is meant.
    if (list_gpus().empty() || find(use_gpu().bus.c_str(), &device) != 0) return;
    clock = read;
    power_limit = reinterpret_cast<int (*)(Device, unsigned*)>(dlsym(library, "nvmlDeviceGetPowerManagementLimit"));
    processes = reinterpret_cast<int (*)(Device, unsigned*, void*)>(dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3"));
  }
};

const Nvml& nvml() {
  static const Nvml opened;
  return opened;
}

}  // namespace

GpuState gpu_state() {
  GpuState state;
  unsigned value = 0;
  if (nvml().power_limit != nullptr && nvml().power_limit(nvml().device, &value) == 0) state.power_limit_watts = static_cast<int>(value / 1000);
  // Asked for none, it says how many there are; this one is among them.
  constexpr int too_small = 7;
  value = 0;
  if (nvml().processes != nullptr)
    if (const int code = nvml().processes(nvml().device, &value, nullptr); code == 0 || code == too_small) state.other_processes = value > 0 ? static_cast<int>(value) - 1 : 0;
  return state;
}

std::optional<int> sm_clock_mhz() {
  unsigned value = 0;
  if (nvml().clock == nullptr || nvml().clock(nvml().device, clock_sm, &value) != 0) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace tilewright
