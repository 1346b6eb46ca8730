// Contiguity and alignment of accesses.
#include "passes/schedule/vector_access.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace tilewright {

VectorAccess::VectorAccess(const Plan& plan, std::vector<Buffer> buffers, std::int64_t width)
    : plan_(plan), flattener_(plan, std::move(buffers)), divisors_(divisors_of(plan.facts)), width_(width) {}

namespace {

bool starts_at_multiple(const Expr& index, const std::string& loop, std::int64_t width, const Divisors& divisors) {
  auto linear = linear_in(index, loop);
  return linear && linear->coefficient == 1 && known_divisor(linear->rest, divisors) % width == 0;
}

}  // namespace

bool VectorAccess::is_contiguous(const Access& access, const std::string& loop) const {
  if (access.index.empty()) return false;
  for (const Expr& index : access.index)
    if (index->dtype != Dtype::Index) return false;
  if (is_buffer(access.buffer)) {
    Access first = access;
    const Buffer* buffer = flattener_.find(access.buffer);
    if (has_slots(*buffer)) {
      std::int64_t slot = buffer->layout ? buffer->layout->axes[0].factors.back().stride : 1;
      if (slot % width_ != 0) return false;
      first.index[0] = integer(0);
    }
    return buffer->space == Space::Shared && starts_at_multiple(flattener_.flat_index(first), loop, width_, divisors_);
  }
  auto tensor = find_tensor(plan_, access.buffer);
  if (access.rule.kind != Rule::Kind::None || !tensor) return false;
  if (auto row = integer_value(tensor->shape.back()); row && *row % width_ != 0) return false;
  for (std::size_t d = 0; d + 1 < access.index.size(); ++d)
    if (uses_var(access.index[d], loop)) return false;
  return starts_at_multiple(access.index.back(), loop, width_, divisors_);
}

void VectorAccess::need_facts(const Access& access, Dtype dtype) {
  if (is_buffer(access.buffer)) return;
  auto tensor = find_tensor(plan_, access.buffer);
  auto add = [&](std::string clause, std::string reason) {
    if (std::find(missing_.begin(), missing_.end(), clause) != missing_.end()) return;
    missing_.push_back(std::move(clause));
    reasons_.push_back(std::move(reason));
  };
  const Expr& last = tensor->shape.back();
  if (known_divisor(last, divisors_) % width_ != 0)
    add(fmt::format("{} % {} == 0", print(last), width_),
        fmt::format("the rows of `{}` have `{}` elements, which need not be a multiple of {}", access.buffer,
                    print(last), width_));
  std::int64_t bytes = std::min<std::int64_t>(16, width_ * bytes_of(dtype));
  bool temporary =
      std::any_of(plan_.temps.begin(), plan_.temps.end(), [&](const Temp& temp) { return temp.name == access.buffer; });
  bool aligned = temporary || std::any_of(plan_.facts.begin(), plan_.facts.end(), [&](const Fact& fact) {
                   return fact.kind == Fact::Kind::Aligned && fact.alignment % bytes == 0;
                 });
  if (!aligned)
    add(fmt::format("aligned {}", bytes),
        fmt::format("`{}` need not start at a multiple of {} bytes", access.buffer, bytes));
}

void VectorAccess::refuse_missing_facts(Span at) const {
  if (missing_.empty()) return;
  std::string clauses;
  for (const std::string& clause : missing_) clauses += (clauses.empty() ? "" : ", ") + clause;
  throw UserError(at, fmt::format("vectors of {} elements: {}", width_, reasons_[0]),
                  fmt::format("add `when {}` to the schedule", clauses));
}

}  // namespace tilewright
