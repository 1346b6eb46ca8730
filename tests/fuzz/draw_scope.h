// What a drawn program has so far: its dims, tensors and the indices in scope.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/program.h"
#include "tests/fuzz/random.h"

namespace tilewright::fuzz {

struct DrawnTensor {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::string> shape;
};

struct DrawnIndex {
  std::string name;
  std::string extent;  // how far it goes from 0, as text; empty where it starts elsewhere
};

// Tensors are asked for by dtype and shape: one that is there is taken, else an input is declared.
class Scope {
 public:
  explicit Scope(Random& random);

  std::string dim() { return random_.pick(dims_); }
  // An extent that an input can have; constants only where `may_be_constant`.
  std::string extent(bool may_be_constant = true);
  std::string fresh_index();
  std::string fresh_tensor(bool is_let);

  const DrawnTensor& tensor(Dtype dtype, const std::vector<std::string>& shape, bool may_be_new = true);
  std::string scalar(Dtype dtype);
  std::string fresh_input(Dtype dtype, const std::vector<std::string>& shape);
  void declare(const DrawnTensor& tensor) { readable_.push_back(tensor); }
  const std::vector<DrawnTensor>& readable() const { return readable_; }

  std::vector<DrawnIndex> indices;
  int reductions = 0;       // around here
  bool may_skip = false;    // a reduction or an update is around
  std::string own_target;   // not to be read
  std::vector<std::string> helpers;  // scalar fns of f32 that are there to be called

  Random& random() { return random_; }
  std::vector<Parameter> inputs;
  std::vector<Parameter> outputs;

 private:
  Random& random_;
  std::vector<std::string> dims_;
  std::vector<DrawnTensor> readable_;
  int next_index_ = 0, next_let_ = 0, next_output_ = 0, next_input_ = 0, next_scalar_ = 0;
};

// ---- Terms (draw_value.cpp). The dtype is what the term has in the language.
Term draw_value(Scope& scope, Dtype dtype, int depth);
// A value that stands beside one of `dtype`: the same, or narrower and held by it, or a number.
Term draw_operand(Scope& scope, Dtype dtype, int depth);
Term draw_condition(Scope& scope, int depth);
Term draw_access(Scope& scope, Dtype dtype);
Term draw_number(Scope& scope, Dtype dtype);
// A reduction whose value is of `dtype` (bool: any, all).
Term draw_reduction(Scope& scope, Dtype dtype, int depth);
// An index expression for a dimension of this extent, not only an index; `is_from_data` is set where it reads a tensor.
Term draw_index(Scope& scope, const std::string& extent, bool& is_from_data);

}  // namespace tilewright::fuzz
