// From counts to least times; see parts.h and docs/ladder.md.
#include "runtime/library/ladder/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

using Names = std::vector<std::pair<std::string, std::int64_t>>;

double extent_of(const Axis& axis, const Names& dims) {
  const double lo = axis.lo ? static_cast<double>(evaluate_index(axis.lo, dims)) : 0;
  return std::max(0.0, static_cast<double>(evaluate_index(axis.hi, dims)) - lo);
}

// Arithmetic of floats and integers in one evaluation, indices apart.
double operations_in(const Expr& expr, const Names& dims) {
  if (!expr) return 0;
  if (const Reduce* reduction = as<Reduce>(expr)) {
    double terms = 1;
    for (const Axis& axis : reduction->axes) terms *= extent_of(axis, dims);
    return terms * (operations_in(reduction->body, dims) + 1);
  }
  double cost = 0;
  if (const Binary* node = as<Binary>(expr)) cost = 1 + operations_in(node->lhs, dims) + operations_in(node->rhs, dims);
  if (const Unary* node = as<Unary>(expr)) cost = 1 + operations_in(node->operand, dims);
  if (const Cast* node = as<Cast>(expr)) cost = operations_in(node->operand, dims);
  if (const Select* node = as<Select>(expr)) cost = 1 + operations_in(node->condition, dims) + std::max(operations_in(node->if_true, dims), operations_in(node->if_false, dims));
  if (const Call* node = as<Call>(expr)) {
    cost = 1;
    for (const Expr& argument : node->arguments) cost += operations_in(argument, dims);
  }
  return cost;
}

double bytes_of_shape(Dtype dtype, const std::vector<Expr>& shape, const Names& dims) {
  double bytes = bytes_of(dtype);
  for (const Expr& extent : shape) bytes *= static_cast<double>(evaluate_index(extent, dims));
  return bytes;
}

// What the PTX says that must be issued, whatever the assembler makes of addresses and loops.
struct Issued {
  double f32 = 0, f64 = 0, special = 0, others = 0;
};

bool has_word(const std::string& text, std::string_view word) { return ("." + text + ".").find("." + std::string(word) + ".") != std::string::npos; }

Issued issued_of(const ptx::Counts& counts) {
  Issued sum;
  for (const auto& [text, count] : counts.by_text) {
    const std::string op = text.substr(0, text.find('.'));
    const auto number = static_cast<double>(count);
    const bool is_arithmetic = op == "fma" || op == "add" || op == "sub" || op == "mul" || op == "mad";
    const bool is_special = op == "ex2" || op == "lg2" || op == "sin" || op == "cos" || op == "tanh" || ((op == "rcp" || op == "rsqrt" || op == "sqrt" || op == "div") && has_word(text, "approx"));
    if (is_arithmetic && has_word(text, "f32")) sum.f32 += number;
    else if (is_arithmetic && has_word(text, "f64")) sum.f64 += number;
    else if (is_special) sum.special += number;
    else if (op == "bar" || op == "barrier" || op == "shfl" || op == "vote" || op == "mma" || op == "ldmatrix" || op == "stmatrix") sum.others += number;
  }
  for (const auto& [number, access] : counts.accesses) sum.others += static_cast<double>(access.requests);
  return sum;
}

std::string remark_of(const AccessRow& access) {
  if (access.requests <= 0) return "";
  if (access.space == "shared") {
    if (access.passes < 1.2 * access.passes_needed) return "";
    return fmt::format("{:.1f} passes a request, {:.1f} would do: lanes of a warp want different words of one bank; pad the rows, or let neighbours in memory be neighbours in the warp",
                       access.passes / access.requests, access.passes_needed / access.requests);
  }
  if (access.sectors < 2 * access.sectors_needed || access.sectors < 8 * access.requests) return "";
  return fmt::format("{:.1f} sectors a request of a warp, {:.1f} would do: neighbouring lanes are no neighbours along the last index of `{}`: bind that index to thread.x, or let what a thread owns be a vector", access.sectors / access.requests,
                     access.sectors_needed / access.requests, access.tensor);
}

void add_accesses(LadderRow& row, const GridCounts& kernel) {
  for (const auto& [number, counts] : kernel.counts.accesses) {
    AccessRow access;
    const auto place = kernel.places.find(number);
    if (place != kernel.places.end()) access.text = place->second.text, access.line = place->second.line;
    access.space = counts.space == ptx::Space::Shared ? "shared" : "global";
    access.tensor = counts.region;
    access.is_store = counts.is_store;
    access.bytes = counts.bytes;
    access.requests = static_cast<double>(counts.requests);
    access.sectors = static_cast<double>(counts.sectors);
    access.sectors_needed = static_cast<double>(counts.sectors_needed);
    access.passes = static_cast<double>(counts.passes);
    access.passes_needed = static_cast<double>(counts.passes_needed);
    // Instructions of one line that do the same, as an unrolled loop makes them, are one row.
    const auto like = std::find_if(row.accesses.begin(), row.accesses.end(), [&](const AccessRow& each) {
      return each.line == access.line && each.text == access.text && each.space == access.space && each.tensor == access.tensor && each.bytes == access.bytes;
    });
    if (like == row.accesses.end()) {
      row.accesses.push_back(std::move(access));
      continue;
    }
    like->requests += access.requests;
    like->sectors += access.sectors;
    like->sectors_needed += access.sectors_needed;
    like->passes += access.passes;
    like->passes_needed += access.passes_needed;
  }
  for (AccessRow& access : row.accesses) access.remark = remark_of(access);
}

}  // namespace

