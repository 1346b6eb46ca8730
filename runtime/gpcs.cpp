// Asks the GPU; see gpcs.h.
#include "runtime/gpcs.h"

#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>

#include "ir/diagnostic.h"
#include "runtime/driver.h"

namespace tilewright {

namespace {

// Each block writes its SM's number and stays for `cycles`, so that the blocks of a launch are there together.
constexpr std::string_view place_ptx = R"(.version 7.8
.target sm_90
.address_size 64
.visible .entry place(.param .u64 sms, .param .u64 cycles) {
  .reg .pred p;
  .reg .b32 tid, block, sm;
  .reg .b64 target, offset, most, start, now;
  mov.u32 tid, %tid.x;
  setp.ne.u32 p, tid, 0;
  @p bra done;
  ld.param.u64 target, [sms];
  cvta.to.global.u64 target, target;
  mov.u32 block, %ctaid.x;
  mul.wide.u32 offset, block, 4;
  add.u64 target, target, offset;
  mov.u32 sm, %smid;
  st.global.u32 [target], sm;
  ld.param.u64 most, [cycles];
  mov.u64 start, %clock64;
again:
  mov.u64 now, %clock64;
  sub.u64 now, now, start;
  setp.lt.u64 p, now, most;
  @p bra again;
done:
  ret;
}
)";

class Places {
 public:
  Places() : module_(text()), function_(module_.function("place")) {
    const int most = static_cast<int>(use_gpu().shared_bytes);
    function_.allow_shared(most);
    for (const unsigned size : {16u, 8u, 4u, 2u}) {
      const WorkerShape shape{{size, 1, 1}, {32, 1, 1}, static_cast<unsigned>(most)};
      const int clusters = function_.resident_clusters(shape.cluster, shape.block, shape.shared_bytes);
      if (clusters == 0) continue;
      const std::vector<int> sms = sms_of(shape, static_cast<unsigned>(clusters));
      for (std::size_t block = 0; block < sms.size(); ++block) join(sms[block / size * size], sms[block]);
    }
  }

  std::vector<int> gpcs(const WorkerShape& shape, unsigned workers) {
    const std::vector<int> sms = sms_of(shape, workers);
    const std::size_t blocks = sms.size() / workers;
    std::vector<int> result;
    for (std::size_t worker = 0; worker < workers; ++worker) result.push_back(first_of(sms[worker * blocks]));
    return result;
  }

 private:
  static std::vector<char> text() {
    std::vector<char> result(place_ptx.begin(), place_ptx.end());
    result.push_back('\0');
    return result;
  }

  // The SM of each block, in the order of the grid.
  std::vector<int> sms_of(const WorkerShape& shape, unsigned workers) {
    constexpr std::uint64_t cycles = 100'000;
    const unsigned blocks = workers * shape.cluster[0] * shape.cluster[1] * shape.cluster[2];
    const DeviceMemory memory(blocks * sizeof(int));
    DevicePointer pointer = memory.pointer();
    std::uint64_t most = cycles;
    std::vector<void*> arguments = {&pointer, &most};
    const unsigned size = blocks / workers;
    const std::array<unsigned, 3> cluster = size > 1 ? std::array<unsigned, 3>{size, 1, 1} : std::array<unsigned, 3>{0, 0, 0};
    launch(function_, {blocks, 1, 1}, shape.block, cluster, shape.shared_bytes, stream_, arguments);
    stream_.synchronise();
    std::vector<int> sms(blocks);
    copy_to_host(sms.data(), memory.pointer(), sms.size() * sizeof(int));
    return sms;
  }

  int first_of(int sm) {
    const auto at = static_cast<std::size_t>(sm);
    while (first_.size() <= at) first_.push_back(static_cast<int>(first_.size()));
    int first = sm;
    while (first_[static_cast<std::size_t>(first)] != first) first = first_[static_cast<std::size_t>(first)];
    return first;
  }
  void join(int a, int b) {
    const int first = first_of(a);
    first_[static_cast<std::size_t>(first_of(b))] = first;
  }

  Module module_;
  Function function_;
  Stream stream_;
  std::vector<int> first_;  // of the SMs known to lie in one GPC with it, one by way of others
};

}  // namespace

std::vector<int> gpcs_of_workers(const WorkerShape& shape, unsigned workers) {
  if (use_gpu().major < 9 || workers == 0) return {};
  static std::optional<Places> places;
  static bool is_asked = false;
  if (!is_asked) {
    is_asked = true;
    try {
      places.emplace();
    } catch (const MachineError&) {
      // The order is then that of the table; results do not depend on it.
    }
  }
  if (!places) return {};
  using Key = std::tuple<std::array<unsigned, 3>, std::array<unsigned, 3>, unsigned, unsigned>;
  static std::map<Key, std::vector<int>> known;
  const auto [found, is_new] = known.try_emplace(Key{shape.cluster, shape.block, shape.shared_bytes, workers});
  if (is_new) found->second = places->gpcs(shape, workers);
  return found->second;
}

}  // namespace tilewright
