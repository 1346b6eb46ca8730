// The table of device functions behind cuda_prelude.h. `$T` stands for the type, `$U` for the unsigned one of its size,
// `needs` for what a text calls. Signed arithmetic that may overflow is done in `$U`: C knows no result for it.
#include "codegen/cuda_prelude.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

struct Row {
  std::string_view name;
  std::string_view text;
};

// Every function's exact meaning is that of the operator in ir/expr.h.
constexpr auto rows = std::to_array<Row>({
    // What cuTensorMapEncodeTiled fills, as the copy engine reads it.
    {"TensorMap", R"(struct __align__(64) TensorMap {
  unsigned char bytes[128];
};)"},
    {"shared_address", R"(__device__ __forceinline__ unsigned int shared_address(const void* place) {
  return (unsigned int)__cvta_generic_to_shared(place);
})"},
    {"rank_in_cluster", R"(__device__ __forceinline__ int rank_in_cluster() {
  int r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
})"},
    {"floor_div", R"(__device__ __forceinline__ $T floor_div($T a, $T b) {
  if (b == 0 || b == -1) return b == 0 ? 0 : ($T)(0 - ($U)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
})"},
    {"floor_mod", R"(__device__ __forceinline__ $T floor_mod($T a, $T b) {
  if (b == 0 || b == -1) return b == 0 ? a : 0;
  const $T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
})"},
    {"ceildiv", R"(__device__ __forceinline__ $T ceildiv($T a, $T b) {
  if (b == 0 || b == -1) return b == 0 ? 0 : ($T)(0 - ($U)a);
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
})"},
    {"unsigned_div", R"(__device__ __forceinline__ $T unsigned_div($T a, $T b) { return b == 0 ? 0 : a / b; })"},
    {"unsigned_mod", R"(__device__ __forceinline__ $T unsigned_mod($T a, $T b) { return b == 0 ? a : a % b; })"},
    {"unsigned_ceildiv",
     R"(__device__ __forceinline__ $T unsigned_ceildiv($T a, $T b) { return b == 0 ? 0 : a / b + (a % b != 0); })"},
    // ptxas 13.0 makes one instruction of three operands of max(max(a, -b), c), and drops the minus; so with min, from
    // sm_90 on. It does not touch unsigned ones, and those of the same order give the same.
    {"max_i32", R"(__device__ __forceinline__ int max_i32(int a, int b) {
#if __CUDA_ARCH__ >= 900
  const unsigned int sign = 0x80000000u;
  return (int)(max((unsigned int)a ^ sign, (unsigned int)b ^ sign) ^ sign);
#else
  return max(a, b);
#endif
})"},
    {"min_i32", R"(__device__ __forceinline__ int min_i32(int a, int b) {
#if __CUDA_ARCH__ >= 900
  const unsigned int sign = 0x80000000u;
  return (int)(min((unsigned int)a ^ sign, (unsigned int)b ^ sign) ^ sign);
#else
  return min(a, b);
#endif
})"},
    {"absolute", R"(__device__ __forceinline__ $T absolute($T a) { return a < 0 ? ($T)(0 - ($U)a) : a; })"},
    {"is_nan", R"(__device__ __forceinline__ bool is_nan($T a) { return a != a; })"},
    {"is_inf", R"(__device__ __forceinline__ bool is_inf($T a) { return a - a != a - a && a == a; })"},
    // The remainder with the sign of the divisor.
    {"mod_f32", R"(__device__ __forceinline__ float mod_f32(float a, float b) {
  const float rest = fmodf(a, b);
  return rest != 0 && (__float_as_int(rest) < 0) != (__float_as_int(b) < 0) ? rest + b : rest;
})"},
    {"mod_f64", R"(__device__ __forceinline__ double mod_f64(double a, double b) {
  const double rest = fmod(a, b);
  return rest != 0 && (__double_as_longlong(rest) < 0) != (__double_as_longlong(b) < 0) ? rest + b : rest;
})"},
    // A NaN on either side gives NaN; +0 is above -0.
    {"max_f32", R"(__device__ __forceinline__ float max_f32(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a != a || b != b ? __int_as_float(0x7fffffff) : fmaxf(a, b);
#endif
})"},
    {"min_f32", R"(__device__ __forceinline__ float min_f32(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a != a || b != b ? __int_as_float(0x7fffffff) : fminf(a, b);
#endif
})"},
    {"max_f64", R"(__device__ __forceinline__ double max_f64(double a, double b) {
  return a != a || b != b ? __longlong_as_double(0x7ff8000000000000ll) : fmax(a, b);
})"},
    {"min_f64", R"(__device__ __forceinline__ double min_f64(double a, double b) {
  return a != a || b != b ? __longlong_as_double(0x7ff8000000000000ll) : fmin(a, b);
})"},
    // Narrow floats are held as their bits.
    {"f32_from_f16", R"(__device__ __forceinline__ float f32_from_f16(unsigned short bits) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
  return r;
})"},
    {"f16_from_f32", R"(__device__ __forceinline__ unsigned short f16_from_f32(float x) {
  unsigned short r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
})"},
    {"f32_from_bf16", R"(__device__ __forceinline__ float f32_from_bf16(unsigned short bits) {
  return __uint_as_float((unsigned int)bits << 16);
})"},
    {"bf16_from_f32", R"(__device__ __forceinline__ unsigned short bf16_from_f32(float x) {
#if __CUDA_ARCH__ >= 800
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
#else
  if (x != x) return 0x7fff;
  const unsigned int bits = __float_as_uint(x);
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
})"},
    // fp8 saturates: the largest finite value stands for everything above it, an infinity too. Below the smallest
    // normal value the steps are all of one size. (sm_89 has instructions for pairs; this is right on every
    // architecture.)
    {"f32_from_e4m3", R"(__device__ __forceinline__ float f32_from_e4m3(unsigned char bits) {
  const unsigned int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float r = exponent == 0 ? mantissa * 0.001953125f : __uint_as_float((exponent + 120) << 23 | mantissa << 20);
  if ((bits & 0x7f) == 0x7f) r = __int_as_float(0x7fffffff);
  return bits & 0x80 ? -r : r;
})"},
    {"e4m3_from_f32", R"(__device__ __forceinline__ unsigned char e4m3_from_f32(float x) {
  if (x != x) return 0x7f;
  const unsigned int sign = __float_as_uint(x) >> 24 & 0x80;
  const float size = fminf(fabsf(x), 448.0f);
  if (size < 0.015625f) return (unsigned char)(sign | (unsigned int)rintf(size * 512.0f));
  const unsigned int bits = __float_as_uint(size);
  return (unsigned char)(sign | (((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - (120 << 3)));
})"},
    {"f32_from_e5m2", R"(__device__ __forceinline__ float f32_from_e5m2(unsigned char bits) {
  return f32_from_f16((unsigned short)(bits << 8));
})"},
    {"e5m2_from_f32", R"(__device__ __forceinline__ unsigned char e5m2_from_f32(float x) {
  if (x != x) return 0x7f;
  const unsigned int sign = __float_as_uint(x) >> 24 & 0x80;
  const float size = fminf(fabsf(x), 57344.0f);
  if (size < 0.00006103515625f) return (unsigned char)(sign | (unsigned int)rintf(size * 65536.0f));
  const unsigned int bits = __float_as_uint(size);
  return (unsigned char)(sign | (((bits + 0xfffff + (bits >> 21 & 1)) >> 21) - (112 << 2)));
})"},
    // To odd: what was lost stays visible in the last bit, so that the next rounding, to a narrower type, is the only
    // one.
    {"f32_odd_from_f64", R"(__device__ __forceinline__ float f32_odd_from_f64(double x) {
  const float r = __double2float_rz(x);
  if (x != x || (double)r == x) return r;
  return __uint_as_float(__float_as_uint(r) | 1);
})"},
    {"f32_odd_from_i64", R"(__device__ __forceinline__ float f32_odd_from_i64(long long x) {
  const float r = __ll2float_rz(x);
  if ((long long)r == x) return r;
  return __uint_as_float(__float_as_uint(r) | 1);
})"},
    {"f32_odd_from_u64", R"(__device__ __forceinline__ float f32_odd_from_u64(unsigned long long x) {
  const float r = __ull2float_rz(x);
  if ((unsigned long long)r == x) return r;
  return __uint_as_float(__float_as_uint(r) | 1);
})"},
    // Float to integer truncates and saturates; NaN is 0.
    {"i32_from_f32", R"(__device__ __forceinline__ int i32_from_f32(float x) {
  int r;
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
})"},
    {"u32_from_f32", R"(__device__ __forceinline__ unsigned int u32_from_f32(float x) {
  unsigned int r;
  asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
})"},
    {"i64_from_f32", R"(__device__ __forceinline__ long long i64_from_f32(float x) {
  long long r;
  asm("cvt.rzi.s64.f32 %0, %1;" : "=l"(r) : "f"(x));
  return x != x ? 0 : r;
})"},
    {"u64_from_f32", R"(__device__ __forceinline__ unsigned long long u64_from_f32(float x) {
  unsigned long long r;
  asm("cvt.rzi.u64.f32 %0, %1;" : "=l"(r) : "f"(x));
  return x != x ? 0 : r;
})"},
    {"i32_from_f64", R"(__device__ __forceinline__ int i32_from_f64(double x) {
  int r;
  asm("cvt.rzi.s32.f64 %0, %1;" : "=r"(r) : "d"(x));
  return x != x ? 0 : r;
})"},
    {"u32_from_f64", R"(__device__ __forceinline__ unsigned int u32_from_f64(double x) {
  unsigned int r;
  asm("cvt.rzi.u32.f64 %0, %1;" : "=r"(r) : "d"(x));
  return x != x ? 0 : r;
})"},
    {"i64_from_f64", R"(__device__ __forceinline__ long long i64_from_f64(double x) {
  long long r;
  asm("cvt.rzi.s64.f64 %0, %1;" : "=l"(r) : "d"(x));
  return x != x ? 0 : r;
})"},
    {"u64_from_f64", R"(__device__ __forceinline__ unsigned long long u64_from_f64(double x) {
  unsigned long long r;
  asm("cvt.rzi.u64.f64 %0, %1;" : "=l"(r) : "d"(x));
  return x != x ? 0 : r;
})"},
    {"elect", R"(__device__ __forceinline__ bool elect() {
  unsigned int r;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(r));
  return r != 0;
})"},
    {"bf16x2", R"(__device__ __forceinline__ unsigned int bf16x2(float low, float high) {
  unsigned int r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
})"},
    {"f16x2", R"(__device__ __forceinline__ unsigned int f16x2(float low, float high) {
  unsigned int r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
})"},
    // The first offender is kept: which access (counted from 1) and the index or bound seen.
    {"report", R"(__device__ __forceinline__ void report(long long* error_word, int site, long long value) {
  unsigned long long* first = (unsigned long long*)error_word;
  if (*(volatile unsigned long long*)first == 0 && atomicCAS(first, 0ull, (unsigned long long)(site + 1)) == 0) error_word[1] = value;
})"},
    {"within", R"(__device__ __forceinline__ $T within($T value, $T most, int site, long long* error_word) {
  if (value >= 0 && value <= most) return value;
  report(error_word, site, value);
  return value < 0 ? 0 : most;
})"},
});

}  // namespace

std::string CudaPrelude::use(const std::string& function) { return use(function, ""); }

std::string CudaPrelude::use(const std::string& function, const std::string& c_type) {
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (rows[index].name != function) continue;
    if (function == "within") use("report");
    if (function == "f32_from_e5m2") use("f32_from_f16");
    std::string text(rows[index].text);
    const auto put = [&](std::string_view mark, const std::string& spelling) {
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) text.replace(at, mark.size(), spelling);
    };
    put("$U", "unsigned " + c_type);
    put("$T", c_type);
    texts_.emplace(fmt::format("{:03}{}", index, c_type), text);
    return function;
  }
  internal_error(fmt::format("the prelude has no function `{}`", function));
}

bool is_prelude_function(std::string_view name) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
}

std::string CudaPrelude::add(const std::string& name, const std::string& key, const std::string& text) {
  texts_.emplace("9" + key, text);
  return name;
}

std::string CudaPrelude::text() const {
  std::string all;
  for (const auto& [key, text] : texts_) all += text + "\n\n";
  return all;
}

}  // namespace tilewright
