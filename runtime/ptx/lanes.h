// Operations lane by lane: a value is a function object over C++ types, and its rows are taken from the Op.
#pragma once

#include <type_traits>

#include "runtime/ptx/decode.h"

namespace tilewright::ptx {

template <class D, class A, class F>
void run_unary(const Op& op, Warp& warp, LaneMask lanes) {
  D* d = warp.row<D>(op.dst);
  const A* a = warp.row<A>(op.a);
  for_lanes(lanes, [&](int lane) { d[lane] = static_cast<D>(F{}(a[lane])); });
}
template <class D, class A, class F>
void run_binary(const Op& op, Warp& warp, LaneMask lanes) {
  D* d = warp.row<D>(op.dst);
  const A* a = warp.row<A>(op.a);
  const A* b = warp.row<A>(op.b);
  for_lanes(lanes, [&](int lane) { d[lane] = static_cast<D>(F{}(a[lane], b[lane])); });
}
template <class D, class A, class C, class F>
void run_ternary(const Op& op, Warp& warp, LaneMask lanes) {
  D* d = warp.row<D>(op.dst);
  const A* a = warp.row<A>(op.a);
  const A* b = warp.row<A>(op.b);
  const C* c = warp.row<C>(op.c);
  for_lanes(lanes, [&](int lane) { d[lane] = static_cast<D>(F{}(a[lane], b[lane], c[lane])); });
}
// The second operand has a type of its own: counts of shifts, positions.
template <class D, class A, class B, class F>
void run_mixed(const Op& op, Warp& warp, LaneMask lanes) {
  D* d = warp.row<D>(op.dst);
  const A* a = warp.row<A>(op.a);
  const B* b = warp.row<B>(op.b);
  for_lanes(lanes, [&](int lane) { d[lane] = static_cast<D>(F{}(a[lane], b[lane])); });
}

// The C++ type of an integer type, in a visitor: pick_integer(type, [](auto zero) { using T = decltype(zero); … }).
template <class F>
Op::Run pick_integer(Type type, F&& f) {
  switch (type) {
    case Type::B16: case Type::U16: return f(std::uint16_t{});
    case Type::S16: return f(std::int16_t{});
    case Type::B32: case Type::U32: return f(std::uint32_t{});
    case Type::S32: return f(std::int32_t{});
    case Type::B64: case Type::U64: return f(std::uint64_t{});
    case Type::S64: return f(std::int64_t{});
    case Type::Pred: case Type::B8: case Type::B128: case Type::U8: case Type::S8: case Type::F16: case Type::F16x2: case Type::BF16: case Type::BF16x2:
    case Type::F32: case Type::F64: case Type::TF32: case Type::E4M3x2: case Type::E5M2x2: break;
  }
  return nullptr;
}

// Adds an operation with one to four operands of `bits` each; the result too.
inline Op& add_plain(Builder& builder, const Instruction& at, Op::Run run, int result_bits, int operand_bits, std::size_t operands) {
  if (run == nullptr) builder.unsupported("this type");
  Row rows[4] = {0, 0, 0, 0};
  for (std::size_t n = 0; n < operands; ++n) rows[n] = builder.read(at, n + 1, operand_bits);
  const Row dst = builder.write(at, 0, result_bits);
  Op& op = builder.add(run);
  op.dst = dst;
  op.a = rows[0];
  op.b = rows[1];
  op.c = rows[2];
  op.d = rows[3];
  return op;
}

}  // namespace tilewright::ptx
