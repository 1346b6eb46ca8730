// place_shared: gives each shared buffer its byte offset in the block's shared memory.
//
//   before   shared As: f32[256]; shared Bs: f32[256]
//   after    shared As: f32[256] at 0; shared Bs: f32[256] at 1024        and `shared 2048` in the header
//
// What the copy engine or the tensor cores read by themselves starts at a multiple of 1,024 bytes, where their swizzles
// begin anew; the header then says `align 1024`. Refuses more than the architecture has.
#include <fmt/format.h>

#include <set>

#include "ir/diagnostic.h"
#include "passes/finish/passes.h"

namespace tilewright {

namespace {

constexpr std::int64_t row_alignment = 128;  // a row of all banks, and enough for every vector access
constexpr std::int64_t swizzle_alignment = 1024;

// Buffers that stand in a descriptor or in an operand of the copy engine.
std::set<std::string> read_by_hardware(const Block& body) {
  std::set<std::string> result;
  auto note = [&](const Expr& place) {
    if (const Load* access = as<Load>(place)) result.insert(access->access.buffer);
  };
  walk_expressions(body, [&](const Expr& expr) {
    walk(expr, [&](const Expr& node) {
      if (const Call* call = as<Call>(node); call && call->function == "desc") note(call->arguments[0]);
      return true;
    });
  });
  walk(body, [&](const Stmt& stmt) {
    if (const Instr* instr = as<Instr>(stmt); instr && instr->op.starts_with("tma."))
      for (const Expr& operand : instr->operands) note(operand);
    return true;
  });
  return result;
}

}  // namespace

Plan place_shared(const Plan& plan, const Target& target) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.stage != Stage::Thread) return kernel;
    Kernel result = kernel;
    std::int64_t next = kernel.launch.shared_bytes;
    std::set<std::string> hardware = read_by_hardware(kernel.body);
    Span first;
    result.body = rewrite_statements(kernel.body, [&](const Stmt& stmt) -> Block {
      const Buffer* old = as<Buffer>(stmt);
      if (!old || old->space != Space::Shared || old->offset) return {stmt};
      Buffer buffer = *old;
      std::int64_t alignment = row_alignment;
      if (buffer.dtype == Dtype::Mbarrier) alignment = bytes_of(Dtype::Mbarrier);
      else if (hardware.count(buffer.name)) alignment = swizzle_alignment;
      if (alignment > row_alignment) result.launch.align = alignment;
      next = (next + alignment - 1) / alignment * alignment;
      buffer.offset = next;
      std::int64_t bytes = bytes_of(buffer.dtype);
      for (const BufferAxis& axis : buffer.axes) bytes *= axis.extent;
      next += bytes;
      first = stmt->span;
      return {make_stmt(std::move(buffer), stmt->span)};
    });
    if (next > target.shared_bytes)
      throw UserError(first, fmt::format("kernel `{}` needs {} bytes of shared memory, {} has {} a block", kernel.name, next, target.arch, target.shared_bytes),
                      "stage smaller tiles or fewer buffers");
    result.launch.shared_bytes = next;
    return result;
  });
}

}  // namespace tilewright
