// A person's `.cu` file made fit for NVRTC: host functions and host headers are left out, and named; kernels, device
// functions, constants, templates, types and macros stay, on their lines.
#pragma once

#include <string>
#include <vector>

#include "ir/dtype.h"

namespace tilewright {

struct HandParameter {
  std::string text;  // as written, `const float* a`
  bool is_pointer = false;
  Dtype dtype = Dtype::I32;   // of a scalar
  bool is_known_type = true;  // false for a template's own type: then the argument decides
};

struct HandKernel {
  std::string name;  // with its namespaces, `book::tiled`
  bool is_template = false;
  bool is_extern_c = false;
  std::vector<HandParameter> parameters;
  int line = 0;
};

// `// launch tiled<16><<<…>>>(A, B, C, M, N, K)`, also `// zero C`, `// let …`, `// constant …` in front of it. For the
// reader of hand items, template arguments are taken out of the name: `tiled<16>` is `instance`.
struct HandComment {
  std::string step;      // "launch tiled<<<(…), (16, 16)>>>(A, B, C, M, N, K)"
  std::string kernel;    // "tiled"; empty where the step is no launch
  std::string instance;  // "tiled<16>"; equals kernel without template arguments
  int line = 0;
};

struct HandSource {
  std::string text;                   // for NVRTC; the lines have the numbers of the file
  std::vector<std::string> left_out;  // "function `main`, line 54", "#include <stdio.h>, line 6"
  std::vector<HandKernel> kernels;
  std::vector<HandComment> comments;
};

// Never fails: what is not understood stays, and NVRTC says what it thinks of it. `file_name` is for its messages.
HandSource read_hand_source(const std::string& text, const std::string& file_name);

}  // namespace tilewright
