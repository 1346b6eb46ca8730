// Rungs: the plans that a fn passes through, one a schedule line, and their finished forms.
#pragma once

#include <string>
#include <vector>

#include "passes/pass.h"

namespace tilewright {

// What a compiled kernel's class depends on besides the schedule's `when`.
struct CallClass {
  bool long_sums = false;  // a serial f32 reduction may exceed 65,536 terms
  int index_bits = 32;     // 64 where a tensor has 2^31 elements or more
  friend bool operator==(const CallClass&, const CallClass&) = default;
};

// The plan as a line left it. `line` is empty for the lowered plan, which is rung 0.
struct Rung {
  std::string line;
  NumericClass numeric = NumericClass::Exact;
  Plan plan;
};

// Rung 0 and one rung a line. Throws UserError with the line that a pass refused.
std::vector<Rung> build_rungs(const TensorFn& fn, const std::string& schedule_name, const std::string& arch, const std::vector<Fact>& when,
                              const std::vector<ScheduleLine>& lines, const Target& target, const CallClass& call_class);

// The thread stage of a plan: finished, unless it stands there already.
Plan thread_stage(const Plan& plan, const Target& target);

// A name for files: `03-stage`.
std::string rung_file_name(const std::vector<Rung>& rungs, std::size_t n);

// 64 where indices that tensors give may need more than 32 bits: of a wider dtype, or with arithmetic on 32-bit ones.
int index_bits_of(const TensorFn& fn);
// The class of a call with these dims.
CallClass class_of(const TensorFn& fn, const std::vector<std::pair<std::string, std::int64_t>>& dims);

}  // namespace tilewright
