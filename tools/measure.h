// Candidates for one job, compiled, checked, counted and timed side by side: what ladder, compare, bench and report share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/library/ladder/ladder.h"
#include "tools/options.h"

namespace tilewright {

// The bench of the fn by name, the first without a name; null where it has none.
const BenchItem* choose_bench(const Program& program, const TensorFn& fn, const std::string& name);
// `--set` and `--in` as given; without any size, those of the bench (for=small: the small defaults).
Settings bench_settings(const Options& options, const Program& program, const TensorFn& fn, const BenchItem** bench);

// `T=8,16,32`: a parameter of a schedule, and the values that it takes.
struct Sweep {
  std::string name;
  std::vector<std::int64_t> values;
};

struct MeasureRequest {
  std::string verb;
  bool every_rung = true;               // else the last one
  bool every_schedule = false;          // the lowered plan, then the last rung of each schedule of the fn
  std::optional<Sweep> sweep;           // the last rung for each value
  std::vector<Backend> backends = {Backend::Nvrtc};
  bool both_compile_times = false;      // a row's code by the other generator too, for the time that it takes
  bool loops = false;                   // the plain loops on this host, on one core and on all
  bool hand = false;                    // the hand kernels of the program
  std::string hand_file;                // and the reader's own
  std::vector<std::string> others;      // schedules by name and plan files (.ir), finished and timed beside it
  bool with_library = false;
  bool instructions = false;            // how often the SASS holds those that matter
  bool parts = false;                   // them, counts, and the least time of each part of a card
  bool code = false;                    // the texts
  TimingOptions timing;
  bool check = true;
};

Ladder measure(const Options& options, const LoadedProgram& loaded, const MeasureRequest& request);

// The whole ladder of a command; `with_code`: the texts of each row too.
Ladder ladder_of(const Options& options, bool with_code);

// Rows of other programs on the same job, from a file that peers.py wrote: {"device": …, "rows": [{"name", "peer", "ms"}]}.
// Says where there are none for this bench, or where they come from another device.
void add_peers(Ladder& ladder, const std::string& file);

// Small sizes that the facts of a schedule allow: about `about`, and multiples where a fact says so.
DimMap small_dims(const TensorFn& fn, const std::vector<Fact>& facts, std::int64_t about);

}  // namespace tilewright
