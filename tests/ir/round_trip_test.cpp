// parse(print(x)) == x for random plans of every node, and no text makes the parser or the verifier fail in another way
// than by saying what is wrong.
#include <doctest/doctest.h>

#include <bit>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "ir/operators.h"
#include "ir/plan.h"
#include "ir/scalar.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

// Well-typed expressions and statements of all kinds, without any other sense.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  Plan plan() {
    Plan plan;
    plan.name = "random";
    plan.schedule = pick(3) == 0 ? "say \"it\" \\ twice" : "";
    plan.dims = {Dim{"N", {}}, Dim{"M", {}}, Dim{"workers", call("resident", {var("k")}, Dtype::Index)}, Dim{"A.0", {}}};
    for (Dtype dtype : dtypes_) {
      const std::string name(info(dtype).name);
      plan.params.push_back(Param{pick(2) ? ParamKind::In : ParamKind::InOut, "T." + name, dtype, {var("N"), expr(Dtype::Index, 1)}, {}});
      plan.params.push_back(Param{ParamKind::In, "s." + name, dtype, {}, {}});
    }
    plan.temps.push_back(Temp{"temporary", Dtype::F32, {integer(3)}});
    plan.facts = {Fact{Fact::Kind::Condition, expr(Dtype::Bool, 3), 0}, Fact{Fact::Kind::Aligned, {}, 16}, Fact{Fact::Kind::Contiguous, {}, 0}};
    plan.index_bits = pick(2) ? 64 : 32;
    plan.error_name = "e";
    plan.errors = {ErrorSite{0, access_of(Dtype::F32, 2)}, ErrorSite{7, access_of(Dtype::I8, 1)}};
    plan.steps.emplace_back(Clear{"T.f32", constant_expr(Dtype::F32)});
    plan.steps.emplace_back(Table{"order", Dtype::I32, {var("N"), integer(2)}, call("hilbert", {var("N"), var("M")}, Dtype::I32)});
    Kernel kernel;
    kernel.name = "k";
    kernel.stage = pick(2) ? Stage::Thread : Stage::Tile;
    kernel.warps = static_cast<int>(pick(3));
    if (pick(2)) kernel.block_shape = {16, 8};
    if (kernel.stage == Stage::Thread)
      kernel.launch = LaunchHeader{"sm_90a", {expr(Dtype::Index, 2)}, {32, 2}, {2}, 1024, 128, 2, {"T.f32", "N"}, {TensorMap{"map", "T.f32", {64, 32}, 128}}};
    kernel.body = block(3);
    plan.steps.emplace_back(std::move(kernel));
    return plan;
  }

 private:
  const std::vector<Dtype> dtypes_ = {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2, Dtype::I64, Dtype::I32,
                                      Dtype::I16, Dtype::I8,  Dtype::U64, Dtype::U32,  Dtype::U16,  Dtype::U8,   Dtype::Bool};

  std::uint64_t pick(std::uint64_t count) { return random_() % count; }
  bool one_in(std::uint64_t count) { return pick(count) == 0; }
  Dtype any_dtype() { return one_in(4) ? Dtype::Index : dtypes_[pick(dtypes_.size())]; }

  Expr constant_expr(Dtype dtype) {
    if (dtype == Dtype::Bool) return boolean(pick(2) == 1);
    if (is_float(dtype)) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      const double special[] = {0.0, -0.0, 1.0, -1.0, 0.1, 1e-40, 3e38, 1e30, infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 123456789.0};
      double value = special[pick(std::size(special))];
      if (one_in(2)) value = std::bit_cast<double>(random_());
      const Scalar rounded = value == value && value - value == 0 ? real_scalar(round_to(dtype, value)) : real_scalar(value);
      return constant_of(rounded, dtype);
    }
    const std::int64_t special[] = {0, 1, -1, 127, INT64_MAX, INT64_MIN};
    return integer(wrap(dtype, one_in(2) ? special[pick(std::size(special))] : static_cast<std::int64_t>(random_())), dtype);
  }

  Rule rule(Dtype dtype, int depth) {
    const auto kind = static_cast<Rule::Kind>(pick(14) < 7 ? 0 : pick(7));
    Rule result{kind, {}, 0};
    if (kind == Rule::Kind::Fill) result.fill = expr(dtype, depth);
    if (kind == Rule::Kind::Check) result.check_id = static_cast<int>(pick(9));
    return result;
  }

  Access access(Dtype dtype, int depth) {
    return Access{"T." + std::string(info(dtype).name), {index(depth), index(depth)}, rule(dtype, depth), {}};
  }
  Expr access_of(Dtype dtype, int depth) { return load(access(dtype, depth), dtype); }
  Expr index(int depth) { return expr(one_in(4) ? Dtype::I32 : Dtype::Index, depth); }

  Expr leaf(Dtype dtype) {
    if (dtype == Dtype::Index) return one_in(2) ? constant_expr(dtype) : var(one_in(2) ? "N" : one_in(2) ? "thread.x" : "A.0");
    if (one_in(2)) return constant_expr(dtype);
    return load(Access{"s." + std::string(info(dtype).name), {}, {}, {}}, dtype);
  }

  Expr expr(Dtype dtype, int depth) {
    if (depth <= 0 || one_in(5)) return leaf(dtype);
    const auto inner = [&] { return expr(dtype, depth - 1); };
    switch (pick(9)) {
      case 0: {
        const UnaryOp op = dtype == Dtype::Bool ? UnaryOp::Not : is_integer(dtype) && one_in(2) ? UnaryOp::BitNot : UnaryOp::Neg;
        return make_expr(Unary{op, inner()}, dtype);
      }
      case 1: case 2: case 3: return binary_expr(dtype, depth);
      case 4: {
        Expr condition = expr(Dtype::Bool, depth - 1);
        Expr a = inner();
        return make_expr(Select{std::move(condition), std::move(a), inner()}, dtype);
      }
      case 5: {
        const Dtype from = any_dtype();
        return from == dtype ? inner() : make_expr(Cast{expr(from, depth - 1)}, dtype);
      }
      case 6: case 7: return call_expr(dtype, depth);
      default: break;
    }
    return dtype == Dtype::Index ? leaf(dtype) : access_of(dtype, depth - 1);
  }

  Expr binary_expr(Dtype dtype, int depth) {
    const auto op = static_cast<BinaryOp>(pick(20));
    const BinaryInfo& facts = info(op);
    Dtype of = dtype;
    if (dtype == Dtype::Bool && facts.is_comparison) of = any_dtype();
    if (facts.is_comparison != (dtype == Dtype::Bool) && !facts.is_logical) return leaf(dtype);
    if (facts.is_logical && dtype != Dtype::Bool) return leaf(dtype);
    const bool is_shift = op == BinaryOp::Shl || op == BinaryOp::Shr;
    Expr lhs = expr(of, depth - 1);
    return make_expr(Binary{op, std::move(lhs), expr(is_shift && one_in(2) ? Dtype::U8 : of, depth - 1)}, dtype);
  }

  Expr call_expr(Dtype dtype, int depth) {
    if (dtype == Dtype::Index) return make_expr(Call{"within", {index(depth - 1), expr(Dtype::Index, depth - 1), integer(3)}}, dtype);
    if (dtype == Dtype::Bool) return make_expr(Call{"isnan", {expr(one_in(2) ? Dtype::F32 : Dtype::F64, depth - 1)}}, dtype);
    const FunctionInfo& row = all_functions()[pick(all_functions().size())];
    if (row.result || row.group == FunctionGroup::Structural) return leaf(dtype);
    std::vector<Expr> arguments;
    for (int n = 0; n < row.arity; ++n) arguments.push_back(expr(dtype, depth - 1));
    return make_expr(Call{std::string(row.name), std::move(arguments)}, dtype);
  }

  std::vector<Expr> where() {
    std::vector<Expr> list;
    while (one_in(3)) list.push_back(expr(Dtype::Bool, 3));
    return list;
  }

  Layout layout() {
    Layout result;
    for (const char* name : {"i", "As.j"}) {
      AxisLayout axis{name, {}};
      do axis.factors.push_back(Factor{static_cast<std::int64_t>(pick(9)), static_cast<Place>(pick(11)), static_cast<std::int64_t>(pick(3))});
      while (one_in(2));
      result.axes.push_back(std::move(axis));
    }
    result.xor_bytes = one_in(3) ? 128 : 0;
    return result;
  }
  std::optional<Layout> maybe_layout() { return one_in(2) ? std::optional(layout()) : std::nullopt; }

  Axis axis(const std::string& name) { return Axis{name, one_in(2) ? integer(0) : index(2), index(2), one_in(3) ? index(1) : Expr(), {}}; }

  Block block(int depth) {
    Block body;
    for (std::uint64_t count = pick(6); count > 0; --count) body.push_back(make_stmt(statement(depth)));
    return body;
  }

  StmtVariant statement(int depth) {
    const Dtype dtype = dtypes_[pick(dtypes_.size())];
    const CombineOp op = static_cast<CombineOp>(pick(6));
    switch (depth > 0 ? pick(18) : 3 + pick(15)) {
      case 0: return Loop{static_cast<LoopKind>(pick(8)), {axis("i.block"), axis("i")}, maybe_layout(), block(depth - 1)};
      case 1: return If{expr(Dtype::Bool, 3), block(depth - 1), block(depth - 1)};
      case 2: return Labelled{"producer", make_stmt(statement(depth - 1))};
      case 3: return Buffer{one_in(2) ? Space::Register : Space::Shared, "buffer.2", dtype, {{"i", 4}, {"", 8}}, maybe_layout(), one_in(2) ? std::optional<std::int64_t>(64) : std::nullopt};
      case 4: return Let{"value", expr(any_dtype(), 4), one_in(3) ? index(1) : Expr(), one_in(3) ? index(1) : Expr()};
      case 5: case 6: return Store{access(dtype, 2), expr(dtype, 5), where(), one_in(2) ? std::optional(op) : std::nullopt};
      case 7: return Copy{access(dtype, 2), access(dtype, 2), one_in(2) ? "i.block" : "", where(), maybe_layout()};
      case 8: return Fill{"T." + std::string(info(dtype).name), expr(dtype, 2)};
      case 9: return Mma{access(dtype, 1), access(dtype, 1), access(dtype, 1), "mma.m16n8k16"};
      case 10: {
        const bool is_scan = one_in(2);
        return Fold{is_scan, access(dtype, 1), op, access(dtype, 1), is_scan && one_in(2) ? "total" : ""};
      }
      case 11: return Pipe{"p", {"As", "Bs"}, 4, "cp.async", static_cast<int>(pick(3)), one_in(2) ? PipeScope::Cta : PipeScope::Cluster};
      case 12: return Verb{static_cast<VerbKind>(pick(4)), "p"};
      case 13: return Role{"consumer", 0, 8, one_in(2) ? 232 : 0};
      case 14: return Chain{"T." + std::string(info(dtype).name), dtype, op, expr(dtype, 2)};
      case 15: return Publish{"T." + std::string(info(dtype).name), expr(dtype, 2)};
      case 16: return Lookback{access(dtype, 1), "c"};
      default: return Instr{"load.v4", {load(Access{"T.f32", {}, {}, {}}, Dtype::F32), expr(any_dtype(), 3)}};
    }
  }

  std::mt19937_64 random_;
};