Work work_of(const TensorFn& fn, const Sizes& sizes) {
  const Names dims(sizes.begin(), sizes.end());
  Work work;
  bool has_operand = false;
  for (const Param& param : fn.params) {
    work.bytes += bytes_of_shape(param.dtype, param.shape, dims) * (param.kind == ParamKind::InOut ? 2 : 1);
    if (param.kind != ParamKind::Out && !param.shape.empty() && !has_operand) work.operand = param.dtype, has_operand = true;
  }
  try {
    for (const TensorStmt& stmt : fn.statements) {
      double points = 1;
      for (const Axis& axis : stmt.axes) points *= extent_of(axis, dims);
      work.operations += points * std::max(stmt.combine ? 1.0 : 0.0, operations_in(stmt.value, dims));
    }
  } catch (const UserError&) {  // a bound that a tensor holds
    work.operations = 0;
  }
  return work;
}

void add_parts(LadderRow& row, const Work& work, const std::vector<GridCounts>& counts, const Card& card, bool uses_tensor_cores) {
  row.parts.clear();
  row.not_counted.clear();
  row.accesses.clear();
  const auto add = [&](std::string name, double amount, std::string unit, double rate, std::string how) {
    if (amount > 0 && rate > 0) row.parts.push_back({std::move(name), amount, std::move(unit), rate, amount / rate * 1e3, std::move(how)});
  };
  add("DRAM", work.bytes, "bytes", card.dram_tb * 1e12, "inputs once, outputs once");

  double l2 = 0, passes = 0;
  Issued issued;
  double fewest_sms = card.sms;  // a grid smaller than the card leaves SMs idle
  bool is_counted = !counts.empty();
  std::string how;
  for (const GridCounts& kernel : counts) {
    is_counted &= kernel.is_counted;
    how += (how.empty() ? "" : "; ") + kernel.how;
    if (!kernel.is_counted) continue;
    fewest_sms = std::min(fewest_sms, static_cast<double>(std::max<std::int64_t>(1, kernel.blocks)));
    l2 += 32.0 * static_cast<double>(kernel.counts.sectors_loaded + kernel.counts.sectors_stored);
    for (const auto& [number, access] : kernel.counts.accesses) passes += static_cast<double>(access.passes);
    const Issued one = issued_of(kernel.counts);
    issued.f32 += one.f32, issued.f64 += one.f64, issued.special += one.special, issued.others += one.others;
    add_accesses(row, kernel);
  }
  const double clock = card.clock_ghz * 1e9;
  if (is_counted) {
    if (card.l2_bytes_a_clock > 0) add("L2", l2, "bytes", card.l2_bytes_a_clock * clock, "each block fetches a sector once; " + how);
    else row.not_counted.push_back(fmt::format("L2: its rate on this card is not known ({} bytes, where each block fetches a sector once)", number_text(l2)));
    add("L1/shared", passes, "passes", fewest_sms * card.passes_a_clock * clock, how);
    add("issue", issued.f32 + issued.f64 + issued.special + issued.others, "instructions", fewest_sms * 4 * clock, "arithmetic of floats, accesses and barriers; not addresses and loops; " + how);
    add("FP32", 32 * issued.f32, "operations", fewest_sms * card.f32_lanes * clock, how);
    if (card.f64_lanes > 0) add("FP64", 32 * issued.f64, "operations", fewest_sms * card.f64_lanes * clock, how);
    add("special", 32 * issued.special, "operations", fewest_sms * 16 * clock, how);
  } else {
    row.not_counted.push_back(fmt::format("L2, L1/shared, issue, FP32: {}", how.empty() ? "nothing was run" : how));
  }
  if (uses_tensor_cores) {
    const double rate = tensor_rate(card, work.operand);
    if (rate > 0 && work.operations > 0) add("tensor", work.operations, "operations", rate, "the definition's products and sums");
    else row.not_counted.push_back(fmt::format("tensor: no rate of {} on this card", info(work.operand).name));
  }
  const auto largest = std::max_element(row.parts.begin(), row.parts.end(), [](const Part& a, const Part& b) { return a.least_ms < b.least_ms; });
  row.busiest = largest == row.parts.end() ? "" : largest->name;
  row.least_ms = largest == row.parts.end() ? 0 : largest->least_ms;
}

}  // namespace tilewright
