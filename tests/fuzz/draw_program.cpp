// Draws fns: statements of every form, one after the other, each reading what stands before it.
#include "tests/fuzz/draw_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/types.h"
#include "ir/operators.h"
#include "tests/fuzz/draw_scope.h"

namespace tilewright::fuzz {

namespace {


Term access(const std::string& tensor, const std::vector<std::string>& index, std::string rule = {}) {
  Term result = make_term(TermKind::Access, tensor, {});
  for (const std::string& name : index) result.kids.push_back(literal(name));
  result.rule = std::move(rule);
  return result;
}

class ProgramDraw {
 public:
  explicit ProgramDraw(Random& random) : random_(random), scope_(random) {}

  FuzzProgram run(bool has_products) {
    add_helpers();
    std::size_t count = 1 + random_.weighted({50, 30, 14, 6});
    if (has_products) {
      random_.chance(50) ? add_plain_product() : add_product();
      count = random_.weighted({60, 30, 10});
    }
    for (std::size_t n = 0; n < count; ++n) add_statement();
    const bool has_output = !scope_.outputs.empty() || std::any_of(scope_.inputs.begin(), scope_.inputs.end(), [](const Parameter& param) { return param.kind == ParamKind::InOut; });
    if (!has_output || scope_.outputs.empty()) add_pointwise(false);
    Function main{"f", {}, std::move(statements_)};
    bind_dims();
    main.parameters = scope_.inputs;
    main.parameters.insert(main.parameters.end(), scope_.outputs.begin(), scope_.outputs.end());
    FuzzProgram program;
    program.functions = std::move(helpers_);
    program.functions.push_back(std::move(main));
    return program;
  }

 private:
  void add_helpers() {
    if (!random_.chance(12)) return;
    Function helper{"h", {{ParamKind::In, "x", Dtype::F32, {}}, {ParamKind::Out, "y", Dtype::F32, {}}}, {}};
    const auto x = [] { return literal("x"); };
    Statement result{false, "y", {}, {}, "", "", "=", {}};
    result.value = random_.pick<Term>({make_term(TermKind::Call, "max", {x(), literal("0.0")}), binary("*", x(), x()), binary("/", literal("1.0"), binary("+", literal("1.0"), make_term(TermKind::Call, "abs", {x()}))),
                                       make_term(TermKind::If, "", {make_term(TermKind::Compare, ">", {x(), literal("0")}), x(), binary("*", literal("0.1"), x())})});
    helper.statements = {result};
    helpers_.push_back(helper);
    scope_.helpers = {"h"};
  }

  void add_statement() {
    switch (random_.weighted({30, 18, 14, 10, 12, 5, 6, 5, 5, 4, 9, 6, 8})) {
      case 0: return add_pointwise(random_.chance(40));
      case 1: return add_row_reduction(random_.chance(40));
      case 2: return add_product();
      case 3: return add_stencil();
      case 4: return add_scatter();
      case 5: return add_update();
      case 6: return add_gather();
      case 7: return add_reshape();
      case 8: return add_inout();
      case 10: return add_function();
      case 11: return add_accumulator();
      case 12: return add_scan(random_.chance(40));
      default: return add_sparse();
    }
  }

  // ---- Targets. A let becomes readable, a result is declared.
  Statement begin(bool is_let, Dtype dtype, const std::vector<std::string>& shape) {
    Statement statement;
    statement.is_let = is_let;
    statement.target = scope_.fresh_tensor(is_let);
    scope_.indices.clear();
    for (const std::string& extent : shape) {
      const DrawnIndex index{scope_.fresh_index(), extent};
      scope_.indices.push_back(index);
      statement.index.push_back(literal(index.name));
      statement.ranges.push_back(Range{index.name, {}, false});
      if (is_let) statement.ranges.back().bounds = {literal("0"), literal(extent)};
    }
    scope_.own_target = statement.target;
    if (is_let) statement.dtype = info(dtype).name;
    return statement;
  }
  void finish(Statement statement, Dtype dtype, const std::vector<std::string>& shape) {
    if (statement.is_let) {
      if (random_.chance(20)) statement.dtype.clear();
    } else {
      scope_.outputs.push_back(Parameter{ParamKind::Out, statement.target, dtype, shape});
    }
    scope_.declare(DrawnTensor{statement.target, dtype, shape});
    statements_.push_back(std::move(statement));
    scope_.indices.clear();
    scope_.own_target.clear();
  }

