// The table of instructions: barriers, vector accesses, warp operations, and the Hopper rows of docs/ir.md.
#include "ir/instructions.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <vector>

namespace tilewright {

namespace {

constexpr Effect none = Effect::None;
constexpr Effect reads = Effect::Reads;
constexpr Effect writes = Effect::Writes;
constexpr Effect both = Effect::ReadsWrites;
constexpr Effect orders = Effect::Orders;
constexpr Convergence any = Convergence::None;
constexpr Convergence warp = Convergence::Warp;
constexpr Convergence warpgroup = Convergence::Warpgroup;
constexpr Convergence cta = Convergence::Cta;
constexpr std::optional<Dtype> statement = std::nullopt;
constexpr std::optional<Dtype> of_operands = Dtype::Index;

// Name, least and most operands, result, effect, convergence, PTX, meaning. In PTX a shared place is its 32-bit address,
// a tensor map the generic address of its parameter, a condition 0 or 1.
constexpr std::array<InstrInfo, 66> patterns = {{
    {"barrier.block", 0, 0, statement, orders, cta, "barrier.sync 0;", "all threads of the block wait for each other; memory before is seen behind"},
    {"barrier.named", 2, 2, statement, orders, warp, "barrier.sync %0, %1;", "barrier number %0 for %1 threads"},
    {"barrier.warp", 0, 0, statement, orders, warp, "bar.warp.sync 0xffffffff;", "all lanes of the warp wait for each other"},

    {"load.v2", 2, 2, statement, reads, any, "", "one access loads 2 neighbouring elements into consecutive registers"},
    {"load.v4", 2, 2, statement, reads, any, "", "one access loads 4 neighbouring elements into consecutive registers"},
    {"load.v8", 2, 2, statement, reads, any, "", "one access loads 8 neighbouring elements into consecutive registers"},
    {"load.v16", 2, 2, statement, reads, any, "", "one access loads 16 neighbouring elements into consecutive registers"},
    {"store.v2", 2, 2, statement, writes, any, "", "one access stores 2 consecutive registers to neighbouring elements"},
    {"store.v4", 2, 2, statement, writes, any, "", "one access stores 4 consecutive registers to neighbouring elements"},
    {"store.v8", 2, 2, statement, writes, any, "", "one access stores 8 consecutive registers to neighbouring elements"},
    {"store.v16", 2, 2, statement, writes, any, "", "one access stores 16 consecutive registers to neighbouring elements"},

    {"uniform", 1, 1, of_operands, none, warp, "shfl.sync.idx.b32 %r, %0, 0, 31, 0xffffffff;", "the value of lane 0, which tells the compiler that the warp agrees"},
    {"elect", 0, 0, Dtype::Bool, none, warp, "elect.sync _|%r, 0xffffffff;", "true in one lane of the warp"},
    {"shuffle.xor", 2, 2, of_operands, none, warp, "shfl.sync.bfly.b32 %r, %0, %1, 31, 0xffffffff;", "the value of lane ^ %1"},
    {"shuffle.up", 2, 2, of_operands, none, warp, "shfl.sync.up.b32 %r, %0, %1, 0, 0xffffffff;", "the value of lane - %1, its own where there is none"},
    {"shuffle.down", 2, 2, of_operands, none, warp, "shfl.sync.down.b32 %r, %0, %1, 31, 0xffffffff;", "the value of lane + %1, its own where there is none"},
    {"shuffle.index", 2, 2, of_operands, none, warp, "shfl.sync.idx.b32 %r, %0, %1, 31, 0xffffffff;", "the value of lane %1"},
    {"vote.any", 1, 1, Dtype::Bool, none, warp, "vote.sync.any.pred %r, %0, 0xffffffff;", "whether %0 holds in any lane"},
    {"vote.all", 1, 1, Dtype::Bool, none, warp, "vote.sync.all.pred %r, %0, 0xffffffff;", "whether %0 holds in all lanes"},
    {"bf16x2", 2, 2, Dtype::U32, none, any, "cvt.rn.bf16x2.f32 %r, %1, %0;", "two f32 rounded to bf16, %0 in the low half"},
    {"f16x2", 2, 2, Dtype::U32, none, any, "cvt.rn.f16x2.f32 %r, %1, %0;", "two f32 rounded to f16, %0 in the low half"},

    {"error.report", 2, 2, statement, writes, any, "", "keeps site %0 and the index or bound %1 in the error word of the call, where no offender is there yet"},

    {"cp.async", 3, 3, statement, both, any, "cp.async.ca.shared.global [%0], [%1], #2;", "starts a copy of %2 bytes (4, 8, 16) from global %1 to shared %0"},
    {"cp.async.fill", 4, 4, statement, both, any, "cp.async.ca.shared.global [%0], [%1], #2, %3;", "as cp.async, of which %3 bytes are read and the rest is 0"},
    {"cp.async.commit", 0, 0, statement, none, any, "cp.async.commit_group;", "closes the group of copies started so far"},
    {"cp.async.wait", 1, 1, statement, orders, any, "cp.async.wait_group #0;", "waits until at most %0 groups are open"},

    {"mbarrier.init", 2, 2, statement, writes, any, "mbarrier.init.shared::cta.b64 [%0], %1;", "barrier object %0 expects %1 arrivals a phase"},
    {"mbarrier.arrive", 1, 1, statement, orders, any, "mbarrier.arrive.shared::cta.b64 _, [%0];", "arrives at %0"},
    {"mbarrier.arrive.expect_tx", 2, 2, statement, orders, any, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", "arrives at %0, whose phase also waits for %1 bytes"},
    {"mbarrier.arrive.cluster", 2, 2, statement, orders, any, "{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [r]; }", "arrives at the same object of CTA %1 of the cluster"},
    {"mbarrier.wait", 2, 2, statement, orders, any, "{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }", "waits for the end of the phase of %0 with parity %1"},
    {"fence.mbarrier_init", 0, 0, statement, orders, any, "fence.mbarrier_init.release.cluster;", "makes initialised barrier objects known to the cluster"},
    {"fence.proxy.async.shared", 0, 0, statement, orders, any, "fence.proxy.async.shared::cta;", "orders generic accesses of shared memory before those of the async proxy"},
    {"cluster.arrive", 0, 0, statement, orders, cta, "barrier.cluster.arrive.release.aligned;", "arrives at the cluster's barrier"},
    {"cluster.arrive.relaxed", 0, 0, statement, none, cta, "barrier.cluster.arrive.relaxed.aligned;", "arrives at the cluster's barrier without ordering memory"},
    {"cluster.wait", 0, 0, statement, orders, cta, "barrier.cluster.wait.acquire.aligned;", "waits until all threads of the cluster arrived"},

    {"tma.load.2d", 5, 5, statement, both, any, "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];", "the copy engine fills shared %0 with the box of map %1 at (%2, %3), then completes bytes at %4"},
    {"tma.load.2d.multicast", 6, 6, statement, both, any, "{ .reg .b16 m; cvt.u16.u32 m, %5; cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], m; }", "as tma.load.2d, into every CTA whose bit is set in %5"},
    {"tma.store.2d", 4, 4, statement, both, any, "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];", "the copy engine stores shared %3 to the box of map %0 at (%1, %2), clipped at the tensor"},
    {"tma.load.1d", 4, 4, statement, both, any, "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];", "as tma.load.2d, of a tensor of 1 axis"},
    {"tma.load.1d.multicast", 5, 5, statement, both, any, "{ .reg .b16 m; cvt.u16.u32 m, %4; cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2}], [%3], m; }", "as tma.load.2d.multicast, of a tensor of 1 axis"},
    {"tma.store.1d", 3, 3, statement, both, any, "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];", "as tma.store.2d, of a tensor of 1 axis"},
    {"tma.load.3d", 6, 6, statement, both, any, "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];", "as tma.load.2d, of a tensor of 3 axes"},
    {"tma.load.3d.multicast", 7, 7, statement, both, any, "{ .reg .b16 m; cvt.u16.u32 m, %6; cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], m; }", "as tma.load.2d.multicast, of a tensor of 3 axes"},
    {"tma.store.3d", 5, 5, statement, both, any, "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];", "as tma.store.2d, of a tensor of 3 axes"},
    {"tma.load.4d", 7, 7, statement, both, any, "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];", "as tma.load.2d, of a tensor of 4 axes"},
    {"tma.load.4d.multicast", 8, 8, statement, both, any, "{ .reg .b16 m; cvt.u16.u32 m, %7; cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], m; }", "as tma.load.2d.multicast, of a tensor of 4 axes"},
    {"tma.store.4d", 6, 6, statement, both, any, "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];", "as tma.store.2d, of a tensor of 4 axes"},
    {"tma.load.5d", 8, 8, statement, both, any, "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];", "as tma.load.2d, of a tensor of 5 axes"},
    {"tma.load.5d.multicast", 9, 9, statement, both, any, "{ .reg .b16 m; cvt.u16.u32 m, %8; cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4, %5, %6}], [%7], m; }", "as tma.load.2d.multicast, of a tensor of 5 axes"},
    {"tma.store.5d", 7, 7, statement, both, any, "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];", "as tma.store.2d, of a tensor of 5 axes"},
    {"bulk.commit", 0, 0, statement, none, any, "cp.async.bulk.commit_group;", "closes the group of stores of this thread"},
    {"bulk.wait_group", 1, 1, statement, orders, any, "cp.async.bulk.wait_group #0;", "waits until at most %0 groups are unfinished"},
    {"bulk.wait_group.read", 1, 1, statement, orders, any, "cp.async.bulk.wait_group.read #0;", "waits until at most %0 groups still read shared memory"},

    {"desc", 3, 4, Dtype::U64, none, any, "", "wgmma's matrix descriptor of shared place %0, leading and stride byte offsets %1 and %2, swizzle of %3 bytes (128 where it is left out)"},
    {"wgmma.fence", 1, 1, statement, orders, warpgroup, "wgmma.fence.sync.aligned;", "registers %0 may be read and written by wgmma"},
    {"wgmma.m64n256k16.bf16", 6, 6, statement, both, warpgroup, "{ .reg .pred p; setp.ne.b32 p, %3, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 %0, %1, %2, p, 1, 1, #4, #5; }", "starts %0 += A·B of descriptors %1 and %2 (%0 = A·B where %3 is false), transposed A and B as %4 and %5 say"},
    {"wgmma.commit", 0, 0, statement, none, warpgroup, "wgmma.commit_group.sync.aligned;", "closes the group of wgmmas"},
    {"wgmma.wait", 2, 2, statement, orders, warpgroup, "wgmma.wait_group.sync.aligned #0;", "waits until at most %0 groups are open; registers %1 are then valid"},
    {"setmaxnreg.inc", 1, 1, statement, none, warpgroup, "setmaxnreg.inc.sync.aligned.u32 #0;", "the warpgroup waits for up to %0 registers a thread"},
    {"setmaxnreg.dec", 1, 1, statement, none, warpgroup, "setmaxnreg.dec.sync.aligned.u32 #0;", "the warpgroup gives back all but %0 registers a thread"},
    {"ldmatrix.x4", 5, 5, statement, both, warp, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];", "four 8x8 tiles of 16-bit elements into registers %0 to %3, row addresses from the lanes"},
    {"ldmatrix.x4.trans", 5, 5, statement, both, warp, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];", "as ldmatrix.x4, each tile transposed"},
    {"mma.m16n8k16.bf16", 10, 10, statement, both, warp, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};", "f32 registers %0 to %3 += A·B of bf16 tiles of 16x16 in words %4 to %7 and of 16x8 in words %8 and %9"},
    {"mma.m16n8k16.f16", 10, 10, statement, both, warp, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};", "f32 registers %0 to %3 += A·B of f16 tiles of 16x16 in words %4 to %7 and of 16x8 in words %8 and %9"},
    {"stmatrix.x4", 5, 5, statement, writes, warp, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};", "four 8x8 tiles of 16-bit elements to shared memory, row addresses from the lanes"},
}};

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  for (std::size_t at = result.find(from); at != std::string::npos; at = result.find(from, at + to.size())) result.replace(at, from.size(), to);
  return result;
}

// The table, and wgmma for every n and for f16, whose rows follow from the one for n256 and bf16.
std::vector<InstrInfo> make_rows() {
  static std::deque<std::string> texts;
  std::vector<InstrInfo> rows(patterns.begin(), patterns.end());
  const auto pattern = std::find_if(patterns.begin(), patterns.end(), [](const InstrInfo& row) { return row.name == "wgmma.m64n256k16.bf16"; });
  for (const std::string_view dtype : {"bf16", "f16"})
    for (int n = 8; n <= 256; n += 8) {
      const auto of_this = [&](std::string_view text) -> std::string_view {
        return texts.emplace_back(replaced(replaced(text, "n256", "n" + std::to_string(n)), "bf16", dtype));
      };
      InstrInfo row = *pattern;
      row.name = of_this(pattern->name);
      if (row.name == pattern->name) continue;
      row.ptx = of_this(pattern->ptx);
      rows.push_back(row);
    }
  return rows;
}

const std::vector<InstrInfo>& rows_of_table() {
  static const std::vector<InstrInfo> rows = make_rows();
  return rows;
}

}  // namespace

const InstrInfo* find_instruction(std::string_view name) {
  for (const InstrInfo& row : rows_of_table())
    if (row.name == name) return &row;
  return nullptr;
}

std::span<const InstrInfo> all_instructions() { return rows_of_table(); }

std::optional<WgmmaForm> wgmma_form(std::string_view name) {
  const InstrInfo* row = find_instruction(name);
  if (row == nullptr || !name.starts_with("wgmma.m64n")) return std::nullopt;
  const std::size_t number = name.find('n') + 1;
  return WgmmaForm{std::stoi(std::string(name.substr(number))), name.ends_with(".bf16") ? Dtype::BF16 : Dtype::F16};
}

bool sets_register(const InstrInfo& row, std::size_t operand) {
  return operand < 4 && (row.name.starts_with("ldmatrix.") || row.name.starts_with("mma."));
}

bool takes_constant(const InstrInfo& row, std::size_t operand) {
  const std::array<char, 2> mark = {'#', static_cast<char>('0' + operand)};
  return operand < 10 && row.ptx.find(std::string_view(mark.data(), mark.size())) != std::string_view::npos;
}

}  // namespace tilewright
