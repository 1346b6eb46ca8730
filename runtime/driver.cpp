// The driver's functions, declared and opened here; see driver.h.
#include "runtime/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/diagnostic.h"
#include "runtime/toolkit.h"

namespace tilewright {

namespace {

using Handle = void*;

// Attributes of cuDeviceGetAttribute and cuFuncGetAttribute, by CUDA's numbers.
constexpr int attribute_sms = 16;
constexpr int attribute_l2_bytes = 38;
constexpr int attribute_major = 75;
constexpr int attribute_minor = 76;
constexpr int attribute_shared_optin = 97;
constexpr int function_most_threads = 0;
constexpr int function_shared_bytes = 1;
constexpr int function_local_bytes = 3;
constexpr int function_registers = 4;
constexpr int function_dynamic_shared = 8;
constexpr int function_large_clusters = 14;
constexpr unsigned portable_cluster = 8;  // larger ones must be asked for
constexpr unsigned launch_cluster = 4;
constexpr unsigned stream_non_blocking = 1;
constexpr int capture_thread_local = 1;

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  unsigned id = 0;
  unsigned padding = 0;
  std::array<unsigned, 16> value{};
};
struct LaunchConfig {
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
  unsigned shared_bytes;
  Handle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// Points into `attribute`, which must outlive it.
LaunchConfig cluster_config(const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block,
                            const std::array<unsigned, 3>& cluster, unsigned shared_bytes, Handle stream,
                            LaunchAttribute& attribute) {
  attribute.id = launch_cluster;
  std::copy(cluster.begin(), cluster.end(), attribute.value.begin());
  return {grid, block, shared_bytes, stream, &attribute, 1};
}

struct Driver {
  SharedLibrary library{Tool::Driver};
  int (*init)(unsigned);
  int (*driver_version)(int*);
  int (*device_count)(int*);
  int (*device_get)(int*, int);
  int (*device_name)(char*, int, int);
  int (*device_attribute)(int*, int, int);
  int (*device_memory)(std::size_t*, int);
  int (*device_bus)(char*, int, int);
  int (*primary_retain)(Handle*, int);
  int (*context_set)(Handle);
  int (*memory_info)(std::size_t*, std::size_t*);
  int (*allocate)(DevicePointer*, std::size_t);
  int (*release)(DevicePointer);
  int (*copy_in)(DevicePointer, const void*, std::size_t);
  int (*copy_out)(void*, DevicePointer, std::size_t);
  int (*copy_within)(DevicePointer, DevicePointer, std::size_t, Handle);
  int (*fill8)(DevicePointer, unsigned char, std::size_t, Handle);
  int (*fill16)(DevicePointer, unsigned short, std::size_t, Handle);
  int (*fill32)(DevicePointer, unsigned, std::size_t, Handle);
  int (*fill32_2d)(DevicePointer, std::size_t, unsigned, std::size_t, std::size_t, Handle);
  int (*stream_create)(Handle*, unsigned);
  int (*stream_wait)(Handle);
  int (*stream_destroy)(Handle);
  int (*event_create)(Handle*, unsigned);
  int (*event_record)(Handle, Handle);
  int (*event_wait)(Handle);
  int (*event_elapsed)(float*, Handle, Handle);
  int (*event_destroy)(Handle);
  int (*module_load)(Handle*, const void*);
  int (*module_unload)(Handle);
  int (*module_function)(Handle*, Handle, const char*);
  int (*module_global)(DevicePointer*, std::size_t*, Handle, const char*);
  int (*function_attribute)(int*, int, Handle);
  int (*function_set_attribute)(Handle, int, int);
  int (*occupancy)(int*, Handle, int, std::size_t);
  int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**);
  // Of drivers for CUDA 12 and later; null in older ones.
  int (*launch_extended)(const LaunchConfig*, Handle, void**, void**) = nullptr;
  int (*cluster_occupancy)(int*, Handle, const LaunchConfig*) = nullptr;
  int (*capture_begin)(Handle, int);
  int (*capture_end)(Handle, Handle*);
  int (*graph_instantiate)(Handle*, Handle, unsigned long long);
  int (*graph_launch)(Handle, Handle);
  int (*graph_destroy)(Handle);
  int (*graph_exec_destroy)(Handle);
  int (*error_name)(int, const char**);
  int (*error_string)(int, const char**);