  std::vector<std::string> draw_shape(std::size_t least, bool is_output) {
    std::vector<std::string> shape;
    const std::size_t rank = std::max(least, random_.weighted({5, 42, 45, 8}));
    for (std::size_t n = 0; n < rank; ++n) {
      if (is_output && random_.chance(8)) {
        const std::string dim = scope_.dim();
        shape.push_back(random_.pick<std::string>({"2*" + dim, dim + " + 1", "ceildiv(" + dim + ", 4)", dim + " / 2", dim + " + " + scope_.dim()}));
      } else {
        shape.push_back(scope_.extent(!is_output || random_.chance(30)));
      }
    }
    return shape;
  }

  Dtype draw_dtype() {
    return random_.pick({Dtype::F32, Dtype::F32, Dtype::F32, Dtype::F32, Dtype::F64, Dtype::F16, Dtype::F16, Dtype::BF16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2, Dtype::I32, Dtype::I32, Dtype::I64, Dtype::I16, Dtype::I8, Dtype::U64,
                         Dtype::U32, Dtype::U16, Dtype::U8, Dtype::U8, Dtype::Bool});
  }
  // A dtype whose values may be assigned to the target's.
  Dtype value_dtype(Dtype target) {
    if (target == Dtype::Bool || random_.chance(60)) return is_narrow_float(target) && random_.chance(60) ? Dtype::F32 : target;
    if (is_float(target)) return random_.pick({Dtype::F32, Dtype::F64, Dtype::F16, Dtype::BF16, Dtype::I32, Dtype::U8});
    return random_.pick({Dtype::I32, Dtype::I64, Dtype::U8, Dtype::I8, Dtype::U32, Dtype::I16});
  }

  void add_pointwise(bool is_let) {
    const Dtype dtype = draw_dtype();
    const std::vector<std::string> shape = draw_shape(0, true);
    Statement statement = begin(is_let, dtype, shape);
    statement.value = draw_value(scope_, value_dtype(dtype), static_cast<int>(1 + random_.below(3)));
    finish(std::move(statement), dtype, shape);
  }

  void add_row_reduction(bool is_let) {
    const Dtype dtype = draw_dtype();
    const std::vector<std::string> shape = draw_shape(0, true);
    Statement statement = begin(is_let, dtype, shape);
    statement.value = draw_reduction(scope_, dtype, static_cast<int>(random_.below(3)));
    if (random_.chance(35) && dtype != Dtype::Bool) statement.value = binary(random_.pick({"+", "*", "-"}), std::move(statement.value), draw_operand(scope_, dtype, 1));
    finish(std::move(statement), dtype, shape);
  }

