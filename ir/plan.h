// The plan: what a fn lowers to and what an `.ir` file holds.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/stmt.h"

namespace tilewright {

enum class ParamKind : std::uint8_t { In, Out, InOut };

// A tensor (or scalar: no shape) of the caller's. Shapes are expressions of the dims; contiguous, row-major.
struct Param {
  ParamKind kind;
  std::string name;
  Dtype dtype;
  std::vector<Expr> shape;
  Span span;
  friend bool operator==(const Param&, const Param&) = default;
};

// `dim N` is bound by the caller's shapes; `dim workers = resident(C)` by the runtime; others by their value.
struct Dim {
  std::string name;
  Expr value;  // empty: from the call
  friend bool operator==(const Dim&, const Dim&) = default;
};

// An intermediate tensor in global memory, alive during the call.
struct Temp {
  std::string name;
  Dtype dtype;
  std::vector<Expr> shape;
  friend bool operator==(const Temp&, const Temp&) = default;
};

// What a call must satisfy for this plan: a condition on dims, `aligned 16` (innermost stride 1, base and all other
// strides multiples of that many bytes), or `contiguous`.
struct Fact {
  enum class Kind : std::uint8_t { Condition, Aligned, Contiguous };
  Kind kind = Kind::Condition;
  Expr condition;     // Condition
  int alignment = 0;  // Aligned, in bytes
  friend bool operator==(const Fact&, const Fact&) = default;
};

// An access that is checked in a kernel, by number.
struct ErrorSite {
  int id = 0;
  Expr access;  // a Load
  friend bool operator==(const ErrorSite&, const ErrorSite&) = default;
};

// Step: fills a tensor before the kernels behind it.
struct Clear {
  std::string tensor;
  Expr value;
  friend bool operator==(const Clear&, const Clear&) = default;
};

// Step: a table that the runtime computes, `table order: i32[n, 2] = hilbert(a, b)`.
struct Table {
  std::string name;
  Dtype dtype;
  std::vector<Expr> shape;
  Expr value;  // a Call
  friend bool operator==(const Table&, const Table&) = default;
};

enum class Stage : std::uint8_t { Tile, Thread };

struct TensorMap {  // `mA = tiled(A, 64, 128) xor 128`
  std::string name;
  std::string tensor;
  std::vector<std::int64_t> box;
  int xor_bytes = 0;
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

// The header that the thread stage prints; empty at tile stage. Grid, block and cluster are (x, y, z), x first.
struct LaunchHeader {
  std::string arch;         // "sm_90a" or empty: any
  std::vector<Expr> grid;   // one to three expressions of dims
  std::vector<std::int64_t> block;
  std::vector<std::int64_t> cluster;
  std::int64_t shared_bytes = 0;
  std::int64_t align = 0;
  int min_blocks = 0;
  std::vector<std::string> arguments;  // tensors, scalars and dims, in order
  std::vector<TensorMap> maps;
  friend bool operator==(const LaunchHeader&, const LaunchHeader&) = default;
};

// Step: one launch. `warps` 0: not set. `block_shape` (x, y, z) is the thread shape that `bind` chose, printed as
// `threads (16, 16)` behind the name; empty: warps*32 in x, or not decided.
struct Kernel {
  std::string name;
  Stage stage = Stage::Tile;
  int warps = 0;
  std::vector<std::int64_t> block_shape;
  LaunchHeader launch;
  Block body;
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

using Step = std::variant<Clear, Table, Kernel>;

struct Plan {
  std::string name;
  std::string schedule;  // empty: none
  std::string arch;      // empty: any
  std::vector<Dim> dims;
  std::vector<Param> params;
  std::vector<Fact> facts;
  int index_bits = 32;   // printed as `class index 64` where it is 64
  std::vector<Temp> temps;
  std::string error_name;  // empty: no checked access
  std::vector<ErrorSite> errors;
  std::vector<Step> steps;
  friend bool operator==(const Plan&, const Plan&) = default;
};

// The parameter of this name, or null.
const Param* find_param(const Plan& plan, const std::string& name);
// A scalar that goes in is passed by value; everything else by address.
inline bool is_by_value(const Param& param) { return param.kind == ParamKind::In && param.shape.empty(); }

// The tensor of this name (parameter, temporary or table): dtype and shape; nothing where there is none.
struct TensorInfo {
  Dtype dtype;
  std::vector<Expr> shape;
};
std::optional<TensorInfo> find_tensor(const Plan& plan, const std::string& name);

std::vector<const Kernel*> kernels_of(const Plan& plan);
// Whether the plan's kernels are code of threads; false where it has none.
bool is_thread_stage(const Plan& plan);
// A copy with each kernel replaced.
Plan map_kernels(const Plan& plan, const std::function<Kernel(const Kernel&)>& f);

// ---- Text (ir/printer.cpp, ir/parser*.cpp) and checks (ir/verifier.cpp).
std::string print(const Plan& plan);
std::string print(const Kernel& kernel);
std::string print(const Stmt& stmt);
std::string print(const Expr& expr);
// One printed line for each Stmt in order of printing, to join line tables: (line number from 1, span of the program).
struct PrintedLine {
  int line;
  Span span;
};
std::string print(const Plan& plan, std::vector<PrintedLine>& lines);
// Throws UserError with places in `text`. Accepts a plan of either stage. Looks at the grammar only: see read_plan.
Plan parse_plan(const std::string& text, int file = 0);
// What must hold at each stage; empty where all is well. Each text names the statement.
std::vector<std::string> verify(const Plan& plan);
// The same with the places of the statements.
std::vector<Diagnostic> verify_with_places(const Plan& plan);
// A user's text: parsed and verified, so that later steps may rely on it. Throws UserError.
Plan read_plan(const std::string& text, int file = 0);

// Evaluates an integer expression of dims (and other names in `names`). Throws UserError on an unknown name or a load.
std::int64_t evaluate_index(const Expr& expr, const std::vector<std::pair<std::string, std::int64_t>>& names);

}  // namespace tilewright
