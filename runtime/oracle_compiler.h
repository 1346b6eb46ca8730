// How the oracle's statements become flat programs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/tensor.h"
#include "runtime/memory.h"
#include "runtime/oracle.h"

namespace tilewright {

struct OracleStatement;

// A tensor while the oracle works: inputs in the caller's memory, what is computed as f64 or i64 with errors.
struct OracleMemory : Memory {
  std::vector<Scalar> values;
  std::vector<double> error_values;
  std::vector<double> magnitudes;  // of a float target of `+=`: Σ|terms| and their number, an element
  std::vector<double> depths;
  Dtype declared = Dtype::F32;
  bool is_started = false;                   // a statement has written it
  const OracleStatement* on_demand = nullptr;  // elements are computed when they are asked for
};

using OracleSite = Site<OracleMemory>;

// `=`: the program gives one element, from the axes' slots to `result`. An update: the program runs the whole nest.
struct OracleStatement {
  const TensorStmt* source = nullptr;
  OracleMemory* target = nullptr;
  SlotProgram program;
  std::vector<Slot> axis_slots;  // by axis of the target
  Slot result = 0;
  std::size_t number = 0;        // among all statements
};

struct OracleMachine : Machine {
  struct Frame {
    std::vector<Scalar> slots;
    std::vector<double> errors;
  };
  struct Known {
    Scalar value;
    double error = 0;
  };
  std::vector<Frame> frames;  // one a statement, made when needed
  std::unordered_map<const OracleMemory*, std::unordered_map<std::int64_t, Known>> known;
  std::optional<ErrorHit> error;
  bool follows_errors = false;
  bool is_worst_case = false;
};

// Computes one element of a `=`.
OracleMachine::Known evaluate_element(const OracleStatement& statement, OracleMachine& machine, std::int64_t element);

class OracleCompiler : public SlotCompiler {
 public:
  OracleCompiler(const std::map<std::string, OracleMemory*>& memories, const std::map<std::string, std::int64_t>& dims,
                 std::vector<std::unique_ptr<OracleSite>>& sites, const OracleOptions& options)
      : SlotCompiler(options.mode, options.follows_errors && options.mode != FloatMode::Typed), memories_(memories), dims_(dims), sites_(sites) {}

  OracleStatement compile_definition(const TensorStmt& stmt);
  OracleStatement compile_update(const TensorStmt& stmt);

 private:
  Slot variable(const std::string& name, const Expr& expr) override;
  Slot load(const Load& load, const Expr& expr) override;
  Slot reduce(const Reduce& reduce, const Expr& expr) override;
  Slot index_of_extreme(const Reduce& reduce);
  Slot special_call(const Call& call, const Expr& expr) override;

  OracleSite* make_site(const Access& access);
  // Loops over the axes from `position` on, around `body`.
  void emit_axes(const std::vector<Axis>& axes, std::size_t position, const std::function<void()>& body);
  // The value as it is stored: rounded to the declared dtype.
  Slot rounded(Slot value, Dtype declared);

  const std::map<std::string, OracleMemory*>& memories_;
  const std::map<std::string, std::int64_t>& dims_;
  std::vector<std::unique_ptr<OracleSite>>& sites_;
  std::map<std::string, Slot> loop_slots_;
};

}  // namespace tilewright