  // Y[r, i] = cumsum[j <= i] X[r, j], with more in the terms and around the scan now and then.
  void add_scan(bool is_let) {
    const Dtype dtype = random_.pick({Dtype::F32, Dtype::F32, Dtype::F32, Dtype::F64, Dtype::I32, Dtype::I32, Dtype::I64, Dtype::U32, Dtype::U64});
    const std::vector<std::string> shape = draw_shape(1, !is_let && random_.chance(15));
    Statement statement = begin(is_let, dtype, shape);
    const std::size_t axis = random_.below(shape.size());
    const DrawnIndex to = scope_.indices[axis];
    const DrawnIndex index{scope_.fresh_index(), to.extent};
    std::string suffix;
    Dtype terms = dtype;
    if (dtype == Dtype::F32) terms = random_.pick({Dtype::F32, Dtype::F32, Dtype::F16, Dtype::BF16});
    if (dtype == Dtype::I32) terms = random_.pick({Dtype::I32, Dtype::I32, Dtype::U8, Dtype::I16});
    if ((dtype == Dtype::F64 || dtype == Dtype::I64) && random_.chance(50)) {
      suffix = "." + std::string(info(dtype).name);
      terms = dtype == Dtype::F64 ? Dtype::F32 : Dtype::I32;
    }
    std::vector<std::string> extents = shape;
    if (random_.chance(12)) extents[axis] = scope_.extent();
    Term read = make_term(TermKind::Access, scope_.tensor(terms, extents).name, statement.index);
    read.kids[axis] = literal(index.name);
    scope_.indices.push_back(index);
    ++scope_.reductions;
    Term term = random_.chance(55)   ? read
                : random_.chance(50) ? binary(random_.pick({"*", "+"}), read, draw_operand(scope_, terms, 1))
                                     : make_term(TermKind::If, "", {draw_condition(scope_, 1), read, draw_number(scope_, terms)});
    --scope_.reductions;
    scope_.indices.pop_back();
    Term scan = make_term(TermKind::Reduction, random_.pick({"cumsum", "cumsum", "cumprod", "cummax", "cummin"}) + suffix, {std::move(term)});
    Range range{index.name, {literal(to.name)}, false, random_.pick({"<=", "<=", "<", ">=", ">"})};
    scan.ranges = {std::move(range)};
    statement.value = random_.chance(70) ? std::move(scan) : binary(random_.pick({"+", "*", "-"}), std::move(scan), draw_operand(scope_, dtype, 1));
    finish(std::move(statement), dtype, shape);
  }

  // C[b, i, j] = sum[k] A[b, i, k] * B[k, j], operands either way round, with more factors and an epilogue now and then.
  void add_product() {
    const Dtype operand = random_.pick({Dtype::F32, Dtype::F32, Dtype::F32, Dtype::BF16, Dtype::BF16, Dtype::F16, Dtype::F16, Dtype::F64, Dtype::I32, Dtype::U8, Dtype::I8});
    const Dtype sum = accumulator_of(operand);
    const Dtype dtype = random_.chance(60) ? operand : sum;
    std::vector<std::string> shape = {scope_.dim(), scope_.dim()};
    const bool has_batch = random_.chance(12);
    if (has_batch) shape.insert(shape.begin(), scope_.dim());
    const bool is_let = random_.chance(25);
    Statement statement = begin(is_let, dtype, shape);
    const std::string row = scope_.indices[has_batch ? 1 : 0].name, column = scope_.indices[has_batch ? 2 : 1].name;
    const std::string row_extent = scope_.indices[has_batch ? 1 : 0].extent, column_extent = scope_.indices[has_batch ? 2 : 1].extent;
    const DrawnIndex k{scope_.fresh_index(), scope_.dim()};
    const auto operand_over = [&](const std::string& own, const std::string& own_extent, bool is_batched) {
      std::vector<std::string> extents = {own_extent, k.extent}, names = {own, k.name};
      if (random_.chance(35)) {
        std::swap(extents[0], extents[1]);
        std::swap(names[0], names[1]);
      }
      if (is_batched) {
        extents.insert(extents.begin(), shape[0]);
        names.insert(names.begin(), scope_.indices[0].name);
      }
      return access(scope_.tensor(operand, extents).name, names);
    };
    Term first = operand_over(row, row_extent, has_batch), second = operand_over(column, column_extent, false);
    Term body = random_.chance(85) ? binary("*", first, second) : binary(random_.pick({"+", "-"}), first, second);
    scope_.indices.push_back(k);
    ++scope_.reductions;
    if (random_.chance(15)) body = binary("*", std::move(body), draw_operand(scope_, sum, 1));
    if (random_.chance(8)) body = make_term(TermKind::If, "", {draw_condition(scope_, 1), std::move(body), literal("0")});
    --scope_.reductions;
    scope_.indices.pop_back();
    Term reduction = make_term(TermKind::Reduction, random_.chance(85) ? "sum" : random_.pick({"max", "min", "prod"}), {std::move(body)});
    reduction.ranges = {Range{k.name, {}, false}};
    if (random_.chance(20)) reduction.ranges[0].bounds = {literal("0"), literal(k.extent)};
    statement.value = std::move(reduction);
    if (random_.chance(30)) statement.value = binary(random_.pick({"+", "*"}), std::move(statement.value), draw_operand(scope_, sum, 1));
    finish(std::move(statement), dtype, shape);
  }

