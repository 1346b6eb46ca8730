// Deals: which thread of a block runs which element of an `each` or a copy, as expressions of the thread index.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "passes/affine.h"

namespace tilewright {

// Threads of a block, or of a role in it, x first.
struct BlockShape {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  std::int64_t first = 0;  // thread.x of a role's first thread
  std::int64_t total() const { return x * y * z; }
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

// The shape that the kernel states (threads, 32 x warps, or the warps of its roles); nothing where it states none.
std::optional<BlockShape> stated_block_shape(const Kernel& kernel);

// The linear index of the thread in its block or role.
Expr linear_thread(const BlockShape& block);

// The factors of an axis that one thread walks itself: `Step`, `Reg` or `Vector` digits become the variables given.
struct WalkedFactor {
  std::size_t factor;  // which factor of the axis
  Expr digit;
};
// The coordinate of an axis for the thread that runs, with digits of the walked factors as given.
Expr coordinate(const AxisLayout& axis, const BlockShape& block, const std::vector<WalkedFactor>& walked);

bool is_thread_place(Place place);
// What must hold so that this thread takes part in a deal: thread indices inside what the deal uses.
std::vector<Expr> participation(const Layout& deal, const BlockShape& block);

// An axis that a copy loops over: `As.i` over axis i of As.
struct CopyAxis {
  std::string name;
  std::int64_t extent = 1;
};
std::vector<CopyAxis> copy_axes(const Copy& copy, const std::vector<Buffer>& buffers);

// The default deal of a copy between global and shared memory: neighbouring threads take neighbouring vectors of the
// global side's innermost axis, as wide as at most 16 bytes, the facts and the tile allow; slower axes take the
// remaining threads, the rest are steps.
Layout choose_copy_deal(const Plan& plan, const Copy& copy, const std::vector<Buffer>& buffers, const BlockShape& block);

// The default deal of an `each`: the last axis on thread.x, the one before on thread.y as far as threads are left.
Layout default_deal(const std::vector<std::pair<std::string, std::int64_t>>& axes, const BlockShape& block);

// Elements of an access that lie side by side along `name` and start at a multiple of `width`: the condition for one
// vector access. `flat` is the flat element index; `alignment` the bytes that the base is known to be aligned to.
bool is_vector_access(const Expr& flat, const std::string& name, std::int64_t width, int element_bytes, std::int64_t alignment,
                      const Divisors& divisors);
// Alignment in bytes of a tensor's base: 16 where a fact says so, else its element.
std::int64_t base_alignment(const Plan& plan, Dtype dtype);

}  // namespace tilewright
