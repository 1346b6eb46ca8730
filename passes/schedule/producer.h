// Kernels as lowering makes them, one thread an element, taken apart to be moved into another kernel.
#pragma once

#include "passes/loops.h"

namespace tilewright {

// parallel axes { before; t[axes] = value }
struct Producer {
  std::string tensor;
  std::vector<Axis> axes;  // in the order of the tensor's indices
  Block before;            // empty for a pointwise statement
  Expr value;
  Span span;
};

// Refuses, at `tensor`, a kernel that is tiled or bound already, and one that does not write its tensor element for
// element.
Producer producer_of(const Plan& plan, const LineName& tensor, std::string_view word);

// The parallel loops around all of a kernel and what is inside; refuses a kernel that has been tiled or bound.
struct NaiveKernel {
  std::vector<Axis> axes;
  Block body;
  Span span;
};
NaiveKernel naive_kernel(const Kernel& kernel, Span at, std::string_view word);
Kernel with_body(const Kernel& kernel, std::vector<Axis> axes, Block body, Span span);

// The producer's statements for the element `index`, with its own buffers under new names, and a scalar `name` with the
// value. Loops of the producer that would hide one of `around` are renamed too.
Block as_scalar(const Producer& producer, const std::vector<Expr>& index, const std::string& name,
                const std::set<std::string>& around, Names& names);

// Loads of `tensor` become the scalar of the same name; refuses a load whose index is not `index`.
Block read_scalar(const Block& body, const std::string& tensor, const std::vector<Expr>& index, Span at);

// The distinct index lists of the loads of a tensor in a body.
std::vector<std::vector<Expr>> indices_of(const Block& body, const std::string& tensor);

bool is_temporary(const Plan& plan, const std::string& name);
// The plan without the kernel of this name, and without the temporary that it wrote.
Plan without_kernel(const Plan& plan, const std::string& name);
// The names of the kernels that read a tensor.
std::vector<std::string> readers_of(const Plan& plan, const std::string& tensor);

}  // namespace tilewright