  // C[i, j] = sum[k] A[i, k] * B[k, j] as the tensor cores take it, either operand either way round.
  void add_plain_product() {
    const Dtype factors = random_.pick({Dtype::F16, Dtype::BF16});
    const Dtype dtype = random_.pick({factors, factors, Dtype::F32});
    Statement statement = begin(false, dtype, {scope_.dim(), scope_.dim()});
    const std::vector<std::string> shape = {scope_.indices[0].extent, scope_.indices[1].extent};
    const std::string i = scope_.indices[0].name, j = scope_.indices[1].name, k = scope_.fresh_index(), depth = scope_.dim();
    const auto factor = [&](const std::string& index, const std::string& extent) {
      const bool is_turned = random_.chance(40);
      const std::string name = scope_.fresh_input(factors, is_turned ? std::vector{depth, extent} : std::vector{extent, depth});
      return access(name, is_turned ? std::vector{k, index} : std::vector{index, k});
    };
    Term a = factor(i, shape[0]);
    Term reduction = make_term(TermKind::Reduction, "sum", {binary("*", std::move(a), factor(j, shape[1]))});
    reduction.ranges = {Range{k, {}, false}};
    statement.value = std::move(reduction);
    finish(std::move(statement), dtype, shape);
  }

  // Y[i] = exp(X[i]): each function as often as any other.
  void add_function() {
    static const std::vector<std::string> names = [] {
      std::vector<std::string> result = {"min", "max"};
      for (const FunctionInfo& row : all_functions())
        if (row.name.find('.') == std::string_view::npos && row.group != FunctionGroup::Structural) result.emplace_back(row.name);
      return result;
    }();
    const std::string name = !scope_.helpers.empty() && random_.chance(50) ? scope_.helpers.front() : random_.pick(names);
    const FunctionInfo* facts = find_function(name);
    const bool is_whole = facts != nullptr && !facts->takes_float;
    const Dtype dtype = facts == nullptr ? Dtype::F32 : is_whole ? random_.pick({Dtype::I32, Dtype::I64, Dtype::U8}) : random_.pick({Dtype::F32, Dtype::F32, Dtype::F64, Dtype::F16, Dtype::BF16});
    const std::vector<std::string> shape = draw_shape(1, false);
    const bool is_condition = facts != nullptr && facts->result == Dtype::Bool;
    Statement statement = begin(false, is_condition ? Dtype::Bool : dtype, shape);
    std::vector<Term> arguments;
    const int arity = facts != nullptr ? facts->arity : name == "min" || name == "max" ? 2 : 1;
    for (int n = 0; n < arity; ++n) arguments.push_back(n > 0 && random_.chance(30) ? draw_number(scope_, dtype) : draw_access(scope_, dtype));
    statement.value = make_term(TermKind::Call, name, std::move(arguments));
    finish(std::move(statement), is_condition ? Dtype::Bool : dtype, shape);
  }

  // Y[i] = sum.f64[k] A[i, k]: accumulators that are said, over terms that they hold.
  void add_accumulator() {
    const Dtype dtype = random_.pick({Dtype::F32, Dtype::F64, Dtype::I32, Dtype::I64, Dtype::U32, Dtype::U64});
    std::vector<Dtype> terms;
    for (const Dtype other : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::I64, Dtype::I32, Dtype::I16, Dtype::I8, Dtype::U64, Dtype::U32, Dtype::U16, Dtype::U8})
      if (holds(dtype, other)) terms.push_back(other);
    const std::vector<std::string> shape = draw_shape(0, false);
    Statement statement = begin(false, dtype, shape);
    const DrawnIndex k{scope_.fresh_index(), scope_.dim()};
    Term reduction = make_term(TermKind::Reduction, random_.pick({"sum", "prod", "max", "min"}) + ("." + std::string(info(dtype).name)), {});
    reduction.ranges = {Range{k.name, {literal("0"), literal(k.extent)}, false}};
    scope_.indices.push_back(k);
    ++scope_.reductions;
    reduction.kids = {draw_access(scope_, random_.pick(terms))};
    --scope_.reductions;
    statement.value = std::move(reduction);
    finish(std::move(statement), dtype, shape);
  }

