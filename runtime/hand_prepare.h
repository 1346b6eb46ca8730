// The steps of a hand program for one call, with every size, grid and scalar worked out: what the GPU and the PTX machine
// share. Only the addresses of tensors are open.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "runtime/hand_program.h"
#include "runtime/hand_source.h"
#include "runtime/tensor.h"

namespace tilewright {

constexpr std::size_t error_word_bytes = 3 * sizeof(std::int64_t);

struct PreparedArgument {
  std::string tensor;                  // a parameter, a temporary or `error_word`; empty for a value
  std::array<std::byte, 8> value{};    // as the kernel declares it
};
struct PreparedLaunch {
  std::string kernel;                  // as the step names it
  std::string entry;                   // as the code does
  std::array<unsigned, 3> grid{1, 1, 1};
  std::array<unsigned, 3> block{1, 1, 1};
  std::int64_t shared_bytes = 0;       // dynamic
  bool is_empty = false;               // a grid of no blocks
  std::vector<PreparedArgument> arguments;
  Span span;
};
struct PreparedZero {
  std::string tensor;
};
struct PreparedConstant {
  std::string symbol;                  // as the code names it
  std::string written_symbol;          // as the step does
  std::string tensor;
  std::size_t bytes = 0;
};
struct PreparedTemp {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;
  std::size_t bytes = 0;
};

struct PreparedHand {
  std::vector<PreparedTemp> temps;
  std::vector<std::variant<PreparedLaunch, PreparedZero, PreparedConstant>> steps;
};

// `entries`: name expression -> name in the code. `plan` says which parameters there are (any plan of the fn). Throws
// UserError where a step does not fit its kernel, its tensors or what a GPU takes.
PreparedHand prepare_hand(const HandProgram& program, const HandSource& source, const std::map<std::string, std::string>& entries, const Plan& plan, const Arguments& arguments);

}  // namespace tilewright
