// Makes small what fails the verification of a pass: statements, terms, schedule lines, sizes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/library/rungs.h"
#include "runtime/library/session.h"

namespace tilewright {

struct FailingCase {
  TensorFn fn;
  std::string schedule;  // its name
  std::string arch;
  std::vector<Fact> when;
  std::vector<ScheduleLine> lines;
  CallClass call_class;
  DimMap dims;
  std::string pass;  // the one that changes the result
};

// Tries smaller cases one by one, as long as one fails: `still_fails` builds it anew and compares. At most `most_tries`.
FailingCase shrink_failure(const FailingCase& failing, const std::function<bool(const FailingCase&)>& still_fails, int most_tries = 400);

}  // namespace tilewright