  // A sum over a window, or some shifts, of one tensor.
  void add_stencil() {
    const Dtype dtype = random_.pick({Dtype::F32, Dtype::F32, Dtype::F16, Dtype::I32, Dtype::U8, Dtype::F64});
    const std::size_t rank = 1 + random_.below(2);
    std::vector<std::string> shape;
    for (std::size_t n = 0; n < rank; ++n) shape.push_back(scope_.dim());
    const bool is_let = random_.chance(20);
    Statement statement = begin(is_let, dtype, shape);
    const std::string source = scope_.tensor(dtype, shape).name;
    if (random_.chance(50)) {
      std::string rule = random_.pick({"clamp", "wrap", "mirror", "0", "1", "skip"});
      Term read = make_term(TermKind::Access, source, {});
      Term reduction = make_term(TermKind::Reduction, random_.pick({"sum", "sum", "max", "min", "mean"}), {});
      if (!is_float(dtype) && reduction.text == "mean") reduction.text = "sum";
      for (std::size_t n = 0; n < rank; ++n) {
        const std::string window = scope_.fresh_index();
        Range range{window, {literal("-1"), literal(random_.pick({"1", "2"}))}, true};
        if (random_.chance(40)) range = Range{window, {literal("0"), literal(random_.pick({"2", "3"}))}, false};
        reduction.ranges.push_back(range);
        read.kids.push_back(binary("+", statement.index[n], literal(window)));
      }
      read.rule = rule;
      reduction.kids = {random_.chance(70) ? read : binary("*", read, literal(random_.pick({"2", "3"})))};
      statement.value = std::move(reduction);
    } else {
      const std::string rule = random_.pick({"clamp", "wrap", "mirror", "0", "2"});
      for (std::size_t shift = 0; shift < 2 + random_.below(2); ++shift) {
        Term read = make_term(TermKind::Access, source, {});
        for (std::size_t n = 0; n < rank; ++n) read.kids.push_back(binary(random_.pick({"+", "-"}), statement.index[n], literal(std::to_string(random_.below(3)))));
        read.rule = rule;
        statement.value = shift == 0 ? read : binary(random_.pick({"+", "-", "*"}), std::move(statement.value), std::move(read));
      }
    }
    const bool is_narrow_integer = !is_float(dtype) && info(dtype).bits < 32;
    if (is_let && is_narrow_integer) statement.dtype = info(dtype).name;
    finish(std::move(statement), dtype, shape);
  }

  // H[X[i]] += …
  void add_scatter() {
    const Dtype dtype = random_.pick({Dtype::I32, Dtype::I32, Dtype::F32, Dtype::F32, Dtype::I64, Dtype::U32, Dtype::F64, Dtype::U64, Dtype::Bool});
    const std::string bins = random_.chance(40) ? random_.pick({"8", "16"}) : scope_.dim();
    Statement statement = begin(false, dtype, {});
    std::string op = random_.pick({"+", "+", "+", "max", "min", "*"});
    if (dtype == Dtype::Bool || (!is_float(dtype) && random_.chance(15))) op = random_.pick({"&", "|"});
    statement.op = op + "=";
    const DrawnIndex along{scope_.fresh_index(), scope_.dim()};
    scope_.indices = {along};
    std::vector<std::string> shape = {bins};
    if (random_.chance(20)) {
      const DrawnIndex plain{scope_.fresh_index(), scope_.dim()};
      scope_.indices.push_back(plain);
      shape.push_back(plain.extent);
    }
    const DrawnTensor keys = scope_.tensor(random_.pick({Dtype::I32, Dtype::U8, Dtype::I64}), {along.extent});
    Term key = access(keys.name, {along.name});
    if (random_.chance(20)) key = random_.pick<Term>({binary("*", literal("2"), literal(along.name)), binary("+", literal(along.name), literal("1")), binary("/", std::move(key), literal("2"))});
    statement.index = {std::move(key)};
    if (shape.size() == 2) statement.index.push_back(literal(scope_.indices[1].name));
    statement.ranges.assign(statement.index.size(), Range{});
    if (random_.chance(50)) statement.rule = "skip";
    statement.value = dtype == Dtype::Bool ? draw_condition(scope_, 1) : random_.chance(30) ? draw_number(scope_, dtype) : draw_value(scope_, dtype, static_cast<int>(random_.below(2)));
    const Statement copy = statement;
    const bool has_second = random_.chance(15);
    finish(std::move(statement), dtype, shape);
    if (has_second) {
      statements_.push_back(copy);
    }
  }

