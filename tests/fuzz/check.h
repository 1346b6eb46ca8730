// One program with its schedule, run by everything that can run it, each result compared with the definition's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/library/rungs.h"
#include "runtime/library/session.h"
#include "tests/fuzz/data.h"
#include "tests/fuzz/tally.h"

namespace tilewright::fuzz {

// What went wrong. `kind` says where, in words that stay the same while the case shrinks: `sim differs`, `internal error`.
struct Finding {
  std::string kind;
  std::string text;
};

// Which devices a case runs on, besides the oracle and the tile interpreter.
struct Devices {
  bool cpu = true;
  bool sim = true;
  bool ptx = false;   // both generators' PTX on the PTX machine
  bool cuda = false;  // both generators on a GPU
  int sim_orders = 2;
};

struct Compiled {
  TensorFn fn;
  std::vector<Rung> rungs;
  std::map<std::size_t, Plan> finished;  // thread stages that run, by their rung
};

// Reads a program's text with its schedule `drawn`. Nothing, where the language or a pass refuses it (`refusal` says why).
// Throws Finding where something else goes wrong.
std::optional<Compiled> compile(const std::string& text, int index_bits, std::string* refusal = nullptr);
// The thread stage; nothing where a finishing pass refuses the plan.
std::optional<Plan> finished_plan(const Plan& plan, std::string* refusal = nullptr);

struct Run {
  DimMap dims;
  Data data = Data::Random;
  std::uint64_t seed = 1;
};

// Throws Finding for a difference, a broken promise, or an error that no input may cause. Gives false where the run is too
// long to be compared.
bool check_run(const Compiled& compiled, const Run& run, const Devices& devices, Tally& tally);

}  // namespace tilewright::fuzz
