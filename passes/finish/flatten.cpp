// Flat addresses.
#include "passes/finish/flatten.h"

#include <fmt/format.h>

#include "ir/diagnostic.h"

namespace tilewright {

const Buffer* Flattener::find(const std::string& name) const {
  for (const Buffer& buffer : buffers_)
    if (buffer.name == name) return &buffer;
  return nullptr;
}

namespace {

Expr row_major_index(const std::vector<Expr>& index, const std::vector<Expr>& shape) {
  Expr flat = integer(0);
  for (std::size_t d = 0; d < index.size(); ++d) flat = flat * shape[d] + cast(Dtype::Index, index[d]);
  return flat;
}

// The 16-byte chunks within each row of a panel change places (ir/layout.h).
Expr swizzled_index(const Expr& flat, int xor_bytes, Dtype dtype) {
  std::int64_t chunk = 16 / bytes_of(dtype);
  std::int64_t row_elements = xor_bytes / bytes_of(dtype);
  std::int64_t chunks = row_elements / chunk;
  auto div = [](const Expr& a, std::int64_t b) { return binary(BinaryOp::Div, a, integer(b)); };
  auto mod = [](const Expr& a, std::int64_t b) { return binary(BinaryOp::Mod, a, integer(b)); };
  Expr row = div(flat, row_elements);
  Expr position = binary(BinaryOp::BitXor, mod(div(flat, chunk), chunks), mod(div(flat, 128 / bytes_of(dtype)), chunks));
  return row * row_elements + position * chunk + mod(flat, chunk);
}

}  // namespace

bool has_slots(const Buffer& buffer) {
  return buffer.space == Space::Shared && buffer.axes.size() > 1 && buffer.axes[0].name == "slot";
}

namespace {
// One element a thread: a scalar.
bool is_single_register(const Buffer& buffer) {
  return buffer.space == Space::Register && buffer.layout && extent_of(*buffer.layout, Place::Reg) == 1;
}

std::int64_t slot_elements(const Buffer& buffer) {
  if (buffer.layout) return buffer.layout->axes[0].factors.back().stride;
  std::int64_t elements = 1;
  for (std::size_t d = 1; d < buffer.axes.size(); ++d) elements *= buffer.axes[d].extent;
  return elements;
}
}  // namespace

// A factor of stride S takes the digit (index / inner) % extent; one factor alone takes the index as it is.
Expr Flattener::in_layout(const Buffer& buffer, const std::vector<Expr>& index, Place place) const {
  Expr flat = integer(0);
  for (std::size_t d = 0; d < index.size(); ++d) {
    const std::vector<Factor>& factors = buffer.layout->axes[d].factors;
    std::int64_t inner = 1;
    for (std::size_t n = factors.size(); n-- > 0;) {
      const Factor& factor = factors[n];
      if (factor.place == place) {
        Expr digit = cast(Dtype::Index, index[d]);
        digit = binary(BinaryOp::Div, digit, integer(inner));
        if (n > 0) digit = binary(BinaryOp::Mod, digit, integer(factor.extent));
        flat = flat + digit * factor.stride;
      }
      inner *= factor.extent;
    }
  }
  return flat;
}

Expr Flattener::flat_index(const Access& access) const { return flat_index(access, true); }

Expr Flattener::flat_index(const Access& access, bool swizzles) const {
  if (const Buffer* buffer = find(access.buffer)) {
    if (buffer->layout) {
      bool shared = buffer->space == Space::Shared;
      Expr flat = in_layout(*buffer, access.index, shared ? Place::Mem : Place::Reg);
      return swizzles && shared && buffer->layout->xor_bytes ? swizzled_index(flat, buffer->layout->xor_bytes, buffer->dtype) : flat;
    }
    std::vector<Expr> shape;
    for (const BufferAxis& axis : buffer->axes) shape.push_back(integer(axis.extent));
    return row_major_index(access.index, shape);
  }
  auto tensor = find_tensor(plan_, access.buffer);
  if (!tensor) internal_error(fmt::format("an access of `{}`, which is no tensor and no buffer", access.buffer));
  return row_major_index(access.index, tensor->shape);
}

Access Flattener::flat(const Access& access) const { return flat(access, true); }
Access Flattener::unswizzled(const Access& access) const { return flat(access, false); }

Access Flattener::flat(const Access& access, bool swizzles) const {
  if (access.index.empty()) return access;
  if (const Buffer* buffer = find(access.buffer); buffer && is_single_register(*buffer)) return Access{access.buffer, {}, access.rule, access.span};
  if (const Buffer* buffer = find(access.buffer); buffer && has_slots(*buffer)) {
    Access first = access;
    first.index[0] = integer(0);
    return Access{access.buffer, {access.index[0], flat_index(first, swizzles)}, access.rule, access.span};
  }
  return Access{access.buffer, {flat_index(access, swizzles)}, access.rule, access.span};
}

Expr Flattener::flat(const Expr& expr) const {
  return rewrite(expr, [&](const Expr& node) {
    const Load* access = as<Load>(node);
    return access ? load(flat(access->access), node->dtype, node->span) : node;
  });
}

Block Flattener::flat(const Block& body) const {
  return rewrite_statements(body, [&](const Stmt& stmt) -> Block {
    if (const Buffer* buffer = as<Buffer>(stmt)) return {make_stmt(flat(*buffer), stmt->span)};
    Stmt again = map_expressions(stmt, [&](const Expr& expr) { return flat(expr); });
    if (const Store* store = as<Store>(again)) {
      Store node = *store;
      node.target = flat(node.target);
      return {make_stmt(std::move(node), stmt->span)};
    }
    return {again};
  });
}

Buffer Flattener::flat(const Buffer& buffer) const {
  Buffer result = buffer;
  result.layout.reset();
  if (buffer.axes.empty()) return result;
  if (is_single_register(buffer)) {
    result.axes.clear();
    return result;
  }
  if (has_slots(buffer)) {
    result.axes = {buffer.axes[0], BufferAxis{"", slot_elements(buffer)}};
    return result;
  }
  std::int64_t elements = 1;
  if (buffer.layout) {
    elements = extent_of(*buffer.layout, buffer.space == Space::Shared ? Place::Mem : Place::Reg);
  } else {
    for (const BufferAxis& axis : buffer.axes) elements *= axis.extent;
  }
  result.axes = {BufferAxis{"", elements}};
  return result;
}

}  // namespace tilewright
