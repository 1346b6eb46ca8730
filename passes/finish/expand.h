// The parts of `expand`, shared by its files.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "passes/finish/deal.h"
#include "passes/finish/flatten.h"
#include "passes/finish/passes.h"

namespace tilewright {

// What every part of the expansion of one kernel needs to know.
struct ExpandContext {
  const Plan& plan;
  BlockShape block;
  std::vector<Buffer> buffers;
  Flattener flattener;
  Divisors divisors;
  Ranges ranges;  // of dims, threads and loops on the way down
  std::set<std::string> taken;

  ExpandContext(const Plan& source, const Kernel& kernel, BlockShape shape);
  std::string fresh(const std::string& base);  // `base`, or `base.2`, … where that is taken
  bool is_register(const std::string& name) const;
  // Bytes that the first element of a tensor or buffer is aligned to.
  std::int64_t alignment_of(const std::string& name) const;
};

// `op operands` and `if condition { body }`.
inline Stmt instruction(std::string op, std::vector<Expr> operands, Span span) {
  return make_stmt(Instr{std::move(op), std::move(operands)}, span);
}
inline Stmt when(const Expr& condition, Block body, Span span) { return make_stmt(If{condition, std::move(body), {}}, span); }

// Whether a serial loop over one axis counts from 0 by 1.
bool counts_up(const Loop& loop);

// A thread's own program with its vector loops made into vector instructions. The body is flat already.
Block expand_vectors(const Block& body, ExpandContext& context);

// A generic copy, in two halves so that a pipe can put work between them: all loads into registers, all stores.
struct CopyParts {
  Block declarations;
  Block loads;
  Block stores;
};
CopyParts expand_copy(const Copy& copy, Span span, ExpandContext& context);
// The same in one piece: element for element where a thread has one, else loads before stores.
Block expand_whole_copy(const Copy& copy, Span span, ExpandContext& context);

// A copy from global to shared memory by cp.async, as wide as its deal; the caller closes the group.
Block expand_async_copy(const Copy& copy, Span span, ExpandContext& context);

// Widest vector, in elements, that one instruction moves: 16 bytes, and a divisor of `width`.
std::int64_t instruction_width(std::int64_t width, Dtype dtype);
Stmt vector_load(const Access& registers, const Access& memory, std::int64_t width, Dtype dtype, Span span);
Stmt vector_store(const Access& memory, const Access& registers, std::int64_t width, Dtype dtype, Span span);

}  // namespace tilewright
