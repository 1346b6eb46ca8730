// Text of tensor IR: the language's own words, with every range, conversion and condition written out.
#include <fmt/format.h>

#include "ir/operators.h"
#include "ir/printer.h"
#include "ir/tensor.h"

namespace tilewright {

namespace {

std::string print_param(const Param& param) {
  return fmt::format("{}{}: {}", param.kind == ParamKind::InOut ? "inout " : "", param.name, print_type(param.dtype, param.shape));
}

std::string print_params(const std::vector<Param>& params, bool are_results) {
  std::string text;
  for (const Param& param : params)
    if ((param.kind == ParamKind::Out) == are_results) text += (text.empty() ? "" : ", ") + print_param(param);
  return "(" + text + ")";
}

}  // namespace

// `C[i, j] += A[i, k] * B[k, j] where i < k for i in M, j in N, k in K`
std::string print(const TensorStmt& stmt) {
  std::string op = "=";
  if (stmt.combine) op.insert(0, info(*stmt.combine).spelling);
  std::string text = fmt::format("{} {} {}{}", print_access(Access{stmt.target, stmt.index, stmt.rule, {}}), op,
                                 print_expr(stmt.value, stmt.value->dtype), print_where(stmt.where));
  for (std::size_t n = 0; n < stmt.axes.size(); ++n) text += (n ? ", " : " for ") + print_axis(stmt.axes[n]);
  return text;
}

std::string print(const TensorFn& fn) {
  std::string text = fmt::format("fn {}{} -> {} {{\n", fn.name, print_params(fn.params, false), print_params(fn.params, true));
  for (const Temp& let : fn.lets) text += fmt::format("  let {}: {}\n", let.name, print_type(let.dtype, let.shape));
  for (const TensorStmt& stmt : fn.statements) text += "  " + print(stmt) + "\n";
  for (const ErrorSite& site : fn.errors) text += fmt::format("  // access {}: {}\n", site.id, print_expr(site.access));
  return text + "}\n";
}

}  // namespace tilewright
