// The CUDA driver: devices, memory, modules, launches, streams and events, each owned by an object. `libcuda` is opened
// at first use; every failure is a MachineError that names the call and says the code in words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewright {

struct GpuInfo {
  std::string name;  // "NVIDIA H200"
  int major = 0;
  int minor = 0;
  std::string arch;  // what to compile for: "sm_90a"
  int sms = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t shared_bytes = 0;  // most that one block may have
  std::string driver;             // "13.0"
  std::string bus;                // "0000:17:00.0"
};
// Every device; empty (with the reason in `why`, which may be null) where there is no driver or none can be used.
std::vector<GpuInfo> list_gpus(std::string* why = nullptr);

// Makes the device's primary context current in this thread, for the life of the process. Throws where there is none.
const GpuInfo& use_gpu(int ordinal = 0);

using DevicePointer = std::uint64_t;

// Throws MachineError, with the call and the code in words, unless the code is success.
void check_driver(int code, const std::string& call);

class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  DevicePointer pointer() const { return pointer_; }
  std::size_t bytes() const { return bytes_; }

 private:
  DevicePointer pointer_ = 0;
  std::size_t bytes_ = 0;
};

void copy_to_device(DevicePointer target, const void* source, std::size_t bytes);
void copy_to_host(void* target, DevicePointer source, std::size_t bytes);
// In stream order.
void copy_on_device(DevicePointer target, DevicePointer source, std::size_t bytes, const class Stream& stream);
// Free memory of the current device.
std::size_t free_device_memory();

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void synchronise() const;
  void* handle() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

class Event {
 public:
  Event();
  ~Event();
  Event(Event&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Event& operator=(Event&&) = delete;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(const Stream& stream) const;
  // Milliseconds from `start` to this; both must have happened.
  double milliseconds_since(const Event& start) const;

 private:
  void* handle_ = nullptr;
};

// Fills `elements` places of `pattern` (1, 2, 4 or 8 bytes) from `target` on, in stream order.
void fill_device(DevicePointer target, const std::vector<std::byte>& pattern, std::size_t elements,
                 const Stream& stream);

struct FunctionAttributes {
  int registers = 0;
  int shared_bytes = 0;  // static
  int local_bytes = 0;   // a thread
  int most_threads = 0;
};

// A kernel of a loaded module; valid while the module lives.
class Function {
 public:
  explicit Function(void* handle = nullptr) : handle_(handle) {}
  void* handle() const { return handle_; }
  FunctionAttributes attributes() const;
  // Allows that much dynamic shared memory; needed above 48 KB.
  void allow_shared(int bytes) const;
  // Blocks of this size that one SM holds at a time.
  int resident_blocks(int threads, int dynamic_shared_bytes) const;
  // Clusters of this shape that the whole GPU holds at a time.
  int resident_clusters(const std::array<unsigned, 3>& cluster, const std::array<unsigned, 3>& block,
                        unsigned dynamic_shared_bytes) const;

 private:
  void* handle_ = nullptr;
};

class Module {
 public:
  explicit Module(const std::vector<char>& cubin);
  ~Module();
  Module(Module&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Module& operator=(Module&&) = delete;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Function function(const std::string& name) const;
  // A `__constant__` or `__device__` variable: where it is, and its size.
  DevicePointer global(const std::string& name, std::size_t& bytes) const;

 private:
  void* handle_ = nullptr;
};

// Starts a kernel. `arguments` point at the values, as cuLaunchKernel takes them; a cluster of {0, 0, 0} is none.
void launch(const Function& function, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block,
            const std::array<unsigned, 3>& cluster, unsigned dynamic_shared_bytes, const Stream& stream,
            std::vector<void*>& arguments);

// A recorded sequence of launches that is started in one call.
class Graph {
 public:
  // Starts to record what is put into the stream; finish() ends it.
  static void begin(const Stream& stream);
  static Graph finish(const Stream& stream);
  ~Graph();
  Graph(Graph&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Graph& operator=(Graph&&) = delete;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& stream) const;

 private:
  explicit Graph(void* handle) : handle_(handle) {}
  void* handle_ = nullptr;
};

}  // namespace tilewright
