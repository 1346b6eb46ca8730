// Calls of the thread stage as CUDA C: the functions of ir/operators.h and instructions with a result.
#include <fmt/format.h>

#include "codegen/cuda_printer.h"
#include "codegen/cuda_types.h"
#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "ir/operators.h"

namespace tilewright {

CudaText CudaPrinter::call_text(const Expr& e, const Call& node) {
  if (find_instruction(node.function)) return {instruction_call(e, node)};
  if (!find_function(node.function)) {
    internal_error(fmt::format("print_cuda: `{}` is neither a function nor an instruction", node.function));
  }
  const Dtype dtype = node.arguments.at(0)->dtype;
  if (!is_float(dtype)) return integer_function(e, node);
  if (!is_narrow_float(dtype)) return float_function(e, node);
  // Narrow floats compute in f32 and round once.
  std::vector<Expr> wide;
  for (const Expr& narrow : node.arguments) wide.push_back(cast(Dtype::F32, narrow));
  const bool is_predicate = e->dtype == Dtype::Bool;
  const CudaText result =
      float_function(call(node.function, wide, is_predicate ? Dtype::Bool : Dtype::F32), Call{node.function, wide});
  return is_predicate ? result : CudaText{convert(result.text, Dtype::F32, e->dtype)};
}

CudaText CudaPrinter::float_function(const Expr& e, const Call& node) {
  const Dtype dtype = node.arguments.at(0)->dtype;
  if (node.function == "isnan" || node.function == "isinf") {
    const std::string test = prelude_.use(node.function == "isnan" ? "is_nan" : "is_inf", type(dtype));
    return {fmt::format("{}({})", test, text(node.arguments.at(0)))};
  }
  const FunctionInfo& function = *find_function(node.function);
  const std::string_view spelling = dtype == Dtype::F64 ? function.cuda_f64 : function.cuda_f32;
  if (spelling.empty())
    throw UserError(e->span, fmt::format("CUDA C has no `{}` of {}", node.function, info(dtype).name));
  std::string arguments;
  for (const Expr& argument : node.arguments) arguments += (arguments.empty() ? "" : ", ") + text(argument);
  return {fmt::format("{}({})", spelling, arguments)};
}

CudaText CudaPrinter::integer_function(const Expr& e, const Call& node) {
  const std::string& name = node.function;
  const Expr& x = node.arguments.at(0);
  const Dtype dtype = x->dtype;
  // Narrow integers compute as int: the results fit, or are cut back by the cast.
  const Dtype wide = bytes_of(dtype) >= 4 ? dtype : is_unsigned(dtype) ? Dtype::U32 : Dtype::I32;
  const auto of_one_type = [&](const std::string& function) -> CudaText {
    std::string arguments;
    for (const Expr& argument : node.arguments) arguments += (arguments.empty() ? "" : ", ") + typed(argument, wide);
    const std::string result = fmt::format("{}({})", prelude_.use(function, type(wide)), arguments);
    return wide == dtype ? CudaText{result} : CudaText{fmt::format("({}){}", type(dtype), result), Binding::Unary};
  };
  if (name == "fma" || name == "fma.kept") {
    return expr(binary(BinaryOp::Add, binary(BinaryOp::Mul, x, node.arguments.at(1)), node.arguments.at(2)));
  }
  if (name == "abs") return is_unsigned(dtype) ? expr(x) : of_one_type("absolute");
  if (name == "ceildiv") return of_one_type(is_unsigned(dtype) ? "unsigned_ceildiv" : "ceildiv");
  if (name == "isnan" || name == "isinf") return {"false"};
  if (name == "within") {
    const std::string function = prelude_.use("within", type(Dtype::Index));
    return {fmt::format("{}({}, {}, {}, error_word)", function, typed(x, Dtype::Index),
                        typed(node.arguments.at(1), Dtype::Index), text(node.arguments.at(2)))};
  }
  throw UserError(e->span, fmt::format("CUDA C has no `{}` of {}", name, info(dtype).name));
}

}  // namespace tilewright