  // S[i] += …: a reduction over the other indices.
  void add_update() {
    const Dtype dtype = random_.pick({Dtype::F32, Dtype::F32, Dtype::I32, Dtype::F16, Dtype::F64, Dtype::I64});
    const std::vector<std::string> shape = draw_shape(0, false);
    Statement statement = begin(false, dtype, shape);
    statement.op = random_.pick({"+=", "+=", "max=", "min=", "*="});
    if (!is_float(dtype) && random_.chance(20)) statement.op = random_.pick({"&=", "|="});
    scope_.indices.push_back(DrawnIndex{scope_.fresh_index(), scope_.dim()});
    std::vector<std::string> extents, names;
    for (const DrawnIndex& index : scope_.indices) {
      extents.push_back(index.extent);
      names.push_back(index.name);
    }
    Term term = access(scope_.tensor(dtype, extents).name, names);
    statement.value = random_.chance(60) ? term : binary(random_.pick({"+", "*"}), term, draw_operand(scope_, is_narrow_float(dtype) ? Dtype::F32 : dtype, 1));
    finish(std::move(statement), dtype, shape);
  }

  // E[n, d] = T[ids[n], d]
  void add_gather() {
    const Dtype dtype = draw_dtype();
    const std::vector<std::string> shape = {scope_.dim(), scope_.dim()};
    Statement statement = begin(random_.chance(30), dtype, shape);
    const DrawnTensor ids = scope_.tensor(random_.pick({Dtype::I32, Dtype::I64, Dtype::U8}), {shape[0]});
    const DrawnTensor table = scope_.tensor(dtype, {scope_.extent(), shape[1]});
    Term read = make_term(TermKind::Access, table.name, {access(ids.name, {scope_.indices[0].name}), literal(scope_.indices[1].name)});
    if (random_.chance(50)) read.rule = random_.pick({"clamp", "wrap", "mirror"});
    statement.value = std::move(read);
    finish(std::move(statement), dtype, shape);
  }

  void add_reshape() {
    const Dtype dtype = draw_dtype();
    const std::string rows = scope_.dim(), columns = random_.chance(50) ? scope_.dim() : random_.pick({"3", "4", "8"});
    const DrawnTensor matrix = scope_.tensor(dtype, {rows, columns});
    if (random_.chance(60)) {
      const std::vector<std::string> shape = {rows + "*" + columns};
      Statement statement = begin(random_.chance(30), dtype, shape);
      const Term p = statement.index[0];
      statement.value = make_term(TermKind::Access, matrix.name, {binary("/", p, literal(columns)), binary("%", p, literal(columns))});
      return finish(std::move(statement), dtype, shape);
    }
    const DrawnTensor other = scope_.tensor(dtype, {columns});
    const std::vector<std::string> shape = {rows + " + " + columns};
    Statement statement = begin(random_.chance(30), dtype, shape);
    const Term p = statement.index[0];
    const DrawnTensor first = scope_.tensor(dtype, {rows});
    statement.value = make_term(TermKind::If, "", {make_term(TermKind::Compare, "<", {p, literal(rows)}), make_term(TermKind::Access, first.name, {p}), make_term(TermKind::Access, other.name, {binary("-", p, literal(rows))})});
    finish(std::move(statement), dtype, shape);
  }