  Driver() {
    library.bind(init, "cuInit");
    library.bind(driver_version, "cuDriverGetVersion");
    library.bind(device_count, "cuDeviceGetCount");
    library.bind(device_get, "cuDeviceGet");
    library.bind(device_name, "cuDeviceGetName");
    library.bind(device_attribute, "cuDeviceGetAttribute");
    library.bind(device_memory, "cuDeviceTotalMem_v2");
    library.bind(device_bus, "cuDeviceGetPCIBusId");
    library.bind(primary_retain, "cuDevicePrimaryCtxRetain");
    library.bind(context_set, "cuCtxSetCurrent");
    library.bind(memory_info, "cuMemGetInfo_v2");
    library.bind(allocate, "cuMemAlloc_v2");
    library.bind(release, "cuMemFree_v2");
    library.bind(copy_in, "cuMemcpyHtoD_v2");
    library.bind(copy_out, "cuMemcpyDtoH_v2");
    library.bind(copy_within, "cuMemcpyDtoDAsync_v2");
    library.bind(fill8, "cuMemsetD8Async");
    library.bind(fill16, "cuMemsetD16Async");
    library.bind(fill32, "cuMemsetD32Async");
    library.bind(fill32_2d, "cuMemsetD2D32Async");
    library.bind(stream_create, "cuStreamCreate");
    library.bind(stream_wait, "cuStreamSynchronize");
    library.bind(stream_destroy, "cuStreamDestroy_v2");
    library.bind(event_create, "cuEventCreate");
    library.bind(event_record, "cuEventRecord");
    library.bind(event_wait, "cuEventSynchronize");
    library.bind(event_elapsed, "cuEventElapsedTime");
    library.bind(event_destroy, "cuEventDestroy_v2");
    library.bind(module_load, "cuModuleLoadData");
    library.bind(module_unload, "cuModuleUnload");
    library.bind(module_function, "cuModuleGetFunction");
    library.bind(module_global, "cuModuleGetGlobal_v2");
    library.bind(function_attribute, "cuFuncGetAttribute");
    library.bind(function_set_attribute, "cuFuncSetAttribute");
    library.bind(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    library.bind(launch, "cuLaunchKernel");
    if (library.has_symbol("cuLaunchKernelEx")) {
      library.bind(launch_extended, "cuLaunchKernelEx");
      library.bind(cluster_occupancy, "cuOccupancyMaxActiveClusters");
    }
    library.bind(capture_begin, "cuStreamBeginCapture_v2");
    library.bind(capture_end, "cuStreamEndCapture");
    library.bind(graph_instantiate, "cuGraphInstantiateWithFlags");
    library.bind(graph_launch, "cuGraphLaunch");
    library.bind(graph_destroy, "cuGraphDestroy");
    library.bind(graph_exec_destroy, "cuGraphExecDestroy");
    library.bind(error_name, "cuGetErrorName");
    library.bind(error_string, "cuGetErrorString");
    check(init(0), "cuInit");
  }

  void check(int code, const std::string& call) const {
    if (code == 0) return;
    const char* name = nullptr;
    const char* words = nullptr;
    error_name(code, &name);
    error_string(code, &words);
    throw MachineError(fmt::format("CUDA driver: {} failed: {} ({})", call, words ? words : "unknown error",
                                   name ? name : std::to_string(code)));
  }
};

const Driver& driver() {
  static const Driver opened;
  return opened;
}

// Architectures whose own instructions need the suffix `a`.
std::string arch_of(int major, int minor) {
  const bool is_specific = major == 9 || major == 10 || major == 12;
  return fmt::format("sm_{}{}{}", major, minor, is_specific ? "a" : "");
}

int device_attribute(int attribute, int device) {
  int value = 0;
  driver().check(driver().device_attribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

GpuInfo describe(int ordinal) {
  int device = 0;
  driver().check(driver().device_get(&device, ordinal), fmt::format("cuDeviceGet({})", ordinal));
  GpuInfo gpu;
  std::array<char, 256> name{};
  driver().check(driver().device_name(name.data(), static_cast<int>(name.size()) - 1, device), "cuDeviceGetName");
  gpu.name = name.data();
  gpu.major = device_attribute(attribute_major, device);
  gpu.minor = device_attribute(attribute_minor, device);
  gpu.arch = arch_of(gpu.major, gpu.minor);
  gpu.sms = device_attribute(attribute_sms, device);
  gpu.l2_bytes = device_attribute(attribute_l2_bytes, device);
  gpu.shared_bytes = device_attribute(attribute_shared_optin, device);
  std::size_t memory = 0;
  driver().check(driver().device_memory(&memory, device), "cuDeviceTotalMem");
  gpu.memory_bytes = static_cast<std::int64_t>(memory);
  std::array<char, 32> bus{};
  driver().check(driver().device_bus(bus.data(), static_cast<int>(bus.size()) - 1, device), "cuDeviceGetPCIBusId");
  gpu.bus = bus.data();
  int version = 0;
  driver().check(driver().driver_version(&version), "cuDriverGetVersion");
  gpu.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  return gpu;
}

}  // namespace

void check_driver(int code, const std::string& call) { driver().check(code, call); }

std::vector<GpuInfo> list_gpus(std::string* why) {
  std::vector<GpuInfo> gpus;
  try {
    int count = 0;
    driver().check(driver().device_count(&count), "cuDeviceGetCount");
    for (int ordinal = 0; ordinal < count; ++ordinal) gpus.push_back(describe(ordinal));
    if (gpus.empty() && why) *why = "the CUDA driver sees no device";
  } catch (const MachineError& error) {
    if (why) *why = error.what();
  }
  return gpus;
}

const GpuInfo& use_gpu(int ordinal) {
  struct Context {
    GpuInfo gpu;
    Handle handle = nullptr;
    int ordinal = 0;
    explicit Context(int which) : gpu(describe(which)), ordinal(which) {
      int device = 0;
      driver().check(driver().device_get(&device, which), "cuDeviceGet");
      driver().check(driver().primary_retain(&handle, device), "cuDevicePrimaryCtxRetain");
    }
  };
  static const Context context(ordinal);
  if (context.ordinal != ordinal)
    throw MachineError(
        fmt::format("this process uses GPU {} already and cannot change to {}", context.ordinal, ordinal));
  driver().check(driver().context_set(context.handle), "cuCtxSetCurrent");
  return context.gpu;
}

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  // A tensor without elements still gets an address of its own.
  driver().check(driver().allocate(&pointer_, bytes == 0 ? 1 : bytes), fmt::format("cuMemAlloc of {} bytes", bytes));
}

DeviceMemory::~DeviceMemory() {
  if (pointer_ != 0) driver().release(pointer_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept : pointer_(other.pointer_), bytes_(other.bytes_) {
  other.pointer_ = 0;
  other.bytes_ = 0;
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(pointer_, other.pointer_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void copy_to_device(DevicePointer target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  driver().check(driver().copy_in(target, source, bytes), fmt::format("cuMemcpyHtoD of {} bytes", bytes));
  // The call may return while the last part is still on its way, and our own streams do not wait for the default one.
  driver().check(driver().stream_wait(nullptr), "cuStreamSynchronize");
}

void copy_to_host(void* target, DevicePointer source, std::size_t bytes) {
  if (bytes > 0)
    driver().check(driver().copy_out(target, source, bytes), fmt::format("cuMemcpyDtoH of {} bytes", bytes));
}

void copy_on_device(DevicePointer target, DevicePointer source, std::size_t bytes, const Stream& stream) {
  if (bytes > 0) driver().check(driver().copy_within(target, source, bytes, stream.handle()), "cuMemcpyDtoD");
}

std::size_t free_device_memory() {
  std::size_t available = 0;
  std::size_t total = 0;
  driver().check(driver().memory_info(&available, &total), "cuMemGetInfo");
  return available;
}

Stream::Stream() { driver().check(driver().stream_create(&handle_, stream_non_blocking), "cuStreamCreate"); }
Stream::~Stream() { driver().stream_destroy(handle_); }
void Stream::synchronise() const {
  driver().check(driver().stream_wait(handle_), "cuStreamSynchronize (a kernel before it failed)");
}

Event::Event() { driver().check(driver().event_create(&handle_, 0), "cuEventCreate"); }
Event::~Event() {
  if (handle_) driver().event_destroy(handle_);
}
void Event::record(const Stream& stream) const {
  driver().check(driver().event_record(handle_, stream.handle()), "cuEventRecord");
}
double Event::milliseconds_since(const Event& start) const {
  float milliseconds = 0;
  driver().check(driver().event_elapsed(&milliseconds, start.handle_, handle_), "cuEventElapsedTime");
  return static_cast<double>(milliseconds);
}

void fill_device(DevicePointer target, const std::vector<std::byte>& pattern, std::size_t elements,
                 const Stream& stream) {
  if (elements == 0) return;
  const auto word_at = [&](std::size_t offset) {
    std::uint32_t word = 0;
    std::memcpy(&word, pattern.data() + offset, std::min<std::size_t>(pattern.size(), 4));
    return word;
  };
  switch (pattern.size()) {
    case 1:
      driver().check(driver().fill8(target, static_cast<unsigned char>(word_at(0)), elements, stream.handle()),
                     "cuMemsetD8");
      return;
    case 2:
      driver().check(driver().fill16(target, static_cast<unsigned short>(word_at(0)), elements, stream.handle()),
                     "cuMemsetD16");
      return;
    case 4:
      driver().check(driver().fill32(target, word_at(0), elements, stream.handle()), "cuMemsetD32");
      return;
    case 8:
      // Each half of the element is a column of one word in rows of eight bytes.
      driver().check(driver().fill32_2d(target, 8, word_at(0), 1, elements, stream.handle()), "cuMemsetD2D32");
      driver().check(driver().fill32_2d(target + 4, 8, word_at(4), 1, elements, stream.handle()), "cuMemsetD2D32");
      return;
    default:
      internal_error(fmt::format("fill_device: a pattern of {} bytes", pattern.size()));
  }
}

FunctionAttributes Function::attributes() const {
  const auto read = [&](int attribute) {
    int value = 0;
    driver().check(driver().function_attribute(&value, attribute, handle_), "cuFuncGetAttribute");
    return value;
  };
  return {read(function_registers), read(function_shared_bytes), read(function_local_bytes),
          read(function_most_threads)};
}

void Function::allow_shared(int bytes) const {
  driver().check(driver().function_set_attribute(handle_, function_dynamic_shared, bytes),
                 fmt::format("cuFuncSetAttribute (dynamic shared memory {} bytes)", bytes));
}

int Function::resident_blocks(int threads, int dynamic_shared_bytes) const {
  int blocks = 0;
  driver().check(driver().occupancy(&blocks, handle_, threads, static_cast<std::size_t>(dynamic_shared_bytes)),
                 "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return blocks;
}

namespace {

void need_clusters(bool has_them) {
  if (!has_them) throw MachineError("CUDA driver: this one is older than CUDA 12 and launches no clusters");
}

}  // namespace

int Function::resident_clusters(const std::array<unsigned, 3>& cluster, const std::array<unsigned, 3>& block,
                                unsigned dynamic_shared_bytes) const {
  need_clusters(driver().cluster_occupancy != nullptr);
  if (cluster[0] * cluster[1] * cluster[2] > portable_cluster)
    driver().check(driver().function_set_attribute(handle_, function_large_clusters, 1),
                   "cuFuncSetAttribute (clusters of more than 8 blocks)");
  LaunchAttribute attribute;
  const LaunchConfig config = cluster_config(cluster, block, cluster, dynamic_shared_bytes, nullptr, attribute);
  int clusters = 0;
  driver().check(driver().cluster_occupancy(&clusters, handle_, &config), "cuOccupancyMaxActiveClusters");
  return clusters;
}

Module::Module(const std::vector<char>& cubin) {
  driver().check(driver().module_load(&handle_, cubin.data()), "cuModuleLoadData");
}
Module::~Module() {
  if (handle_) driver().module_unload(handle_);
}
Function Module::function(const std::string& name) const {
  Handle function = nullptr;
  driver().check(driver().module_function(&function, handle_, name.c_str()),
                 fmt::format("cuModuleGetFunction({})", name));
  return Function(function);
}
DevicePointer Module::global(const std::string& name, std::size_t& bytes) const {
  DevicePointer pointer = 0;
  driver().check(driver().module_global(&pointer, &bytes, handle_, name.c_str()),
                 fmt::format("cuModuleGetGlobal({})", name));
  return pointer;
}

void launch(const Function& function, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block,
            const std::array<unsigned, 3>& cluster, unsigned dynamic_shared_bytes, const Stream& stream,
            std::vector<void*>& arguments) {
  const auto words = [&](const char* call) {
    return fmt::format("{} with grid ({}), block ({}), cluster ({}), {} bytes of dynamic shared memory", call,
                       fmt::join(grid, ", "), fmt::join(block, ", "), fmt::join(cluster, ", "), dynamic_shared_bytes);
  };
  if (cluster[0] == 0) {
    const int code = driver().launch(function.handle(), grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                     dynamic_shared_bytes, stream.handle(), arguments.data(), nullptr);
    if (code != 0) driver().check(code, words("cuLaunchKernel"));
    return;
  }
  need_clusters(driver().launch_extended != nullptr);
  LaunchAttribute attribute;
  const LaunchConfig config =
      cluster_config(grid, block, cluster, dynamic_shared_bytes, stream.handle(), attribute);
  const int code = driver().launch_extended(&config, function.handle(), arguments.data(), nullptr);
  if (code != 0) driver().check(code, words("cuLaunchKernelEx"));
}

void Graph::begin(const Stream& stream) {
  driver().check(driver().capture_begin(stream.handle(), capture_thread_local), "cuStreamBeginCapture");
}

Graph Graph::finish(const Stream& stream) {
  Handle recorded = nullptr;
  driver().check(driver().capture_end(stream.handle(), &recorded), "cuStreamEndCapture");
  Handle executable = nullptr;
  const int code = driver().graph_instantiate(&executable, recorded, 0);
  driver().graph_destroy(recorded);
  driver().check(code, "cuGraphInstantiate");
  return Graph(executable);
}

Graph::~Graph() {
  if (handle_) driver().graph_exec_destroy(handle_);
}

void Graph::launch(const Stream& stream) const {
  driver().check(driver().graph_launch(handle_, stream.handle()), "cuGraphLaunch");
}

}  // namespace tilewright
