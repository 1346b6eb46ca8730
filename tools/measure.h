// Candidates for one job (rungs, both generators, hand kernels, a library): compiled, checked and timed side by side.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/library/verdict.h"
#include "runtime/timing.h"
#include "tools/options.h"

namespace tilewright {

enum class RowKind : std::uint8_t { Rung, Hand, Library };

// One row of a ladder or a comparison.
struct MeasuredRow {
  RowKind kind = RowKind::Rung;
  std::string name;               // the line, the label of the hand kernel, "cuBLAS"
  std::string backend;            // "nvrtc", "llvm", empty for libraries
  std::optional<Timing> timing;   // where there is a GPU
  int registers = 0;
  int spill_bytes = 0;
  std::int64_t shared_bytes = 0;
  int kernels = 0;
  double generate_ms = 0;
  double compile_ms = 0;
  bool same_code = false;         // as the row before it
  std::string check;              // "right", what is wrong, or why it was not checked
  bool is_wrong = false;
  std::string note;               // "absent: …"
};

// The bench of the fn by name, the first without a name; null where it has none.
const BenchItem* choose_bench(const Program& program, const TensorFn& fn, const std::string& name);
// `--set` and `--in` as given; without any size, those of the bench (for=small: the small defaults).
Settings bench_settings(const Options& options, const Program& program, const TensorFn& fn, const BenchItem** bench);

struct MeasureRequest {
  bool every_rung = true;               // else the last one
  std::vector<Backend> backends = {Backend::Nvrtc};
  bool hand = false;                    // the hand kernels of the program
  std::string hand_file;                // and the reader's own
  std::vector<std::string> others;      // schedules by name and plan files (.ir), finished and timed beside it
  bool library = false;
  TimingOptions timing;
  bool check = true;
};

struct Measurement {
  std::string fn;
  std::string schedule;
  std::string bench;
  DimMap dims;
  std::string device;   // the GPU's name, or "no GPU"
  std::string arch;
  DimMap check_dims;    // where correctness was looked at, on a machine without a GPU
  std::vector<MeasuredRow> rows;
};
Measurement measure(const Options& options, const LoadedProgram& loaded, const MeasureRequest& request);

// Small sizes that the facts of a schedule allow: about `about`, and multiples where a fact says so.
DimMap small_dims(const TensorFn& fn, const std::vector<Fact>& facts, std::int64_t about);

std::string table_of(const Measurement& measurement);
std::string json_of(const Measurement& measurement);

}  // namespace tilewright
