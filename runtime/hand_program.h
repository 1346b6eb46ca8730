// What a `hand` item says: a file of kernels and the steps that launch them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

// One launch. Arguments are names of tensors, scalars, temporaries (a Var or a Load without indices), expressions of
// dims and integer scalars, or constants. `error_word` stands for the error word of a dumped kernel.
struct HandLaunch {
  std::string kernel;  // "tiled", or an instance of a template, "tiled<16>"
  std::vector<Expr> grid;
  std::vector<Expr> block;
  Expr shared_bytes;  // dynamic; empty for none
  std::vector<Expr> arguments;
  Span span;
};
struct HandZero {  // all bytes of a tensor to 0
  std::string tensor;
};
struct HandConstant {  // copies a tensor into a __constant__ array
  std::string symbol;
  std::string tensor;
};
using HandStep = std::variant<HandLaunch, HandZero, HandConstant>;

struct HandProgram {
  std::string name;       // as tables show it
  std::string file_name;  // the `.cu`, for messages and local includes
  std::string text;
  std::vector<Temp> temps;
  std::vector<HandStep> steps;
  std::vector<Fact> when;  // what it needs of a call
};

}  // namespace tilewright
