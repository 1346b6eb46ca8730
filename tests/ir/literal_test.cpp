// Where a literal finds its dtype, and that printing it gives the same bits.
#include <doctest/doctest.h>

#include <bit>
#include <limits>

#include "ir/plan.h"
#include "ir/printer.h"

namespace tilewright {

namespace {

// The value of `let x = …` in a plan with tensors of several dtypes, printed with every literal's dtype in front.
std::string typed(const std::string& value, const std::string& statement = "let x = ") {
  const Plan plan = read_plan(
      "plan t {\n  dim N\n  in B: bf16[N]\n  in F: f32[N]\n  in D: f64[N]\n  in I: i32[N]\n  in U: u8[N]\n  in s: f64\n  out C: f64[N]\n"
      "  kernel k {\n    parallel i in N {\n      " + statement + value + "\n    }\n  }\n}\n");
  const Stmt& stmt = as<Loop>(kernels_of(plan)[0]->body[0])->body[0];
  const Expr expr = as<Let>(stmt) ? as<Let>(stmt)->value : as<Store>(stmt)->value;
  std::string constants;
  walk(expr, [&](const Expr& node) {
    if (const Const* constant = as<Const>(node)) constants += std::string(info(node->dtype).name) + " " + print_digits(*constant, node->dtype) + ", ";
    return true;
  });
  return constants;
}

std::string print_real(double value, Dtype dtype) { return print_expr(make_expr(Const{std::bit_cast<std::int64_t>(value)}, dtype)); }

}  // namespace

TEST_SUITE("ir literals") {
  TEST_CASE("an integer is an index, a number with a point an f32") {
    CHECK(typed("5") == "index 5, ");
    CHECK(typed("-5") == "index -5, ");
    CHECK(typed("0.5") == "f32 0.5, ");
    CHECK(typed("-inf") == "f32 -inf, ");
    CHECK(typed("nan") == "f32 nan, ");
    CHECK(typed("true") == "bool 1, ");
  }

  TEST_CASE("beside another operand it takes that one's dtype") {
    CHECK(typed("D[i] + 1.0") == "f64 1.0, ");
    CHECK(typed("2*I[i]") == "i32 2, ");
    CHECK(typed("I[i] < 3") == "i32 3, ");
    CHECK(typed("if i < 3 then D[i] else 0.0") == "index 3, f64 0.0, ");
    CHECK(typed("max(D[i], -inf)") == "f64 -inf, ");
    CHECK(typed("fma(2.0, D[i], 1.0)") == "f64 2.0, f64 1.0, ");
    CHECK(typed("U[i] << 3") == "u8 3, ");
    CHECK(typed("s*2") == "f64 2.0, ");
    CHECK(typed("B[i] > 0.0") == "bf16 0.0, ");
    CHECK(typed("D[i + 1; 0.0]") == "index 1, f64 0.0, ");
  }

  TEST_CASE("the whole value of a store takes the target's dtype") {
    CHECK(typed("0.0", "C[i] = ") == "f64 0.0, ");
    CHECK(typed("if i < 3 then 1.0 else 2.0", "C[i] = ") == "index 3, f64 1.0, f64 2.0, ");
    CHECK(typed("1.0 + 2.0", "C[i] = ") == "f64 1.0, f64 2.0, ");
    CHECK(typed("f64(1.0)", "C[i] = ") == "f64 1.0, ");
  }

  TEST_CASE("a dtype in front makes a constant of it, of anything else a conversion") {
    CHECK(typed("bf16(0.1)") == "bf16 0.100097656, ");
    CHECK(typed("u8(255)") == "u8 255, ");
    CHECK(typed("u64(18446744073709551615)") == "u64 18446744073709551615, ");
    CHECK(typed("i64(-9223372036854775808)") == "i64 -9223372036854775808, ");
    CHECK(typed("bf16(f32(0.1))") == "f32 0.1, ");
    CHECK(print_expr(make_expr(Cast{real(0.1, Dtype::F32)}, Dtype::BF16)) == "bf16(f32(0.1))");
  }

  TEST_CASE("numbers print with the fewest digits that give them back") {
    CHECK(print_real(static_cast<double>(0.1F), Dtype::F32) == "0.1");
    CHECK(print_real(0.1, Dtype::F64) == "f64(0.1)");
    CHECK(print_real(1.0, Dtype::F32) == "1.0");
    CHECK(print_real(1e20, Dtype::F64) == "f64(1e+20)");
    CHECK(print_real(-0.0, Dtype::F32) == "-0.0");
    CHECK(print_real(std::numeric_limits<double>::infinity(), Dtype::F32) == "inf");
    // No value of the dtype: shown by its bits, for the verifier to refuse.
    CHECK(print_real(0.1, Dtype::F32) == "f32(0x3fb999999999999a)");
  }

  TEST_CASE("parentheses stand where the grammar or a reader needs them") {
    const Expr a = var("a");
    const Expr b = var("b");
    const Expr c = var("c");
    auto both_ways = [](BinaryOp op, const Expr& x, const Expr& y) { return print_expr(make_expr(Binary{op, x, y}, Dtype::Index)); };
    auto make = [](BinaryOp op, const Expr& x, const Expr& y) { return make_expr(Binary{op, x, y}, Dtype::Index); };
    CHECK(both_ways(BinaryOp::Add, make(BinaryOp::Mul, a, b), c) == "a*b + c");
    CHECK(both_ways(BinaryOp::Mul, make(BinaryOp::Add, a, b), c) == "(a + b)*c");
    CHECK(both_ways(BinaryOp::Sub, a, make(BinaryOp::Sub, b, c)) == "a - (b - c)");
    CHECK(both_ways(BinaryOp::Mul, make(BinaryOp::Div, a, b), c) == "(a / b)*c");
    CHECK(both_ways(BinaryOp::BitXor, make(BinaryOp::Add, a, b), c) == "(a + b) ^ c");
    CHECK(print_expr(make_expr(Unary{UnaryOp::Neg, make(BinaryOp::Mul, a, b)}, Dtype::Index)) == "-(a*b)");
    CHECK(print_expr(make_expr(Unary{UnaryOp::Neg, integer(5)}, Dtype::Index)) == "-(5)");
    const Expr choice = make_expr(Select{var("t", Dtype::Bool), a, b}, Dtype::Index);
    CHECK(both_ways(BinaryOp::Add, choice, c) == "(if t then a else b) + c");
  }
}

}  // namespace tilewright
