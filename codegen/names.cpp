// What both generators of the thread stage ask: names that C, PTX and LLVM accept, loops that stay as they are.
#include <algorithm>
#include <string_view>

#include "codegen/codegen.h"
#include "codegen/cuda_prelude.h"
#include "ir/instructions.h"

namespace tilewright {

namespace {

// Words that a kernel, a tensor or a loop may not be called in CUDA C: the language's own, the variables that CUDA
// declares, and the functions that NVRTC declares without any header (a kernel `y1` would redeclare a Bessel function).
constexpr std::string_view reserved =
    " "
    "abs acos acosf acosh acoshf alignas alignof all and and_eq any asin asinf asinh asinhf asm assert atan atan2 "
    "atan2f atanf atanh atanhf auto bitand bitor blockDim blockIdx bool break brev brevll case catch cbrt cbrtf "
    "ceil ceilf char char16_t char32_t char8_t class clock clock64 clz clzll co_await co_return co_yield compl "
    "concept const const_cast consteval constexpr constinit continue copysign copysignf cos cosf cosh coshf cospi "
    "cospif cyl_bessel_i0 cyl_bessel_i1 decltype default delete dim3 do double dynamic_cast else enum erf erfc "
    "erfcf erfcinv erfcx erff erfinv exp exp10 exp10f exp2 exp2f expf explicit expm1 expm1f export extern fabs "
    "fabsf false fdim fdimf fdivide fdividef ffs ffsll float floor floorf fma fmaf fmax fmaxf fmin fminf fmod "
    "fmodf for free frexp friend goto gridDim hypot hypotf if ilogb inline int isfinite isinf isnan j0 j0f j1 j1f "
    "jn jnf labs ldexp ldexpf lgamma lgammaf llabs llmax llmin llrint llround log log10 log10f log1p log1pf log2 "
    "log2f logb logf long lrint lround main malloc max memcpy memset min modf mul24 mulhi mutable namespace nan "
    "nanf nearbyint nearbyintf new nextafter noexcept norm norm3d norm4d normcdf normcdff not not_eq nullptr "
    "operator or or_eq popc popcll pow powf powi printf private protected public rcbrt register reinterpret_cast "
    "remainder remquo requires return rhypot rint rintf rnorm round roundf rsqrt rsqrtf saturate scalbln scalbn "
    "short signbit signed sin sincos sincosf sincospi sinf sinh sinhf sinpi sinpif size_t sizeof sqrt sqrtf "
    "static static_assert static_cast struct switch tan tanf tanh tanhf template tgamma tgammaf this threadIdx "
    "thread_local throw true trunc truncf try typedef typeid typename ullmax ullmin umax umin umul24 umulhi union "
    "unsigned using virtual void volatile warpSize wchar_t while xor xor_eq y0 y0f y1 y1f yn ynf "
    // What every kernel may have, the vectors of wide accesses, and functions that the printer makes.
    "atomic_add atomic_and atomic_max atomic_min atomic_mul atomic_or bf16x2 double2 error_word f16x2 fill float2 float4 int2 int4 shared uint2 uint4 ";

// Instructions are functions of their own, some with a number behind: `mbarrier_wait`, `bulk_wait_group_1`, `desc_128`.
bool is_instruction_name(const std::string& name) {
  return std::any_of(all_instructions().begin(), all_instructions().end(), [&](const InstrInfo& row) {
    std::string function(row.name);
    std::replace(function.begin(), function.end(), '.', '_');
    if (!name.starts_with(function)) return false;
    const std::string rest = name.substr(function.size());
    return rest.empty() || (rest[0] == '_' && rest.find_first_not_of("_0123456789") == std::string::npos);
  });
}

}  // namespace

bool is_pipelined(const Loop& loop) {
  bool found = false;
  walk(loop.body, [&](const Stmt& stmt) {
    const Instr* instr = as<Instr>(stmt);
    found = found || (instr && (instr->op == "mbarrier.wait" || instr->op.starts_with("wgmma.")));
    return !found;
  });
  return found;
}

std::string c_name(const std::string& ir_name) {
  std::string name = ir_name;
  std::replace(name.begin(), name.end(), '.', '_');
  if (reserved.find(' ' + name + ' ') != std::string_view::npos || is_prelude_function(name) || is_instruction_name(name)) name += '_';
  return name;
}

}  // namespace tilewright
