// The verifier: what a plan must satisfy at each stage beyond its grammar. This file: names, plan and headers.
#include "ir/verifier.h"

#include <fmt/format.h>

#include <set>

#include "ir/operators.h"
#include "ir/printer.h"

namespace tilewright {

namespace {

constexpr std::size_t most_faults = 50;
constexpr std::int64_t most_threads = 1024;

std::string first_line(const Stmt& stmt) {
  std::string text = print(stmt);
  text = text.substr(0, text.find('\n'));
  constexpr std::size_t widest = 160;
  return text.size() > widest ? text.substr(0, widest) + " …" : text;
}

std::int64_t product(const std::vector<std::int64_t>& list) {
  std::int64_t result = 1;
  for (std::int64_t item : list)
    if (item > 0 && result < (std::int64_t{1} << 40)) result *= item;
  return result;
}

}  // namespace

void Verifier::fault(std::string message, Span span) {
  if (found_.size() >= most_faults) return;
  if (!path_.empty()) {
    message += fmt::format(" (in `{}`)", first_line(*path_.back()));
    if (!span.is_known()) span = (*path_.back())->span;
  } else if (!tensor_stmt_.empty()) {
    message += fmt::format(" (in `{}`)", tensor_stmt_);
  } else if (kernel_) {
    message += fmt::format(" (in kernel `{}`)", kernel_->name);
  }
  for (const Diagnostic& known : found_)
    if (known.message == message) return;
  found_.push_back(Diagnostic{span, std::move(message), {}, {}});
}

// A loop variable may have the name of a tensor with axes: `e[…]` and `e` tell them apart.
void Verifier::declare(const std::string& name, Symbol symbol) {
  if (name.empty()) fault("a declaration without a name");
  if (const Symbol* known = find(name)) {
    const bool is_variable = symbol.kind == Kind::Loop || symbol.kind == Kind::Let;
    if (known->kind != Kind::Tensor || known->rank == 0 || !is_variable) fault(fmt::format("`{}` is declared twice", name));
  }
  replace(name, symbol);
}

void Verifier::replace(const std::string& name, Symbol symbol) {
  symbols_[name].push_back(symbol);
  declared_.push_back(name);
}

const Verifier::Symbol* Verifier::find(const std::string& name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() || found->second.empty() ? nullptr : &found->second.back();
}

const Verifier::Symbol* Verifier::find_buffer(const std::string& name) const {
  const auto found = symbols_.find(name);
  if (found == symbols_.end()) return nullptr;
  for (auto symbol = found->second.rbegin(); symbol != found->second.rend(); ++symbol)
    if (symbol->kind == Kind::Tensor || symbol->kind == Kind::Register || symbol->kind == Kind::Shared) return &*symbol;
  return nullptr;
}

void Verifier::leave_scope(std::size_t mark) {
  for (; declared_.size() > mark; declared_.pop_back()) symbols_[declared_.back()].pop_back();
}

std::vector<Diagnostic> Verifier::run() {
  if (plan_.index_bits != 32 && plan_.index_bits != 64) fault(fmt::format("`class index {}`: 32 or 64 is needed", plan_.index_bits));
  names_of_plan();
  facts();
  std::set<int> ids;
  for (const ErrorSite& site : plan_.errors) {
    if (!ids.insert(site.id).second) fault(fmt::format("access {} is listed twice in `error`", site.id));
    // Its indices are the program's, which are declared nowhere in the plan.
    const Load* load = as<Load>(site.access);
    const Symbol* tensor = load ? find_buffer(load->access.buffer) : nullptr;
    if (!tensor || tensor->rank == 0 || tensor->rank != load->access.index.size())
      fault(fmt::format("number {} in `error` is no access of a tensor", site.id));
  }
  if (plan_.error_name.empty() && !plan_.errors.empty()) fault("`error` has no name");
  std::set<std::string> kernels;
  for (const Step& item : plan_.steps)
    match_variant(
        item, [&](const Clear& clear) { step(clear); }, [&](const Table& table) { step(table); },
        [&](const Kernel& kernel) {
          if (!kernels.insert(kernel.name).second) fault(fmt::format("two kernels are named `{}`", kernel.name));
          step(kernel);
        });
  return std::move(found_);
}

void Verifier::names_of_plan() {
  for (const Dim& dim : plan_.dims) declare(dim.name, {Kind::Dim});
  for (const Dim& dim : plan_.dims) {
    if (!dim.value) continue;
    const Call* value = as<Call>(dim.value);
    if (!value || value->function != "resident")
      size_expr(dim.value, fmt::format("dim `{}`", dim.name));
    else if (value->arguments.size() != 1 || !as<Var>(value->arguments[0]))
      fault(fmt::format("dim `{}`: `resident` takes the name of a kernel", dim.name));
  }
  auto tensor = [&](const std::string& name, Dtype dtype, const std::vector<Expr>& extents, bool is_writable) {
    if (dtype == Dtype::Index || dtype == Dtype::Mbarrier) fault(fmt::format("tensor `{}` of {}", name, info(dtype).name));
    shape(extents, name);
    declare(name, {Kind::Tensor, dtype, extents.size(), nullptr, nullptr, is_writable});
  };
  for (const Param& param : plan_.params) tensor(param.name, param.dtype, param.shape, param.kind != ParamKind::In);
  for (const Temp& temp : plan_.temps) tensor(temp.name, temp.dtype, temp.shape, true);
  for (const Step& item : plan_.steps)
    if (const Table* table = std::get_if<Table>(&item)) tensor(table->name, table->dtype, table->shape, false);
}

void Verifier::size_expr(const Expr& expr, const std::string& where) {
  if (!is_integer(expr->dtype)) fault(fmt::format("{}: {} is no size", where, info(expr->dtype).name));
  walk(expr, [&](const Expr& node) {
    if (const Var* name = as<Var>(node)) {
      const Symbol* symbol = find(name->name);
      if (!symbol || symbol->kind != Kind::Dim) fault(fmt::format("{}: `{}` is no dim", where, name->name));
    }
    if (const Load* load = as<Load>(node); load && !load->access.index.empty()) fault(fmt::format("{}: a size reads tensor `{}`", where, load->access.buffer));
    return true;
  });
}

void Verifier::shape(const std::vector<Expr>& extents, const std::string& name) {
  for (const Expr& extent : extents) size_expr(extent, fmt::format("shape of `{}`", name));
}

void Verifier::facts() {
  for (const Fact& fact : plan_.facts) {
    if (fact.kind == Fact::Kind::Condition) {
      if (fact.condition->dtype != Dtype::Bool) fault(fmt::format("`when {}` is no condition", print(fact.condition)));
      check(fact.condition);
    }
    if (fact.kind == Fact::Kind::Aligned && (fact.alignment <= 0 || (fact.alignment & (fact.alignment - 1)) != 0))
      fault(fmt::format("`aligned {}`: a power of 2 is needed", fact.alignment));
  }
}

void Verifier::step(const Clear& clear) {
  const std::optional<TensorInfo> tensor = find_tensor(plan_, clear.tensor);
  if (!tensor) return fault(fmt::format("`clear {}`: no such tensor", clear.tensor));
  if (!find(clear.tensor)->is_writable) fault(fmt::format("`clear {}` writes an input", clear.tensor));
  if (clear.value->dtype != tensor->dtype)
    fault(fmt::format("`clear {}` of {} with {}", clear.tensor, info(tensor->dtype).name, info(clear.value->dtype).name));
}

void Verifier::step(const Table& table) {
  const Call* value = as<Call>(table.value);
  if (!value) return fault(fmt::format("table `{}` is no call", table.name));
  const FunctionInfo* row = find_function(value->function);
  if (!row || row->group != FunctionGroup::Structural) return fault(fmt::format("table `{}`: `{}` makes no table", table.name, value->function));
  for (const Expr& argument : value->arguments) size_expr(argument, fmt::format("table `{}`", table.name));
}

void Verifier::step(const Kernel& kernel) {
  kernel_ = &kernel;
  header(kernel);
  const std::size_t mark = declared_.size();
  for (const TensorMap& map : kernel.launch.maps) {
    const Symbol* tensor = find_buffer(map.tensor);
    if (!tensor || tensor->rank != map.box.size()) fault(fmt::format("map `{}`: `{}` is no tensor of {} axes", map.name, map.tensor, map.box.size()));
    declare(map.name, {Kind::Map, Dtype::U64});
  }
  windows_.clear();
  check(kernel.body);
  if (!continues({}, windows_)) fault("the verbs of a pipe do not match within the kernel");
  leave_scope(mark);
  kernel_ = nullptr;
}

void Verifier::header(const Kernel& kernel) {
  if (kernel.warps < 0 || kernel.warps > 32) fault(fmt::format("`warps {}`: 1 to 32 are possible", kernel.warps));
  if (kernel.block_shape.size() > 3 || product(kernel.block_shape) > most_threads)
    fault(fmt::format("`threads ({})`: at most 3 axes and 1024 threads are possible", fmt::join(kernel.block_shape, ", ")));
  for (std::int64_t extent : kernel.block_shape)
    if (extent < 1) fault(fmt::format("`threads ({})`: each at least 1", fmt::join(kernel.block_shape, ", ")));
  if (kernel.stage == Stage::Thread) return launch(kernel.launch);
  if (kernel.launch != LaunchHeader{}) fault("a kernel of the tile stage has a launch header");
}

void Verifier::launch(const LaunchHeader& launch) {
  if (launch.grid.empty() || launch.grid.size() > 3) fault("a kernel of the thread stage needs `grid` with 1 to 3 sizes");
  for (const Expr& size : launch.grid) size_expr(size, "`grid`");
  if (launch.block.empty() || launch.block.size() > 3 || product(launch.block) > most_threads)
    fault("a kernel of the thread stage needs `block` with 1 to 3 sizes and at most 1024 threads");
  for (const std::string& name : launch.arguments)
    if (!find(name)) fault(fmt::format("argument `{}` is no tensor, scalar or dim", name));
}

std::vector<Diagnostic> verify_with_places(const Plan& plan) { return Verifier(plan).run(); }

std::vector<std::string> verify(const Plan& plan) {
  std::vector<std::string> texts;
  for (Diagnostic& diagnostic : verify_with_places(plan)) texts.push_back(std::move(diagnostic.message));
  return texts;
}

Plan read_plan(const std::string& text, int file) {
  Plan plan = parse_plan(text, file);
  std::vector<Diagnostic> found = verify_with_places(plan);
  if (!found.empty()) throw UserError(std::move(found));
  return plan;
}

}  // namespace tilewright
