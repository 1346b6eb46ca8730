// The frontend's face: a program text becomes fns in tensor IR, schedules, hand items and benches.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/schedule.h"
#include "ir/tensor.h"

namespace tilewright {

// `hand matmul "book" from "hand.cu" when … { steps }`. Expressions are of dims and integer scalars (both Vars).
struct HandItem {
  // One launch. An argument is a Var that names a tensor, temporary or scalar, an expression of dims, or a constant.
  // `kernel` may be an instance of a template, "tiled<16>".
  struct Launch {
    std::string kernel;
    std::vector<Expr> grid;  // x first, one to three
    std::vector<Expr> block;
    Expr shared_bytes;  // dynamic; empty for none
    std::vector<Expr> arguments;
    Span span;
  };
  struct Zero {  // all bytes of a tensor to 0
    std::string tensor;
    Span span;
  };
  struct Constant {  // copies a tensor into a __constant__ array
    std::string symbol;
    std::string tensor;
    Span span;
  };
  using Step = std::variant<Launch, Zero, Constant>;

  std::string fn;
  std::string label;
  std::string file;  // as written, relative to the program's own file
  std::vector<Fact> when;
  std::vector<Temp> temps;
  std::vector<Step> steps;
  Span span;
};

// `bench "matmul.f32.4096" = matmul(M = 4096, N = 4096, K = 4096)`
struct BenchItem {
  std::string name;
  std::string fn;
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // dims and integer scalars
  std::vector<std::pair<std::string, double>> reals;        // float scalars
  Span span;
};

struct Program {
  std::vector<SourceFile> files;    // file 0 is the program
  std::vector<TensorFn> fns;        // in order of the text; scalar fns that others call are not among them
  std::vector<Schedule> schedules;  // in order; `from` resolved, parameters at their defaults
  std::vector<HandItem> hands;
  std::vector<BenchItem> benches;
  std::vector<Schedule> generic_schedules;  // as `schedules`, with the parameters not replaced
};

// Throws UserError with all faults, their places in file 0.
Program parse_program(std::string text, std::string file_name);

// The schedule with some parameters at other values; names that are none of its parameters are left alone.
Schedule instantiate(const Program& program, const Schedule& schedule,
                     const std::map<std::string, std::int64_t>& values);

// Lines of a schedule without a program, as `--then` and the compiler's own lists have them. Throws UserError.
std::vector<ScheduleLine> parse_schedule_lines(const std::string& text, int file = 0);

// The steps of a hand item from comments of a person's file, such as `launch k<<<(gx, gy), (bx, by)>>>(A, N)`, and
// `let`, `zero`, `constant`; one a line or between `;`. The item has no label and no file. Throws UserError.
HandItem parse_hand_steps(const std::string& text, const TensorFn& fn, int file = 0);

}  // namespace tilewright
