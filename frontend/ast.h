// The program as written: names not resolved, types not known.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "ir/plan.h"
#include "ir/schedule.h"

namespace tilewright {

struct AstNode;
using Ast = std::shared_ptr<const AstNode>;

// A name at its place.
struct AstWord {
  std::string text;
  Span span;
};

// `; value`, `; clamp` … behind the indices of an access. `kind` None: nothing stands there; Fill: `value`.
struct AstRule {
  Rule::Kind kind = Rule::Kind::None;
  Ast value;
  Span span;
};

// `k`, or `k in lo .. hi`, or `k in lo ..= hi`. Without a range, lo and hi are empty and the range is inferred.
struct AstRange {
  AstWord name;
  Ast lo;
  Ast hi;
  bool is_inclusive = false;
};

enum class ReductionWord : std::uint8_t { Sum, Prod, Max, Min, Any, All, Count, Mean, ArgMax, ArgMin };

struct AstNumber {
  bool is_float = false;
  std::int64_t integer = 0;
  double real = 0;
};
struct AstName {
  std::string name;
};
struct AstAccess {
  AstWord tensor;
  std::vector<Ast> index;
  AstRule rule;
};
struct AstCall {  // a cast where the function is a dtype
  AstWord function;
  std::vector<Ast> arguments;
};
struct AstUnary {
  UnaryOp op;
  Ast operand;
};
struct AstBinary {
  BinaryOp op;
  Ast lhs;
  Ast rhs;
};
struct AstCompare {  // a chain: operands[0] ops[0] operands[1] ops[1] …
  std::vector<Ast> operands;
  std::vector<BinaryOp> ops;
};
struct AstIf {
  Ast condition;
  Ast if_true;
  Ast if_false;
};
struct AstReduction {
  ReductionWord word;
  std::optional<Dtype> accumulator;  // `sum.f64`
  // Of a scan, `cumsum[j <= i]`: the comparison; the other side stands as the end of the index's range, which is inferred.
  std::optional<BinaryOp> scan;
  std::vector<AstRange> axes;
  Ast body;
};

struct AstNode {
  std::variant<AstNumber, AstName, AstAccess, AstCall, AstUnary, AstBinary, AstCompare, AstIf, AstReduction> value;
  Span span;
  int depth = 1;  // levels of the tree; the parser keeps it small
  bool has_parentheses = false;
};

template <class T>
const T* as(const Ast& ast) {
  return ast ? std::get_if<T>(&ast->value) : nullptr;
}

template <class... F>
decltype(auto) match(const Ast& ast, F&&... functions) {
  return match_variant(ast->value, std::forward<F>(functions)...);
}

struct AstParam {
  ParamKind kind = ParamKind::In;
  AstWord name;
  Dtype dtype = Dtype::F32;
  std::vector<Ast> shape;
  Span span;  // `A: f32[M, K]`
};

// `T[i, j; rule] op= value`, or `let T[i, j]: dtype = value`, or `(U, V) = f(…)`.
struct AstStatement {
  bool is_let = false;
  std::vector<AstWord> targets;  // more than one only for the results of a call
  bool has_index = false;
  std::vector<Ast> index;        // a `let`'s are names
  std::vector<AstRange> ranges;  // of a `let`, beside index
  AstRule rule;
  std::optional<Dtype> dtype;
  std::optional<CombineOp> combine;
  Ast value;
  Span span;
};

struct AstFn {
  AstWord name;
  std::vector<AstParam> params;  // inputs and inouts, then outputs
  std::vector<AstStatement> statements;
  // Targets of statements that could not be read: what they define is unknown, not missing.
  std::vector<AstStatement> broken;
  Span span;
};

struct AstFact {
  Fact::Kind kind = Fact::Kind::Condition;
  Ast condition;
  std::int64_t alignment = 0;
  Span span;
};

struct AstParameter {
  AstWord name;
  std::int64_t value = 0;
};

struct AstSchedule {
  AstWord fn;
  AstWord name;
  std::vector<AstParameter> parameters;
  std::optional<AstWord> from;
  std::optional<AstWord> arch;
  std::vector<AstFact> when;
  std::vector<ScheduleLine> lines;  // parameters not replaced
  Span span;
};

struct AstLaunch {
  AstWord kernel;
  std::vector<Ast> grid;
  std::vector<Ast> block;
  Ast shared_bytes;  // empty: none
  std::vector<Ast> arguments;
};
struct AstTemporary {
  AstWord name;
  Dtype dtype;
  std::vector<Ast> shape;
};
struct AstZero {
  AstWord tensor;
};
struct AstConstant {  // `constant F_c = F`
  AstWord symbol;
  AstWord tensor;
};
struct AstHandStep {
  std::variant<AstLaunch, AstTemporary, AstZero, AstConstant> value;
  Span span;
};

struct AstHand {
  AstWord fn;
  AstWord label;
  AstWord file;
  std::vector<AstFact> when;
  std::vector<AstHandStep> steps;
  Span span;
};

struct AstBenchValue {
  AstWord name;
  Ast value;
};
struct AstBench {
  AstWord name;
  AstWord fn;
  std::vector<AstBenchValue> values;
  Span span;
};

struct AstProgram {
  std::vector<AstFn> fns;
  std::vector<AstSchedule> schedules;
  std::vector<AstHand> hands;
  std::vector<AstBench> benches;
};

}  // namespace tilewright
