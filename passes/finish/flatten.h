// Flat addresses: tile coordinates of tensors and buffers become element offsets.
#pragma once

#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

// Whether the buffer of a pipe has its slot axis in front.
bool has_slots(const Buffer& buffer);

class Flattener {
 public:
  Flattener(const Plan& plan, std::vector<Buffer> buffers) : plan_(plan), buffers_(std::move(buffers)) {}

  const Buffer* find(const std::string& name) const;

  // The flat element of an access: row-major for tensors and a thread's own arrays, by the layout for shared buffers
  // (swizzle written out), the register digits for a block's register buffer. A slot axis in front counts in.
  Expr flat_index(const Access& access) const;
  // The access with its flat index, or slot and flat index; a scalar keeps none.
  Access flat(const Access& access) const;
  // The same without the swizzle, as the copy engine and the tensor cores take the start of a tile.
  Access unswizzled(const Access& access) const;
  Expr flat(const Expr& expr) const;    // in all loads
  Block flat(const Block& body) const;  // in all loads and stores
  // The declaration of a buffer at thread stage: one axis of as many elements as it needs, behind a slot axis if it has one.
  Buffer flat(const Buffer& buffer) const;

 private:
  Access flat(const Access& access, bool swizzles) const;
  Expr flat_index(const Access& access, bool swizzles) const;
  Expr in_layout(const Buffer& buffer, const std::vector<Expr>& index, Place place) const;

  const Plan& plan_;
  std::vector<Buffer> buffers_;
};

}  // namespace tilewright
