// Counting on the PTX machine: passes and sectors of patterns whose counts are known, and grids from a few blocks.
#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "runtime/grid_counts.h"

namespace tilewright {

namespace {

using Addresses = std::array<std::uint64_t, 32>;

template <class F>
Addresses addresses_of(F&& of_lane) {
  Addresses result{};
  for (std::uint64_t lane = 0; lane < 32; ++lane) result[lane] = static_cast<std::uint64_t>(of_lane(lane));
  return result;
}

int shared(const Addresses& addresses, int bytes, ptx::LaneMask lanes = ptx::every_lane) { return ptx::passes_of(addresses.data(), lanes, bytes, true); }
int global(const Addresses& addresses, int bytes, ptx::LaneMask lanes = ptx::every_lane) { return ptx::passes_of(addresses.data(), lanes, bytes, false); }

// Writes `1.0` at stride `thread * stride` of a tensor of `words` words where the thread's number is below `limit`.
std::string store_kernel(int stride) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 limit) {\n"
         ".reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>; .reg .f32 %f<2>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [limit];\n"
         "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
         "setp.ge.s32 %p1, %r5, %r1; @%p1 bra END;\n"
         "mul.lo.s32 %r6, %r5, " + std::to_string(4 * stride) + "; cvt.u64.u32 %rd2, %r6; add.u64 %rd3, %rd1, %rd2;\n"
         "mov.f32 %f1, 0f3F800000; st.global.f32 [%rd3], %f1;\nEND: ret;\n}\n";
}

GridCounts count_stores(int stride, unsigned blocks, unsigned limit) {
  ptx::PtxMachine machine(store_kernel(stride));
  ptx::Region region;
  region.name = "Y";
  region.bytes = std::uint64_t{1} << 34;  // far more than there is memory for
  region.is_virtual = true;
  const std::uint64_t address = machine.place(std::move(region));
  std::vector<std::byte> parameters(12);
  std::memcpy(parameters.data(), &address, 8);
  std::memcpy(parameters.data() + 8, &limit, 4);
  return count_grid(machine, "k", "k", {blocks, 1, 1}, {64, 1, 1}, 0, parameters);
}

const ptx::AccessCounts& only_access(const GridCounts& counts) {
  REQUIRE(counts.is_counted);
  REQUIRE(counts.counts.accesses.size() == 1);
  return counts.counts.accesses.begin()->second;
}

}  // namespace

TEST_SUITE("ptx") {
  TEST_CASE("passes: shared memory gives a word of each bank in a turn") {
    CHECK(shared(addresses_of([](auto lane) { return lane * 4; }), 4) == 1);
    CHECK(shared(addresses_of([](auto) { return 64; }), 4) == 1);                     // one word for all
    CHECK(shared(addresses_of([](auto lane) { return lane * 8; }), 4) == 2);          // every other bank
    CHECK(shared(addresses_of([](auto lane) { return lane * 128; }), 4) == 32);       // a column of 32 words a row
    CHECK(shared(addresses_of([](auto lane) { return lane * 132; }), 4) == 1);        // and padded by one
    CHECK(shared(addresses_of([](auto lane) { return lane * 128; }), 4, 0xff) == 8);  // of eight lanes
    CHECK(shared(addresses_of([](auto lane) { return lane * 16; }), 16) == 4);        // 512 bytes
    CHECK(shared(addresses_of([](auto lane) { return lane / 16 * 64; }), 16) == 2);   // four registers, lanes in pairs
    CHECK(shared({}, 4, 0) == 0);
  }

  TEST_CASE("passes: global memory gives a line of 128 bytes in a turn") {
    CHECK(global(addresses_of([](auto lane) { return lane * 4; }), 4) == 1);
    CHECK(global(addresses_of([](auto lane) { return 64 + lane * 4; }), 4) == 2);   // across a border
    CHECK(global(addresses_of([](auto lane) { return lane / 16 * 4096 + lane % 16 * 4; }), 4) == 2);
    CHECK(global(addresses_of([](auto lane) { return lane * 4096; }), 4) == 32);
    CHECK(global(addresses_of([](auto lane) { return lane * 16; }), 16) == 4);
    CHECK(global(addresses_of([](auto) { return 0; }), 16) == 2);                    // four registers, one address
  }

  TEST_CASE("counts: sectors of a whole grid from three of its blocks, at a size that no memory holds") {
    const GridCounts packed = count_stores(1, 1000, 64'000);
    CHECK(packed.blocks_run == 3);
    CHECK(only_access(packed).requests == 2000);
    CHECK(only_access(packed).sectors == 8000);
    CHECK(only_access(packed).sectors == only_access(packed).sectors_needed);
    CHECK(only_access(packed).passes == 2000);
    CHECK(packed.counts.sectors_stored == 8000);
    const GridCounts strided = count_stores(8, 1000, 64'000);
    CHECK(only_access(strided).sectors == 64'000);
    CHECK(only_access(strided).sectors_needed == 8000);
    CHECK(only_access(strided).passes == 16'000);
    CHECK(only_access(strided).region == "Y");
  }

  TEST_CASE("counts: a partial block at the end is counted as it is") {
    const GridCounts counts = count_stores(1, 1000, 63'970);  // two lanes of the last block's second warp are left
    CHECK(only_access(counts).requests == 2000);
    CHECK(only_access(counts).lanes == 63'970);
    CHECK(only_access(counts).sectors == 7997);
  }

  TEST_CASE("counts: blocks of a grid with one, two and many positions an axis") {
    for (const std::array<unsigned, 3> grid : {std::array<unsigned, 3>{1, 1, 1}, {2, 1, 1}, {7, 2, 1}, {5, 4, 3}}) {
      std::int64_t weight = 0;
      for (const SampledBlock& block : blocks_to_run(grid)) {
        weight += block.weight;
        CHECK(block.number < std::uint64_t{grid[0]} * grid[1] * grid[2]);
      }
      CHECK(weight == std::int64_t{grid[0]} * grid[1] * grid[2]);
    }
  }
}

}  // namespace tilewright
