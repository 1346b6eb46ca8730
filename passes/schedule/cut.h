// Brings a serial loop outside of the `each` that it stands in.
//
//   before   each i, j on (…) { reg acc; acc = 0.0; serial k.block { X }; C[i, j] = acc }
//   after    reg acc: f32[i, j] (…); fill acc <- 0.0; serial k.block { each i, j { X } }; each i, j { C[i, j] = acc[i,
//   j] }
//
// What lives across the cuts becomes a register buffer over the axes of the `each`, laid out as its deal says.
#pragma once

#include "passes/loops.h"

namespace tilewright {

// Acts on every loop of this name in a block's body; leaves one that stands outside already. Refuses a loop whose
// bounds differ between the elements, or one in an `if`.
Block bring_outside(const Block& block_body, const LineName& loop);

// Puts a declaration behind the declarations that open a body.
void insert_declaration(Block& body, const Stmt& declaration);

}  // namespace tilewright
