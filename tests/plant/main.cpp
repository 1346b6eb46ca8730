// tilewright_plant [--verify] [FAULT …]: switches the faults of faults.txt on, one at a time, and prints which check finds each.
//
// With --verify: what `run --verify` makes of each, on the schedules of the examples, and whether its reproducer shows the fault.
//
// What no check finds and a later pass refuses is found by that: such a fault costs a program, and never its result. Exit
// status 1 where a fault is found by none, where its code is never reached, or where a pass has fewer than two.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

#include "ir/diagnostic.h"
#include "tests/plant/cases.h"
#include "tests/plant/fault_list.h"
#include "tests/plant/planted.h"
#include "tests/plant/reproduce.h"

namespace tilewright {

namespace {

struct Verdict {
  std::string found;  // by which check; empty: by none
  std::string in;     // the case
  bool reached = false;
  int cases = 0;      // whose plans it changes
};

std::string pass_of(const PlantedFault& fault) { return fault.name.substr(0, fault.name.find('.')); }

Verdict look_for(const PlantedFault& fault, std::vector<PlantCase>& cases) {
  // Cases of the pass itself first.
  std::vector<PlantCase*> order;
  for (PlantCase& test : cases) order.push_back(&test);
  const auto has_word = [&](const PlantCase* test) { return std::find(test->words.begin(), test->words.end(), pass_of(fault)) != test->words.end(); };
  std::stable_partition(order.begin(), order.end(), has_word);
  plant(fault.name);
  Verdict verdict;
  for (PlantCase* test : order) {
    const CaseOutcome outcome = run_case(*test);
    verdict.cases += outcome.changes_plan ? 1 : 0;
    verdict.reached |= was_reached();
    if (outcome.found.empty() && (outcome.refused.empty() || !verdict.found.empty())) continue;
    verdict.found = outcome.found.empty() ? "refused: " + outcome.refused : outcome.found;
    verdict.in = test->name;
    if (!outcome.found.empty()) break;
  }
  plant({});
  return verdict;
}

// Passes with fewer than two faults.
std::vector<std::string> thin_passes(const std::vector<PlantedFault>& faults) {
  std::map<std::string, int> counts;
  for (const SchedulePass& pass : schedule_passes()) counts[std::string(pass.word)] = 0;
  for (const FinishingPass& pass : finishing_passes()) counts[std::string(pass.name)] = 0;
  for (const PlantedFault& fault : faults) ++counts[pass_of(fault)];
  std::vector<std::string> thin;
  for (const auto& [pass, count] : counts)
    if (count < 2) thin.push_back(pass);
  return thin;
}

int run(const std::vector<std::string>& names) {
  const std::vector<PlantedFault> faults = read_faults(std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/plant/faults.txt");
  std::vector<PlantCase> cases = plant_cases(TILEWRIGHT_SOURCE_DIR);
  fmt::print("{} cases, each run without a fault before its first use; {} faults\n", cases.size(), faults.size());
  std::map<std::string, int> by_check;
  int missed = 0;
  for (const PlantedFault& fault : faults) {
    if (!names.empty() && std::find(names.begin(), names.end(), fault.name) == names.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    const Verdict verdict = look_for(fault, cases);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::string found = !verdict.found.empty() ? verdict.found : verdict.reached ? "NOT FOUND" : "NOT FOUND: its code is never reached";
    if (verdict.found.empty()) ++missed;
    else ++by_check[verdict.found.substr(0, verdict.found.find(':'))];
    fmt::print("{:<24} {:>4} changed {:>5.1f} s  {}{}\n", fault.name, verdict.cases, seconds, verdict.in.empty() ? "" : verdict.in + ": ", found.substr(0, 150));
    std::fflush(stdout);
  }
  for (const auto& [check, count] : by_check) fmt::print("found by {:<28} {:>3}\n", check, count);
  const std::vector<std::string> thin = names.empty() ? thin_passes(faults) : std::vector<std::string>();
  for (const std::string& pass : thin) fmt::print("`{}` has fewer than two faults\n", pass);
  fmt::print("{} faults not found\n", missed);
  return missed == 0 && thin.empty() ? 0 : 1;
}

int verify_all(const std::vector<std::string>& names) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("tilewright-plant-{}", getpid());
  int shown = 0, wrong = 0, by_verifier = 0, by_none = 0;
  for (const PlantedFault& fault : read_faults(std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/plant/faults.txt")) {
    if (!names.empty() && std::find(names.begin(), names.end(), fault.name) == names.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    const Reproduction result = reproduce(fault, TILEWRIGHT_SOURCE_DIR, folder);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const bool is_static = result.where.starts_with("the verifier");
    ++(result.in.empty() ? by_none : !result.wrong.empty() ? wrong : is_static ? by_verifier : shown);
    fmt::print("{:<24} {:>5.1f} s  {}{}\n", fault.name, seconds, result.in.empty() ? "no example shows it" : result.in + ": " + result.where,
               result.wrong.empty() ? "" : ": NOT REPRODUCED: " + result.wrong);
    std::fflush(stdout);
  }
  std::filesystem::remove_all(folder);
  fmt::print("{} reproduced, {} found by the verifier, {} shown by no example, {} not reproduced\n", shown, by_verifier, by_none, wrong);
  return wrong == 0 && shown > 0 ? 0 : 1;
}

}  // namespace

}  // namespace tilewright

int main(int count, char** arguments) {
  try {
    if (count > 1 && std::string(arguments[1]) == "--verify") return tilewright::verify_all({arguments + 2, arguments + count});
    return tilewright::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  }
}
