// A program as a small tree that prints as text of the language: what is drawn, and what shrinks.
//
// The tree knows no types. The frontend decides what is well typed, so that a change that makes a smaller program needs no
// care: where it makes none, the frontend refuses it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/plan.h"

namespace tilewright::fuzz {

enum class TermKind : std::uint8_t {
  Literal,    // `text` as written: a number, a name, a scalar, true
  Access,     // text[kids; rule]
  Unary,      // text kids[0]
  Binary,     // kids[0] text kids[1]; also and, or
  Compare,    // kids[0] text kids[1], or a chain of three with `words`
  If,         // if kids[0] then kids[1] else kids[2]
  Call,       // text(kids), also a conversion
  Reduction,  // text[ranges] kids[0]
};

struct Term;

struct Range {
  std::string name;
  std::vector<Term> bounds;  // none, or lo and hi; of a scan one, the index that it goes to
  bool is_inclusive = false;
  std::string relation = {};  // of a scan: `<=`, `<`, `>=` or `>`
};

struct Term {
  TermKind kind = TermKind::Literal;
  std::string text;
  std::vector<Term> kids;
  std::string rule;            // Access: behind `;`, empty for none
  std::vector<Range> ranges;   // Reduction
  std::string second;          // Compare: the operator of a chain's second link
};

struct Statement {
  bool is_let = false;
  std::string target;
  std::vector<Term> index;
  std::vector<Range> ranges;  // of a let's indices, where they are written
  std::string rule;
  std::string dtype;          // of a let, where it is written
  std::string op = "=";       // or `+=` …
  Term value;
};

struct Parameter {
  ParamKind kind = ParamKind::In;
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::string> shape;
};

struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Statement> statements;
};

// A program with its schedule: the lines of one fn, the last.
struct FuzzProgram {
  std::vector<Function> functions;
  std::vector<std::string> facts;  // behind `when`
  std::vector<std::string> lines;
  Function& main() { return functions.back(); }
  const Function& main() const { return functions.back(); }
};

Term literal(std::string text);
Term make_term(TermKind kind, std::string text, std::vector<Term> kids);
Term binary(std::string op, Term a, Term b);
Term call(std::string name, std::vector<Term> arguments);

std::string print(const Term& term);
std::string print(const Statement& statement);
// With `schedule f "drawn" when … { … }` where there are lines or facts.
std::string print(const FuzzProgram& program);

}  // namespace tilewright::fuzz
