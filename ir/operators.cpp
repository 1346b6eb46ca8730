// The tables of operators and functions.
#include "ir/operators.h"

#include <array>

#include "ir/scalar.h"

namespace tilewright {

namespace {

// In the order of BinaryOp: spelling, precedence, commutative, infix, comparison, logical.
constexpr std::array<BinaryInfo, 20> binary_table = {{
    {"+", 8, true, true, false, false},
    {"-", 8, false, true, false, false},
    {"*", 9, true, true, false, false},
    {"/", 9, false, true, false, false},
    {"%", 9, false, true, false, false},
    {"min", 0, true, false, false, false},
    {"max", 0, true, false, false, false},
    {"and", 2, true, true, false, true},
    {"or", 1, true, true, false, true},
    {"==", 3, true, true, true, false},
    {"!=", 3, true, true, true, false},
    {"<", 3, false, true, true, false},
    {"<=", 3, false, true, true, false},
    {">", 3, false, true, true, false},
    {">=", 3, false, true, true, false},
    {"&", 6, true, true, false, false},
    {"|", 4, true, true, false, false},
    {"^", 5, true, true, false, false},
    {"<<", 7, false, true, false, false},
    {">>", 7, false, true, false, false},
}};

// In the order of CombineOp.
constexpr std::array<CombineInfo, 6> combine_table = {{
    {"+", BinaryOp::Add},
    {"*", BinaryOp::Mul},
    {"max", BinaryOp::Max},
    {"min", BinaryOp::Min},
    {"&", BinaryOp::BitAnd},
    {"|", BinaryOp::BitOr},
}};

constexpr FunctionGroup exact = FunctionGroup::Exact;
constexpr FunctionGroup library = FunctionGroup::Library;
constexpr FunctionGroup fast = FunctionGroup::Fast;
constexpr FunctionGroup structural = FunctionGroup::Structural;

// Name, arity, group, takes float, takes integer; CUDA C and libdevice spellings of f32 and f64; a fixed result.
constexpr std::array<FunctionInfo, 54> function_table = {{
    {"fma", 3, exact, true, false, "fmaf", "fma", "", ""},
    {"fma.kept", 3, exact, true, false, "fmaf", "fma", "", ""},
    {"sqrt", 1, exact, true, false, "sqrtf", "sqrt", "", ""},
    {"abs", 1, exact, true, true, "fabsf", "fabs", "", ""},
    {"floor", 1, exact, true, false, "floorf", "floor", "", ""},
    {"ceil", 1, exact, true, false, "ceilf", "ceil", "", ""},
    {"round", 1, exact, true, false, "rintf", "rint", "__nv_rintf", "__nv_rint"},
    {"trunc", 1, exact, true, false, "truncf", "trunc", "", ""},
    {"isnan", 1, exact, true, false, "", "", "", "", Dtype::Bool},
    {"isinf", 1, exact, true, false, "", "", "", "", Dtype::Bool},
    {"ceildiv", 2, exact, false, true, "", "", "", ""},

    {"exp", 1, library, true, false, "expf", "exp", "__nv_expf", "__nv_exp"},
    {"exp2", 1, library, true, false, "exp2f", "exp2", "__nv_exp2f", "__nv_exp2"},
    {"expm1", 1, library, true, false, "expm1f", "expm1", "__nv_expm1f", "__nv_expm1"},
    {"log", 1, library, true, false, "logf", "log", "__nv_logf", "__nv_log"},
    {"log2", 1, library, true, false, "log2f", "log2", "__nv_log2f", "__nv_log2"},
    {"log10", 1, library, true, false, "log10f", "log10", "__nv_log10f", "__nv_log10"},
    {"log1p", 1, library, true, false, "log1pf", "log1p", "__nv_log1pf", "__nv_log1p"},
    {"rsqrt", 1, library, true, false, "rsqrtf", "rsqrt", "__nv_rsqrtf", "__nv_rsqrt"},
    {"cbrt", 1, library, true, false, "cbrtf", "cbrt", "__nv_cbrtf", "__nv_cbrt"},
    {"sin", 1, library, true, false, "sinf", "sin", "__nv_sinf", "__nv_sin"},
    {"cos", 1, library, true, false, "cosf", "cos", "__nv_cosf", "__nv_cos"},
    {"tan", 1, library, true, false, "tanf", "tan", "__nv_tanf", "__nv_tan"},
    {"sinh", 1, library, true, false, "sinhf", "sinh", "__nv_sinhf", "__nv_sinh"},
    {"cosh", 1, library, true, false, "coshf", "cosh", "__nv_coshf", "__nv_cosh"},
    {"tanh", 1, library, true, false, "tanhf", "tanh", "__nv_tanhf", "__nv_tanh"},
    {"asin", 1, library, true, false, "asinf", "asin", "__nv_asinf", "__nv_asin"},
    {"acos", 1, library, true, false, "acosf", "acos", "__nv_acosf", "__nv_acos"},
    {"atan", 1, library, true, false, "atanf", "atan", "__nv_atanf", "__nv_atan"},
    {"atan2", 2, library, true, false, "atan2f", "atan2", "__nv_atan2f", "__nv_atan2"},
    {"asinh", 1, library, true, false, "asinhf", "asinh", "__nv_asinhf", "__nv_asinh"},
    {"acosh", 1, library, true, false, "acoshf", "acosh", "__nv_acoshf", "__nv_acosh"},
    {"atanh", 1, library, true, false, "atanhf", "atanh", "__nv_atanhf", "__nv_atanh"},
    {"erf", 1, library, true, false, "erff", "erf", "__nv_erff", "__nv_erf"},
    {"erfc", 1, library, true, false, "erfcf", "erfc", "__nv_erfcf", "__nv_erfc"},
    {"pow", 2, library, true, false, "powf", "pow", "__nv_powf", "__nv_pow"},

    {"exp.fast", 1, fast, true, false, "__expf", "", "__nv_fast_expf", ""},
    {"log.fast", 1, fast, true, false, "__logf", "", "__nv_fast_logf", ""},
    {"log2.fast", 1, fast, true, false, "__log2f", "", "__nv_fast_log2f", ""},
    {"log10.fast", 1, fast, true, false, "__log10f", "", "__nv_fast_log10f", ""},
    {"sin.fast", 1, fast, true, false, "__sinf", "", "__nv_fast_sinf", ""},
    {"cos.fast", 1, fast, true, false, "__cosf", "", "__nv_fast_cosf", ""},
    {"tan.fast", 1, fast, true, false, "__tanf", "", "__nv_fast_tanf", ""},
    {"tanh.fast", 1, fast, true, false, "__tanhf", "", "__nv_fast_tanhf", ""},
    {"pow.fast", 2, fast, true, false, "__powf", "", "__nv_fast_powf", ""},
    {"div.fast", 2, fast, true, false, "__fdividef", "", "__nv_fast_fdividef", ""},

    {"within", 3, structural, false, true, "", "", "", "", Dtype::Index},
    {"resident", 1, structural, false, true, "", "", "", "", Dtype::Index},
    {"rows", 2, structural, false, true, "", "", "", "", Dtype::I32},
    {"grouped", 3, structural, false, true, "", "", "", "", Dtype::I32},
    {"hilbert", 2, structural, false, true, "", "", "", "", Dtype::I32},
    {"rows.gpc", 4, structural, false, true, "", "", "", "", Dtype::I32},
    {"grouped.gpc", 5, structural, false, true, "", "", "", "", Dtype::I32},
    {"hilbert.gpc", 4, structural, false, true, "", "", "", "", Dtype::I32},
}};

}  // namespace

const BinaryInfo& info(BinaryOp op) { return binary_table[static_cast<std::size_t>(op)]; }

std::optional<BinaryOp> binary_by_spelling(std::string_view spelling) {
  for (std::size_t row = 0; row < binary_table.size(); ++row)
    if (binary_table[row].spelling == spelling) return static_cast<BinaryOp>(row);
  return std::nullopt;
}

const CombineInfo& info(CombineOp op) { return combine_table[static_cast<std::size_t>(op)]; }

Expr identity_of(CombineOp op, Dtype dtype) { return constant_of(identity_scalar(op, dtype), dtype); }

Expr combine(CombineOp op, const Expr& a, const Expr& b) { return binary(binary_of(op, a->dtype), a, b); }

const FunctionInfo* find_function(std::string_view name) {
  for (const FunctionInfo& row : function_table)
    if (row.name == name) return &row;
  return nullptr;
}

std::span<const FunctionInfo> all_functions() { return function_table; }

}  // namespace tilewright
