// Accesses of memory and register buffers. A lane that would leave its buffer is reported and left out: it reads 0.
#include "runtime/sim/access.h"

#include <bit>
#include <cstring>

#include "runtime/sim/faults.h"
#include "runtime/sim/shadow.h"
#include "runtime/sim/wgmma.h"

namespace tilewright {

namespace {

template <Dtype D>
constexpr bool is_float_lane = D == Dtype::F32 || D == Dtype::F16 || D == Dtype::BF16 || D == Dtype::E4M3 || D == Dtype::E5M2;
template <Dtype D>
using LaneOf = std::conditional_t<is_float_lane<D>, float, std::conditional_t<D == Dtype::F64, double, std::int64_t>>;

template <Dtype D>
constexpr std::int64_t element_bytes() {
  switch (D) {
    case Dtype::F64: case Dtype::I64: case Dtype::U64: case Dtype::Index: case Dtype::Mbarrier: return 8;
    case Dtype::F32: case Dtype::I32: case Dtype::U32: return 4;
    case Dtype::F16: case Dtype::BF16: case Dtype::I16: case Dtype::U16: return 2;
    case Dtype::E4M3: case Dtype::E5M2: case Dtype::I8: case Dtype::U8: case Dtype::Bool: return 1;
  }
}

template <class T>
T read_as(const std::byte* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

template <Dtype D>
LaneOf<D> load_lane(const std::byte* memory) {
  if constexpr (D == Dtype::F32) return read_as<float>(memory);
  else if constexpr (D == Dtype::BF16) return std::bit_cast<float>(static_cast<std::uint32_t>(read_as<std::uint16_t>(memory)) << 16);
  else if constexpr (D == Dtype::I32) return read_as<std::int32_t>(memory);
  else if constexpr (D == Dtype::U8) return read_as<std::uint8_t>(memory);
  else if constexpr (is_float_lane<D>) return static_cast<float>(load_scalar(D, memory).f);
  else if constexpr (D == Dtype::F64) return read_as<double>(memory);
  else return load_scalar(D, memory).i;
}

template <Dtype D>
void store_lane(std::byte* memory, LaneOf<D> value) {
  if constexpr (D == Dtype::F32 || D == Dtype::F64) {
    std::memcpy(memory, &value, sizeof value);
  } else if constexpr (D == Dtype::BF16) {
    const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    std::memcpy(memory, &upper, sizeof upper);
  } else if constexpr (is_float_lane<D>) {
    store_scalar(D, memory, real_scalar(static_cast<double>(value)));
  } else {
    store_scalar(D, memory, integer_scalar(value));
  }
}

// Where the elements of a site are for this warp's block. Whether an element was written stands in one byte an element of a
// tensor, in the shadow of shared memory.
struct Bank {
  std::byte* base;
  std::uint8_t* written;  // null: not checked
};

Bank bank_of(const MemorySite& site, const Warp& warp) {
  if (!site.is_shared) return {site.base, site.written};
  return {warp.block->shared.data() + site.offset, nullptr};
}

// For the race check, and for what nothing has written in shared memory. Gives the lanes that read that.
template <bool shared>
LaneMask note(Warp& warp, const WarpOp& op, const MemorySite& site, Use use, const std::int64_t* index, int step, int width = 1) {
  if constexpr (shared) {
    if (warp.block->shadow) return warp.block->shadow->access(warp, op, site, use, warp.mask, index, step, width);
  } else {
    if (site.marks != nullptr) site.marks->access(warp, op, site, use, warp.mask, index, step, width);
  }
  return 0;
}
LaneMask note(Warp& warp, const WarpOp& op, const MemorySite& site, Use use, const std::int64_t* index, int step, int width = 1) {
  return site.is_shared ? note<true>(warp, op, site, use, index, step, width) : note<false>(warp, op, site, use, index, step, width);
}

bool is_outside(std::int64_t element, std::int64_t elements) { return static_cast<std::uint64_t>(element) >= static_cast<std::uint64_t>(elements); }

[[gnu::cold, gnu::noinline]] void report_load(Warp& warp, const WarpOp& op, const MemorySite& site, LaneMask outside, LaneMask unwritten) {
  if (outside != 0) report_outside(warp, op, site, outside, false);
  if (unwritten != 0) report_unwritten(warp, op, site, unwritten);
}

template <Dtype D, bool shared>
struct Loads {
  static constexpr std::int64_t bytes = element_bytes<D>();

  static const WarpOp* run(const WarpOp& op, Warp& warp) {
    const MemorySite& site = *static_cast<const MemorySite*>(op.object);
    const Bank bank = bank_of(site, warp);
    const std::int64_t* index = lanes<std::int64_t>(warp, op.a);
    LaneOf<D>* dst = lanes<LaneOf<D>>(warp, op.dst);
    LaneMask outside = 0;
    LaneMask unwritten = 0;
    LaneMask bits = 0;  // of a bool
    const auto one = [&](int lane, bool is_checked) {
      const std::int64_t element = index[lane];
      if (is_outside(element, site.elements)) [[unlikely]] {
        outside |= 1u << lane;
        if constexpr (D != Dtype::Bool) dst[lane] = 0;
        return;
      }
      if (is_checked && bank.written[element] == 0) [[unlikely]] unwritten |= 1u << lane;
      const LaneOf<D> value = load_lane<D>(bank.base + element * bytes);
      if constexpr (D == Dtype::Bool) bits |= static_cast<LaneMask>(value) << lane;
      else dst[lane] = value;
    };
    if (bank.written != nullptr) each_lane(warp.mask, [&](int lane) { one(lane, true); });
    else each_lane(warp.mask, [&](int lane) { one(lane, false); });
    if constexpr (D == Dtype::Bool) mask_at(warp, op.dst) = bits;
    unwritten |= note<shared>(warp, op, site, Use::Read, index, 1);
    if ((outside | unwritten) != 0) [[unlikely]] report_load(warp, op, site, outside, unwritten);
    return following(op);
  }

  // All lanes read one element.
  static const WarpOp* run_uniform(const WarpOp& op, Warp& warp) {
    const MemorySite& site = *static_cast<const MemorySite*>(op.object);
    const Bank bank = bank_of(site, warp);
    const std::int64_t element = *lanes<std::int64_t>(warp, op.a);
    LaneOf<D> value = 0;
    if (is_outside(element, site.elements)) [[unlikely]] {
      report_load(warp, op, site, warp.mask, 0);
    } else {
      const bool is_unwritten = bank.written != nullptr && bank.written[element] == 0;
      if (note<shared>(warp, op, site, Use::Read, &element, 0) != 0 || is_unwritten) [[unlikely]] report_load(warp, op, site, 0, warp.mask);
      value = load_lane<D>(bank.base + element * bytes);
    }
    if constexpr (D == Dtype::Bool) mask_at(warp, op.dst) = value != 0 ? every_lane : 0;
    else *lanes<LaneOf<D>>(warp, op.dst) = value;
    return following(op);
  }
};

template <Dtype D, bool shared>
struct Stores {
  static constexpr std::int64_t bytes = element_bytes<D>();

  static const WarpOp* run(const WarpOp& op, Warp& warp) {
    const MemorySite& site = *static_cast<const MemorySite*>(op.object);
    const Bank bank = bank_of(site, warp);
    const std::int64_t* index = lanes<std::int64_t>(warp, op.a);
    const LaneOf<D>* values = lanes<LaneOf<D>>(warp, op.b);
    const int index_step = (op.uniform & 1) != 0 ? 0 : 1;
    const int value_step = (op.uniform & 2) != 0 ? 0 : 1;
    const LaneMask bits = D == Dtype::Bool ? mask_at(warp, op.b) : 0;
    LaneMask outside = 0;
    each_lane(warp.mask, [&](int lane) {
      const std::int64_t element = index[lane * index_step];
      if (is_outside(element, site.elements)) [[unlikely]] {
        outside |= 1u << lane;
        return;
      }
      if constexpr (D == Dtype::Bool) store_lane<D>(bank.base + element, bits >> lane & 1);
      else store_lane<D>(bank.base + element * bytes, values[lane * value_step]);
      if (bank.written != nullptr) bank.written[element] = 1;
    });
    note<shared>(warp, op, site, Use::Write, index, index_step);
    if (outside != 0) [[unlikely]] report_outside(warp, op, site, outside, true);
    return following(op);
  }
};

template <template <Dtype, bool> class F, class Pick>
WarpOp::Run of_dtype(Dtype dtype, Pick&& pick) {
  switch (dtype) {
    case Dtype::F64: return pick.template operator()<F, Dtype::F64>();
    case Dtype::F32: return pick.template operator()<F, Dtype::F32>();
    case Dtype::F16: return pick.template operator()<F, Dtype::F16>();
    case Dtype::BF16: return pick.template operator()<F, Dtype::BF16>();
    case Dtype::E4M3: return pick.template operator()<F, Dtype::E4M3>();
    case Dtype::E5M2: return pick.template operator()<F, Dtype::E5M2>();
    case Dtype::I64: case Dtype::U64: case Dtype::Index: case Dtype::Mbarrier: return pick.template operator()<F, Dtype::I64>();
    case Dtype::I32: return pick.template operator()<F, Dtype::I32>();
    case Dtype::I16: return pick.template operator()<F, Dtype::I16>();
    case Dtype::I8: return pick.template operator()<F, Dtype::I8>();
    case Dtype::U32: return pick.template operator()<F, Dtype::U32>();
    case Dtype::U16: return pick.template operator()<F, Dtype::U16>();
    case Dtype::U8: return pick.template operator()<F, Dtype::U8>();
    case Dtype::Bool: return pick.template operator()<F, Dtype::Bool>();
  }
  return nullptr;
}

}  // namespace

const WarpOp* run_atomic(const WarpOp& op, Warp& warp) {
  const MemorySite& site = *static_cast<const MemorySite*>(op.object);
  const Bank bank = bank_of(site, warp);
  const std::int64_t bytes = bytes_of(site.dtype);
  LaneMask outside = 0;
  LaneMask unwritten = note(warp, op, site, Use::Update, lanes<std::int64_t>(warp, op.a), (op.uniform & 1) != 0 ? 0 : 1);
  const auto one = [&](int lane) {
    const std::int64_t element = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
    if (is_outside(element, site.elements)) {
      outside |= 1u << lane;
      return;
    }
    if (bank.written != nullptr) {
      if (bank.written[element] == 0) unwritten |= 1u << lane;
      bank.written[element] = 1;
    }
    std::byte* memory = bank.base + element * bytes;
    const Scalar value = read_lane(warp, op.b, site.dtype, (op.uniform & 2) != 0, lane);
    store_scalar(site.dtype, memory, apply(static_cast<BinaryOp>(op.code), site.dtype, load_scalar(site.dtype, memory), value));
  };
  // No order among the lanes is promised: either end may come first.
  if ((warp.block->core->next_random() & 1) != 0) {
    each_lane(warp.mask, one);
  } else {
    for (int lane = lane_count - 1; lane >= 0; --lane)
      if ((warp.mask >> lane & 1) != 0) one(lane);
  }
  if (outside != 0) report_outside(warp, op, site, outside, true);
  if (unwritten != 0) report_unwritten(warp, op, site, unwritten);
  return following(op);
}

const WarpOp* run_flatten(const WarpOp& op, Warp& warp) {
  const std::int64_t* a = lanes<std::int64_t>(warp, op.a);
  const std::int64_t* b = lanes<std::int64_t>(warp, op.b);
  std::int64_t* dst = lanes<std::int64_t>(warp, op.dst);
  const std::int64_t extent = op.jump;
  const int a_step = (op.uniform & 1) != 0 ? 0 : 1;
  const int b_step = (op.uniform & 2) != 0 ? 0 : 1;
  const int count = (op.uniform & 8) != 0 ? 1 : lane_count;
  constexpr std::int64_t far_below = -(std::int64_t{1} << 40);
  for (int lane = 0; lane < count; ++lane) {
    const std::int64_t high = a[lane * a_step];
    const std::int64_t low = b[lane * b_step];
    const bool is_inside = !is_outside(low, extent) && !is_outside(high, std::int64_t{1} << 40);
    dst[lane] = is_inside ? high * extent + low : far_below;
  }
  return following(op);
}

// ---- Registers.
namespace {

LaneMask* written_of(const RegisterSite& site, const Warp& warp) { return lanes<LaneMask>(warp, site.written); }

Cell row_of(const RegisterSite& site, std::int64_t element) { return site.first + static_cast<Cell>(element) * site.row_bytes; }

template <class T>
void copy_lanes(const T* from, T* to, LaneMask mask) {
  if (mask == every_lane) std::memcpy(to, from, sizeof(T) * lane_count);
  else each_lane(mask, [&](int lane) { to[lane] = from[lane]; });
}

}  // namespace

const WarpOp* run_register_check(const WarpOp& op, Warp& warp) {
  const RegisterSite& site = *static_cast<const RegisterSite*>(op.object);
  LaneMask* written = written_of(site, warp);
  const LaneMask missing = warp.mask & ~*written;
  if (missing != 0) [[unlikely]] {
    report_unwritten(warp, op, site, missing);
    *written |= missing;  // once is enough
  }
  return following(op);
}

const WarpOp* run_register_written(const WarpOp& op, Warp& warp) {
  *written_of(*static_cast<const RegisterSite*>(op.object), warp) |= warp.mask;
  return following(op);
}

const WarpOp* run_register_declaration(const WarpOp& op, Warp& warp) {
  const RegisterSite& site = *static_cast<const RegisterSite*>(op.object);
  LaneMask* written = written_of(site, warp);
  for (std::int64_t element = 0; element < site.elements; ++element) written[element] &= ~warp.mask;
  return following(op);
}

const WarpOp* run_register_load(const WarpOp& op, Warp& warp) {
  const RegisterSite& site = *static_cast<const RegisterSite*>(op.object);
  if (site.is_checked && site.accumulator != 0) touch_accumulator(warp, op, site);
  LaneMask outside = 0;
  LaneMask unwritten = 0;
  if ((op.uniform & 1) != 0) {
    const std::int64_t element = *lanes<std::int64_t>(warp, op.a);
    if (is_outside(element, site.elements)) {
      outside = warp.mask;
    } else {
      if (site.is_checked) unwritten = warp.mask & ~written_of(site, warp)[element];
      const Cell row = row_of(site, element);
      if (site.dtype == Dtype::Bool) mask_at(warp, op.dst) = mask_at(warp, row);
      else if (is_float_cell(site.dtype)) copy_lanes(lanes<float>(warp, row), lanes<float>(warp, op.dst), every_lane);
      else copy_lanes(lanes<std::int64_t>(warp, row), lanes<std::int64_t>(warp, op.dst), every_lane);
    }
  } else {
    const std::int64_t* index = lanes<std::int64_t>(warp, op.a);
    each_lane(warp.mask, [&](int lane) {
      if (is_outside(index[lane], site.elements)) {
        outside |= 1u << lane;
        return;
      }
      if (site.is_checked && (written_of(site, warp)[index[lane]] >> lane & 1) == 0) unwritten |= 1u << lane;
      write_lane(warp, op.dst, site.dtype, lane, read_lane(warp, row_of(site, index[lane]), site.dtype, false, lane));
    });
  }
  if (outside != 0) [[unlikely]] {
    each_lane(outside, [&](int lane) { write_lane(warp, op.dst, site.dtype, lane, Scalar{}); });
    report_outside(warp, op, site, outside, false);
  }
  if (unwritten != 0) [[unlikely]] report_unwritten(warp, op, site, unwritten);
  return following(op);
}

const WarpOp* run_register_store(const WarpOp& op, Warp& warp) {
  const RegisterSite& site = *static_cast<const RegisterSite*>(op.object);
  if (site.is_checked && site.accumulator != 0) touch_accumulator(warp, op, site);
  const bool is_uniform = (op.uniform & 2) != 0;
  LaneMask outside = 0;
  if ((op.uniform & 1) != 0) {
    const std::int64_t element = *lanes<std::int64_t>(warp, op.a);
    if (is_outside(element, site.elements)) {
      outside = warp.mask;
    } else {
      const Cell row = row_of(site, element);
      if (!is_uniform && is_float_cell(site.dtype)) copy_lanes(lanes<float>(warp, op.b), lanes<float>(warp, row), warp.mask);
      else each_lane(warp.mask, [&](int lane) { write_lane(warp, row, site.dtype, lane, read_lane(warp, op.b, site.dtype, is_uniform, lane)); });
      if (site.is_checked) written_of(site, warp)[element] |= warp.mask;
    }
  } else {
    const std::int64_t* index = lanes<std::int64_t>(warp, op.a);
    each_lane(warp.mask, [&](int lane) {
      if (is_outside(index[lane], site.elements)) {
        outside |= 1u << lane;
        return;
      }
      write_lane(warp, row_of(site, index[lane]), site.dtype, lane, read_lane(warp, op.b, site.dtype, is_uniform, lane));
      if (site.is_checked) written_of(site, warp)[index[lane]] |= 1u << lane;
    });
  }
  if (outside != 0) [[unlikely]] report_outside(warp, op, site, outside, true);
  return following(op);
}

// ---- One access of several elements.
namespace {

template <bool is_store>
const WarpOp* run_vector(const WarpOp& op, Warp& warp) {
  const VectorSite& site = *static_cast<const VectorSite*>(op.object);
  const MemorySite& memory = site.memory;
  const RegisterSite& registers = site.registers;
  const Bank bank = bank_of(memory, warp);
  const std::int64_t bytes = bytes_of(memory.dtype);
  const std::int64_t first = *lanes<std::int64_t>(warp, op.b);
  LaneMask outside = 0;
  LaneMask misaligned = 0;
  LaneMask unwritten = 0;
  LaneMask unwritten_registers = 0;
  if (first < 0 || first + site.width > registers.elements) {
    report_outside(warp, op, registers, warp.mask, !is_store);
    return following(op);
  }
  unwritten = note(warp, op, memory, is_store ? Use::Write : Use::Read, lanes<std::int64_t>(warp, op.a), (op.uniform & 1) != 0 ? 0 : 1, site.width);
  if (registers.is_checked && registers.accumulator != 0) touch_accumulator(warp, op, registers);
  each_lane(warp.mask, [&](int lane) {
    const std::int64_t element = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
    if (element < 0 || element > memory.elements - site.width) {
      outside |= 1u << lane;
      return;
    }
    if ((memory.offset + element * bytes) % (site.width * bytes) != 0) misaligned |= 1u << lane;
    for (int n = 0; n < site.width; ++n) {
      std::byte* place = bank.base + (element + n) * bytes;
      const Cell row = row_of(registers, first + n);
      LaneMask* row_written = registers.is_checked ? written_of(registers, warp) + first + n : nullptr;
      if constexpr (is_store) {
        if (row_written != nullptr && (*row_written >> lane & 1) == 0) unwritten_registers |= 1u << lane;
        store_scalar(memory.dtype, place, read_lane(warp, row, registers.dtype, false, lane));
        if (bank.written != nullptr) bank.written[element + n] = 1;
      } else {
        if (bank.written != nullptr && bank.written[element + n] == 0) unwritten |= 1u << lane;
        write_lane(warp, row, registers.dtype, lane, load_scalar(memory.dtype, place));
        if (row_written != nullptr) *row_written |= 1u << lane;
      }
    }
  });
  if (outside != 0) report_outside(warp, op, memory, outside, is_store);
  if (misaligned != 0) report_misaligned(warp, op, site, misaligned, is_store);
  if (unwritten != 0) report_unwritten(warp, op, memory, unwritten);
  if (unwritten_registers != 0) report_unwritten(warp, op, registers, unwritten_registers);
  return following(op);
}

}  // namespace

WarpOp::Run run_of_load(const MemorySite& site, bool is_uniform) {
  return of_dtype<Loads>(site.dtype, [&]<template <Dtype, bool> class F, Dtype D>() -> WarpOp::Run {
    if (site.is_shared) return is_uniform ? F<D, true>::run_uniform : F<D, true>::run;
    return is_uniform ? F<D, false>::run_uniform : F<D, false>::run;
  });
}

WarpOp::Run run_of_store(const MemorySite& site) {
  return of_dtype<Stores>(site.dtype, [&]<template <Dtype, bool> class F, Dtype D>() -> WarpOp::Run {
    return site.is_shared ? F<D, true>::run : F<D, false>::run;
  });
}

const WarpOp* run_vector_load(const WarpOp& op, Warp& warp) { return run_vector<false>(op, warp); }
const WarpOp* run_vector_store(const WarpOp& op, Warp& warp) { return run_vector<true>(op, warp); }

}  // namespace tilewright
