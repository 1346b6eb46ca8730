// place_shared: gives each shared buffer its byte offset in the block's shared memory.
//
//   before   shared As: f32[256]; shared Bs: f32[256]
//   after    shared As: f32[256] at 0; shared Bs: f32[256] at 1024        and `shared 2048` in the header
//
// Refuses more than the architecture has.
#include <fmt/format.h>

#include "ir/diagnostic.h"
#include "passes/finish/passes.h"

namespace tilewright {

namespace {

constexpr std::int64_t alignment = 128;  // a row of all banks, and enough for every vector access

}  // namespace

Plan place_shared(const Plan& plan, const Target& target) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.stage != Stage::Thread) return kernel;
    Kernel result = kernel;
    std::int64_t next = kernel.launch.shared_bytes;
    Span first;
    result.body = rewrite_statements(kernel.body, [&](const Stmt& stmt) -> Block {
      const Buffer* old = as<Buffer>(stmt);
      if (!old || old->space != Space::Shared || old->offset) return {stmt};
      Buffer buffer = *old;
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
