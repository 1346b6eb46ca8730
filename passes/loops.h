// Loops by the names that schedule lines use, and the kernels that a line acts on.
//
// `tile block i 16` makes `i.block`; a bare `i` is the innermost loop of `i`. Parts that `coarsen` makes, `i.coarse`
// and `i.by`, never become the bare `i`. Sibling loops may share a name: a line acts on all of them.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/plan.h"
#include "ir/schedule.h"
#include "passes/line_reader.h"

namespace tilewright {

// `i` of `i.block`.
std::string bare_name(const std::string& loop);
// Whether a name is a part made by `coarsen`.
bool is_part(std::string_view loop);

// Every loop's name once, outermost first.
std::vector<std::string> loop_names(const Block& body);
bool has_loop(const Block& body, std::string_view name);
// The innermost loop's kind and axis of this name; nothing where there is none.
struct FoundLoop {
  LoopKind kind;
  Axis axis;
};
std::optional<FoundLoop> find_loop(const Block& body, std::string_view name);
std::string_view name_of(LoopKind kind);

// A copy of the plan with f on each kernel that has all `loops`, or on the line's target only. Throws UserError where
// no kernel has them, with the loops that exist.
Plan map_kernels_with(const Plan& plan, const ScheduleLine& line, const std::vector<LineName>& loops,
                      const std::function<Kernel(const Kernel&)>& f);
// The kernel that a tensor's name stands for; refuses an unknown one.
const Kernel& kernel_named(const Plan& plan, const LineName& name);

// Replaces the body of the innermost of the loops over blocks (grid, cluster, ordered): what one block runs.
Block map_block_body(const Block& kernel_body, const std::function<Block(const Block&)>& f);
// What one block runs.
const Block& block_body(const Block& kernel_body);

// Names for what a pass makes: `As`, or `As.2` where the program or another pass has taken it.
class Names {
 public:
  explicit Names(const Plan& plan);
  std::string fresh(const std::string& base);
  void take(const std::string& name) { taken_.insert(name); }
  bool is_taken(const std::string& name) const { return taken_.count(name) > 0; }

 private:
  std::set<std::string> taken_;
};

// The number of iterations where the bounds are constants and there is no step.
std::optional<std::int64_t> constant_extent(const Axis& axis);
// The same, refused with the loop's extent where it is not constant.
Expr extent_of(const Axis& axis);
Axis counted(std::string name, std::int64_t extent, Span span);  // `name in extent`

// Index arithmetic with neighbouring constants joined: (x*8)*16 is x*128, (y - 1) + 1 is y.
Expr tidy(const Expr& expr);
// Replaces variables in a body and tidies what changed.
Block replace(const Block& body, const std::vector<std::pair<std::string, Expr>>& replacements);
Expr replace(const Expr& expr, const std::vector<std::pair<std::string, Expr>>& replacements);

// The names of all variables in an expression.
std::set<std::string> variables_of(const Expr& expr);
bool reads_memory(const Expr& expr, const std::set<std::string>& registers);

// Whether any expression of a statement (and of what is nested) names the variable or reads the buffer.
bool mentions_var(const Block& body, std::string_view name);
bool mentions_buffer(const Block& body, std::string_view name);

// Scalars, arrays and lets of `body` whose value differs between the values of `vars`, by data or by control. Register
// buffers only: what is in memory counts as differing where an index does.
std::set<std::string> varying_names(const Block& body, const std::set<std::string>& vars);
// Whether an expression differs, given those.
bool is_varying(const Expr& expr, const std::set<std::string>& vars, const std::set<std::string>& names);

std::string in_words(const std::vector<std::string>& names);  // "`i`, `j` and `k`"

}  // namespace tilewright