  void add_inout() {
    const Dtype dtype = random_.pick({Dtype::F32, Dtype::F32, Dtype::I32, Dtype::F16, Dtype::U8, Dtype::F64});
    const std::vector<std::string> shape = draw_shape(1, false);
    const std::string name = fmt::format("U{}", scope_.inputs.size());
    scope_.inputs.push_back(Parameter{ParamKind::InOut, name, dtype, shape});
    Statement statement = begin(false, dtype, shape);
    statement.target = name;
    scope_.own_target = name;
    std::vector<std::string> names;
    for (const Term& index : statement.index) names.push_back(index.text);
    const Dtype value = is_narrow_float(dtype) ? Dtype::F32 : dtype;
    if (random_.chance(50)) {
      statement.value = binary(random_.pick({"+", "*", "-"}), access(name, names), draw_value(scope_, value, 1));
    } else {
      statement.op = random_.pick({"+=", "max=", "min="});
      scope_.indices.push_back(DrawnIndex{scope_.fresh_index(), scope_.dim()});
      std::vector<std::string> extents = shape;
      extents.push_back(scope_.indices.back().extent);
      names.push_back(scope_.indices.back().name);
      statement.value = access(scope_.tensor(dtype, extents).name, names);
    }
    statements_.push_back(std::move(statement));
    scope_.indices.clear();
    scope_.own_target.clear();
    if (random_.chance(60)) scope_.declare(DrawnTensor{name, dtype, shape});
  }

  // y[r] = sum[p in ptr[r]..ptr[r + 1]] val[p] * x[col[p]]
  void add_sparse() {
    const Dtype dtype = random_.pick({Dtype::F32, Dtype::F32, Dtype::F64, Dtype::F16, Dtype::I32});
    const std::string rows = scope_.dim(), entries = scope_.dim();
    Statement statement = begin(random_.chance(20), dtype, {rows});
    const std::string row = statement.index[0].text;
    const DrawnTensor bounds = scope_.tensor(Dtype::I32, {rows + " + 1"});
    const DrawnTensor columns = scope_.tensor(Dtype::I32, {entries}), values = scope_.tensor(dtype, {entries}), x = scope_.tensor(dtype, {scope_.dim()});
    const std::string p = scope_.fresh_index();
    Term gathered = make_term(TermKind::Access, x.name, {access(columns.name, {p})});
    if (random_.chance(50)) gathered.rule = random_.pick({"0", "skip", "clamp"});
    Term reduction = make_term(TermKind::Reduction, random_.pick({"sum", "max"}), {binary("*", access(values.name, {p}), std::move(gathered))});
    Term next = make_term(TermKind::Access, bounds.name, {binary("+", literal(row), literal("1"))});
    reduction.ranges = {Range{p, {access(bounds.name, {row}), std::move(next)}, false}};
    statement.value = std::move(reduction);
    finish(std::move(statement), dtype, {rows});
  }

  // Every dim needs an input that says it.
  void bind_dims() {
    for (const std::string dim : {"M", "N", "K", "P"}) {
      bool is_used = false, is_bound = false;
      const auto look = [&](const std::vector<Parameter>& params, bool are_inputs) {
        for (const Parameter& param : params)
          for (const std::string& extent : param.shape) {
            is_used |= extent.find(dim) != std::string::npos;
            is_bound |= are_inputs && extent == dim;
          }
      };
      look(scope_.inputs, true);
      look(scope_.outputs, false);
      for (const Statement& statement : statements_) is_used |= print(statement).find(dim) != std::string::npos;
      if (is_used && !is_bound) scope_.inputs.push_back(Parameter{ParamKind::In, "Z" + dim, Dtype::F32, {dim}});
    }
  }

  Random& random_;
  Scope scope_;
  std::vector<Function> helpers_;
  std::vector<Statement> statements_;
};

}  // namespace

FuzzProgram draw_program(Random& random, bool has_products) { return ProgramDraw(random).run(has_products); }

}  // namespace tilewright::fuzz
