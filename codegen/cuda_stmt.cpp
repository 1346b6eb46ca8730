// Statements of the thread stage as CUDA C.
#include <fmt/format.h>

#include "codegen/cuda_printer.h"
#include "codegen/cuda_types.h"
#include "ir/diagnostic.h"
#include "ir/operators.h"

namespace tilewright {

void CudaPrinter::line(const std::string& text) {
  if (span_.is_known()) origins_.push_back({line_, span_});
  body_ += std::string(static_cast<std::size_t>(depth_) * 2, ' ') + text + "\n";
  ++line_;
}

void CudaPrinter::open(const std::string& head) {
  line(head + " {");
  ++depth_;
}

void CudaPrinter::close(const std::string& tail) {
  --depth_;
  line(tail);
}

void CudaPrinter::print_block(const Block& block) {
  for (const Stmt& stmt : block) print_stmt(stmt);
}

void CudaPrinter::print_stmt(const Stmt& stmt) {
  const Span outer = span_;
  if (stmt->span.is_known()) span_ = stmt->span;
  const auto no_thread_stage = [](std::string_view what) {
    internal_error(fmt::format("print_cuda: {} does not stand at thread stage", what));
  };
  match(
      stmt, [&](const Loop& node) { print_loop(node); }, [&](const If& node) { print_if(node); },
      [&](const Buffer& node) { print_buffer(node); }, [&](const Let& node) { print_let(node); },
      [&](const Store& node) { print_store(node); }, [&](const Instr& node) { print_instr(node); },
      [&](const Copy&) { no_thread_stage("a copy"); }, [&](const Fill&) { no_thread_stage("a fill"); },
      [&](const Mma&) { no_thread_stage("an mma"); }, [&](const Fold&) { no_thread_stage("a reduce or scan"); },
      [&](const Pipe&) { no_thread_stage("a pipe"); }, [&](const Verb&) { no_thread_stage("a verb of a pipe"); },
      [&](const Role&) { no_thread_stage("a role"); }, [&](const Labelled&) { no_thread_stage("a role's label"); },
      [&](const Chain&) { no_thread_stage("a chain"); }, [&](const Publish&) { no_thread_stage("a publish"); },
      [&](const Lookback&) { no_thread_stage("a lookback"); });
  span_ = outer;
}

// `unroll r in 128 { acc[r] = 0.0 }`, all elements of an array of registers, as one call: NVRTC takes long over the loop.
bool CudaPrinter::print_fill(const Loop& loop) {
  constexpr std::int64_t least = 32;
  const Store* store = loop.kind == LoopKind::Unroll && loop.axes.size() == 1 && loop.body.size() == 1 ? as<Store>(loop.body[0]) : nullptr;
  if (!store || store->atomic || !store->where.empty() || store->target.rule.kind != Rule::Kind::None || !as<Const>(store->value)) return false;
  const Place& place = place_of(store->target.buffer);
  const Axis& axis = loop.axes[0];
  const Var* index = store->target.index.size() == 1 ? as<Var>(store->target.index[0]) : nullptr;
  const bool is_whole = place.kind == Place::Kind::Array && place.extents.size() == 1 && place.extents[0] >= least && index &&
                        index->name == axis.name && is_integer_constant(axis.lo, 0) && is_integer_constant(axis.hi, place.extents[0]) &&
                        (!axis.step || is_integer_constant(axis.step, 1));
  if (!is_whole) return false;
  const std::string element = type(place.dtype);
  const std::string head = fmt::format("__device__ __forceinline__ void fill({0} (&a)[{1}], {0} value)", element, place.extents[0]);
  std::string list;
  for (std::int64_t at = 0; at < place.extents[0]; ++at) list += fmt::format("{}a[{}] = ", at > 0 && at % 8 == 0 ? "\n      " : "", at);
  prelude_.add("fill", head, fmt::format("{} {{\n  {}value;\n}}", head, list));
  line(fmt::format("fill({}, {});", c_name_of(store->target.buffer), text(store->value)));
  return true;
}

void CudaPrinter::print_loop(const Loop& loop) {
  if (print_fill(loop)) return;
  const bool is_unrolled = loop.kind == LoopKind::Unroll || loop.kind == LoopKind::Vector;
  if (!is_unrolled && loop.kind != LoopKind::Serial)
    internal_error("print_cuda: only serial, unroll and vector loops stand at thread stage");
  for (const Axis& axis : loop.axes) {
    if (is_nonnegative(axis.lo))
      nonnegative_.insert(axis.name);
    else
      nonnegative_.erase(axis.name);
    const std::string& name = c_name_of(axis.name);
    const std::string step =
        !axis.step || is_integer_constant(axis.step, 1) ? "++" + name : fmt::format("{} += {}", name, text(axis.step));
    if (is_unrolled) line("#pragma unroll");
    if (!is_unrolled && is_pipelined(loop)) line("#pragma unroll 1");
    open(fmt::format("for ({} {} = {}; {} < {}; {})", type(Dtype::Index), name, text(axis.lo), name,
                     text(axis.hi, Binding::Shift), step));
  }
  print_block(loop.body);
  for (std::size_t axis = 0; axis < loop.axes.size(); ++axis) close();
}

void CudaPrinter::print_if(const If& node) {
  open(fmt::format("if ({})", text(node.condition)));
  print_block(node.then_body);
  if (!node.else_body.empty()) {
    --depth_;
    open("} else");
    print_block(node.else_body);
  }
  close();
}

void CudaPrinter::print_buffer(const Buffer& buffer) {
  Place place{Place::Kind::Scalar, buffer.dtype, {}};
  std::int64_t elements = 1;
  for (const BufferAxis& axis : buffer.axes) {
    place.extents.push_back(axis.extent);
    elements *= axis.extent;
  }
  const std::string& name = c_name_of(buffer.name);
  const std::string element = type(buffer.dtype);
  if (buffer.space == Space::Shared) {
    place.kind = Place::Kind::Shared;
    const std::string block = buffer.offset.value_or(0) == 0 ? "shared" : fmt::format("(shared + {})", *buffer.offset);
    if (buffer.offset)
      line(fmt::format("{0}* const {1} = ({0}*){2};", element, name, block));
    else
      line(fmt::format("__shared__ __align__(16) {} {}[{}];", element, name, elements));
  } else if (buffer.axes.empty()) {
    line(fmt::format("{} {};", element, name));
  } else {
    place.kind = Place::Kind::Array;
    line(fmt::format("{}{} {}[{}];", wide_arrays_.count(buffer.name) != 0 ? "__align__(16) " : "", element, name,
                     elements));
  }
  places_.insert_or_assign(buffer.name, place);
}

void CudaPrinter::print_let(const Let& let) {
  const bool promised = let.lo && is_nonnegative(let.lo);
  if (promised || is_nonnegative(let.value))
    nonnegative_.insert(let.name);
  else
    nonnegative_.erase(let.name);
  line(fmt::format("const {} {} = {};", type(let.value->dtype), c_name_of(let.name), text(let.value)));
}

void CudaPrinter::print_store(const Store& store) {
  const Expr condition = all_of(store.where);
  const std::string guard = condition ? fmt::format("if ({}) ", text(condition)) : "";
  if (store.atomic) {
    line(fmt::format("{}{};", guard, atomic_call(store, address(store.target), text(store.value))));
    return;
  }
  line(fmt::format("{}{} = {};", guard, access(store.target), text(store.value)));
}

namespace {

// CUDA's own atomics by what they take; everything else is a loop of compare and swap.
std::string native_atomic(CombineOp op, Dtype dtype) {
  const bool is_word = dtype == Dtype::I32 || dtype == Dtype::U32;
  const bool is_long = dtype == Dtype::I64 || dtype == Dtype::U64;
  switch (op) {
    case CombineOp::Add:
      return is_word || is_long || dtype == Dtype::F32 || dtype == Dtype::F64 ? "atomicAdd" : "";
    case CombineOp::Max:
      return is_word || is_long ? "atomicMax" : "";
    case CombineOp::Min:
      return is_word || is_long ? "atomicMin" : "";
    case CombineOp::And:
      return is_word || is_long ? "atomicAnd" : "";
    case CombineOp::Or:
      return is_word || is_long ? "atomicOr" : "";
    case CombineOp::Mul:
      return "";
  }
  return "";
}

std::string_view word_of(CombineOp op) {
  switch (op) {
    case CombineOp::Add:
      return "add";
    case CombineOp::Mul:
      return "mul";
    case CombineOp::Max:
      return "max";
    case CombineOp::Min:
      return "min";
    case CombineOp::And:
      return "and";
    case CombineOp::Or:
      return "or";
  }
  return "";
}

}  // namespace

std::string CudaPrinter::atomic_call(const Store& store, const std::string& place, const std::string& value) {
  const CombineOp op = *store.atomic;
  const Dtype dtype = place_of(store.target.buffer).dtype;
  const std::string native = native_atomic(op, dtype);
  if (!native.empty()) {
    // Sums and bits of i64 are those of u64, the only 64-bit type these functions take.
    const bool as_unsigned =
        dtype == Dtype::I64 && (op == CombineOp::Add || op == CombineOp::And || op == CombineOp::Or);
    if (!as_unsigned) return fmt::format("{}({}, {})", native, place, value);
    return fmt::format("{}((unsigned long long*){}, (unsigned long long)({}))", native, place, value);
  }
  // The function is named by its operation and found by the type of its pointer; bf16 and f16 share one, so they are
  // told apart by name.
  const std::string name = fmt::format("atomic_{}{}{}", word_of(op), is_narrow_float(dtype) ? "_" : "",
                                       is_narrow_float(dtype) ? info(dtype).name : "");
  names_.insert_or_assign("atomic old", "old");
  names_.insert_or_assign("atomic value", "value");
  const std::string combined = text(combine(op, var("atomic old", dtype), var("atomic value", dtype)));
  const std::string element = type(dtype);
  const bool is_wide = bytes_of(dtype) == 8;
  const std::string word = is_wide ? "unsigned long long" : "unsigned int";
  std::string text =
      fmt::format("__device__ __forceinline__ void {}({}* place, {} value) {{\n", name, element, element);
  if (bytes_of(dtype) >= 4) {
    text += fmt::format("  {}* word = ({}*)place;\n", word, word);
    text += "  " + word + " seen = *word, before;\n  do {\n    before = seen;\n";
    const std::string bits = fmt::format("*({}*)&", element);
    text += fmt::format("    const {} old = {}before;\n    const {} next = {};\n", element, bits, element, combined);
    text += fmt::format("    seen = atomicCAS(word, before, *({}*)&next);\n  }} while (seen != before);\n}}", word);
  } else {
    // The aligned word around it; its other bytes are put back as they were, or the swap fails and starts again.
    const int bits = info(dtype).bits;
    text += "  unsigned int* word = (unsigned int*)((unsigned long long)place & ~3ull);\n";
    text += "  const int shift = (int)((unsigned long long)place & 3) * 8;\n";
    text += "  unsigned int seen = *word, before;\n  do {\n    before = seen;\n";
    text += fmt::format("    const {} old = ({})(before >> shift & {}u);\n", element, element, (1u << bits) - 1);
    text += fmt::format("    const {} next = {};\n", element, combined);
    text += fmt::format("    const unsigned int mask = {}u << shift;\n", (1u << bits) - 1);
    text +=
        fmt::format("    seen = atomicCAS(word, before, (before & ~mask) | ((unsigned int)next << shift & mask));\n");
    text += "  } while (seen != before);\n}";
  }
  prelude_.add(name, name + element, text);
  return fmt::format("{}({}, {})", name, place, value);
}

}  // namespace tilewright