std::string ladder_text(const std::string& name) {
  std::ifstream file(source_root() / "tests/ir/ladder" / name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_SUITE("ir round trip") {
  TEST_CASE("random plans") {
    const std::uint64_t count = runs_full_tests() ? 20000 : 500;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      const Plan plan = Generator(seed).plan();
      const std::string text = print(plan);
      std::string again;
      try {
        const Plan parsed = parse_plan(text);
        if (parsed == plan) continue;
        again = print(parsed);
      } catch (const UserError& error) {
        again = render(error.diagnostics(), {{"random.ir", text}});
      }
      std::size_t at = 0;
      while (at < text.size() && at < again.size() && text[at] == again[at]) ++at;
      const std::size_t from = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
      FAIL("seed ", seed, " does not come back; first difference in\n", text.substr(from, text.find('\n', at) - from), "\nwhich is read as\n",
           again.substr(std::min(from, again.size()), 400));
    }
  }

  TEST_CASE("damaged texts are refused, not crashed on") {
    std::mt19937_64 random(1);
    const std::string pieces[] = {"{", "}", "(", ")", "[", "]", ";", ",", "..", "if ", "1e999", "99999999999999999999", "\n", "\"", "plan ", "each ",
                                  "reg x: ", "-", "@p ", "\xff", std::string(1, '\0'), "copy ", "let ", " in ", "0x", "p.in", "mma ", "kernel "};
    const std::uint64_t rounds = runs_full_tests() ? 2000 : 100;
    for (const char* name : {"matmul.09.persist.ir", "matmul.09.persist.thread.ir", "histogram.ir", "scan.ir", "spmv.ir"}) {
      const std::string text = ladder_text(name);
      REQUIRE(!text.empty());
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::string damaged = text;
        for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
          const std::size_t at = random() % damaged.size();
          if (random() % 2) damaged.erase(at, 1 + random() % 8);
          if (random() % 2) damaged.insert(std::min(at, damaged.size()), pieces[random() % std::size(pieces)]);
        }
        try {
          const Plan plan = parse_plan(damaged);
          if (verify(plan).empty()) CHECK_MESSAGE(parse_plan(print(plan)) == plan, print(plan));
        } catch (const UserError& error) {
          CHECK(!error.diagnostics().empty());
          render(error.diagnostics(), {{name, damaged}});
        }
      }
    }
  }

  TEST_CASE("nesting has a limit") {
    const auto message_of = [](const std::string& text) {
      try {
        parse_plan(text);
      } catch (const UserError& error) {
        return error.diagnostics().front().message;
      }
      return std::string();
    };
    const auto repeated = [](const std::string& piece, int count) {
      std::string text;
      for (int n = 0; n < count; ++n) text += piece;
      return text;
    };
    constexpr int many = 100000;
    for (const char* piece : {"(", "-", "not ", "exp(", "if a then ", "A[", "1 + "}) {
      CAPTURE(piece);
      CHECK(message_of("plan t {\n  kernel k {\n    let x = " + repeated(piece, many) + "1\n  }\n}\n") == "an expression is nested deeper than 500");
    }
    CHECK(message_of("plan t {\n  kernel k {\n" + repeated("serial i in 4 {\n", many) + "}\n}\n") == "statements are nested deeper than 250");
    CHECK(message_of("plan t {\n  kernel k {\n" + repeated("@p ", many) + "}\n}\n") == "statements are nested deeper than 250");
    CHECK(message_of(repeated("1 + ", 10)) == "`1` stands where `plan NAME { … }` is needed");
    CHECK(message_of("") == "the text ends where `plan NAME { … }` is needed");
  }
}

}  // namespace tilewright
