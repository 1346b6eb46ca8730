// Hand kernels of a program, or of a reader's own file, as runtime/hand.h compiles them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/program.h"
#include "runtime/hand.h"
#include "runtime/library/session.h"

namespace tilewright {

// The hand items of the fn whose `when` holds for these dims; their files lie relative to `folder`.
std::vector<HandProgram> hand_programs(const Program& program, const TensorFn& fn, const std::string& folder, const DimMap& dims);

// A reader's own file: its steps are the comments `// launch k<<<…>>>(…)` in it. Throws UserError where it has none.
HandProgram hand_from_file(const std::string& path, const TensorFn& fn);

// What the three instruments (runtime/instruments.h) say of a hand kernel that runs without a GPU, on the PTX machine.
struct HandVerdict {
  bool is_right = true;
  double worst_ratio = 0;  // largest error / bound
  std::string text;        // one line where it is right; else its faults, and what is wrong in the first data that shows it
  std::string printed;     // by printf in the kernels
};
// `plan`: any plan of the fn. Throws ptx::Unsupported where the machine lacks an instruction.
HandVerdict check_hand(const HandPtx& hand, const TensorFn& fn, const Plan& plan, const DimMap& dims, std::uint64_t seed, bool is_worst_case = false);

// A fn that is one plain product of two matrices, C[i, j] = sum[k] A[i, k] * B[k, j]: what a BLAS call computes.
struct PlainProduct {
  Dtype dtype;
  std::string a, b, c;
  Expr m, n, k;
};
std::optional<PlainProduct> plain_product(const TensorFn& fn);

}  // namespace tilewright
