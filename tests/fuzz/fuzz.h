// One case: program, schedule, shapes and data; drawn from one number, or read from a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/check.h"
#include "tests/fuzz/draw_refusal.h"

namespace tilewright::fuzz {

// What a case's file says besides the program: how it is run.
struct Runs {
  int index_bits = 32;
  std::vector<Run> runs;
};

struct Case {
  FuzzProgram program;
  int index_bits = 32;
  std::vector<Run> runs;
};

struct FailedCase {
  Case drawn;
  Finding finding;
};

// Draws case `number` of a run; without runs where the frontend refuses the program. What goes wrong on the way is a finding.
Case draw_case(std::uint64_t seed, std::uint64_t number, Tally& tally, std::optional<Finding>* finding);
// Draws it and checks it. Of `devices`, the slower ones check a share of the cases.
std::optional<FailedCase> draw_and_check(std::uint64_t seed, std::uint64_t number, const Devices& devices, Tally& tally);

// A refusal of the tests, `number` of the cases in turn: as it stands, or one time in three with something changed.
std::optional<Finding> draw_and_check_refusal(std::uint64_t seed, std::uint64_t number, const std::vector<RefusalCase>& cases, Tally& tally);

// The finding of a case as it stands; nothing where all is well, or where the program is refused.
std::optional<Finding> check_case(const Case& drawn, const Devices& devices, Tally& tally);

// The file of a case: the program, behind comments that say how it is run,
//
//   // run: M=3,N=5 data special seed 7
//   // index: 64
std::string to_text(const Case& drawn);
// Throws UserError for a run that is none.
Runs read_runs(const std::string& text);
// The same for a file's text. `refusal` gets why the program was refused.
std::optional<Finding> check_text(const std::string& text, const Devices& devices, Tally& tally, std::string* refusal = nullptr);

// The devices that a finding of this kind needs to be seen again.
Devices devices_for(const std::string& kind);

}  // namespace tilewright::fuzz
