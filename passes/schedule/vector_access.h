// Which accesses a vector of neighbouring elements can take in one instruction, and what a call must satisfy for it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "passes/affine.h"
#include "passes/finish/flatten.h"
#include "passes/loops.h"

namespace tilewright {

class VectorAccess {
 public:
  VectorAccess(const Plan& plan, std::vector<Buffer> buffers, std::int64_t width);

  bool is_buffer(const std::string& name) const { return flattener_.find(name) != nullptr; }

  // Whether `width` elements along the loop lie side by side and start at a multiple of it, if the facts of need_facts
  // hold.
  bool is_contiguous(const Access& access, const std::string& loop) const;

  // Notes what an access needs of a call beyond the plan's facts.
  void need_facts(const Access& access, Dtype dtype);
  // Refuses with the clauses to add, where any is missing.
  void refuse_missing_facts(Span at) const;

 private:
  const Plan& plan_;
  Flattener flattener_;
  Divisors divisors_;
  std::int64_t width_;
  std::vector<std::string> missing_;
  std::vector<std::string> reasons_;
};

}  // namespace tilewright
