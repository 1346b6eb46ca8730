// How often each thing was drawn, accepted, refused, compared: the coverage of a run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/fuzz/program.h"

namespace tilewright::fuzz {

class Tally {
 public:
  void count(const std::string& category, const std::string& name, std::int64_t times = 1) { counts_[category][name] += times; }
  // Every construct, operator, function, dtype and rule of a program.
  void count(const FuzzProgram& program);
  // What a long run is to meet: zero where it never did.
  void expect(const std::string& category, const std::string& name);
  // Everything of the language and all words of schedules.
  void expect_everything();
  void add(const Tally& other);

  std::int64_t total(const std::string& category, const std::string& name) const;
  const std::map<std::string, std::int64_t>& names(const std::string& category) const;
  // A table; what is expected and below `least` is named at the end.
  std::string table(std::int64_t least) const;
  std::string to_json() const;
  static Tally from_json(const std::string& text);

 private:
  std::map<std::string, std::map<std::string, std::int64_t>> counts_;
  std::set<std::pair<std::string, std::string>> expected_;
};

// The words of a refusal with what is particular to a program left out: `A[i]` and numbers.
std::string kind_of_refusal(const std::string& message);

}  // namespace tilewright::fuzz
