// What the copy engine (`tma`) and `cp.async` need of a copy between a tensor and shared memory, and of a call.
#pragma once

#include <string>
#include <vector>

#include "passes/pass.h"

namespace tilewright {

class AsynchronousCopies {
 public:
  // `mechanism`: `tma` or `cp.async`, as stands at `span`. Refuses an architecture without it, with the cure.
  AsynchronousCopies(const Plan& plan, const Target& target, std::string mechanism, Span span, const std::string& cure);

  // Refuses a copy that the mechanism cannot do, whatever the call; notes what it needs of a call. `tile` is the shared
  // buffer, without an axis of slots.
  void need(const Copy& copy, const Buffer& tile);
  // Refuses with the clauses to add, where the plan's facts lack any.
  void refuse_missing_facts() const;

 private:
  void need_box(const Copy& copy, const Buffer& tile, bool loads);
  void need_neighbours(const Copy& copy, const Buffer& tile) const;
  void need_fact(const std::string& clause, const std::string& reason);
  bool is_aligned(std::int64_t bytes) const;

  const Plan& plan_;
  const Target& target_;
  std::string mechanism_;
  Span span_;
  std::vector<std::string> missing_;
  std::vector<std::string> reasons_;
};

}  // namespace tilewright
