// The ladder as data: what every table, page, record and comparison is made from. One struct a row, one JSON schema
// (docs/ladder.md says what each field means); nothing is copied between texts, and nothing is worked out twice.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/timing.h"

namespace tilewright {

// The version of the JSON form. A reader refuses a higher one.
constexpr int ladder_version = 3;

enum class RowKind : std::uint8_t { Loops, Rung, Hand, Library, Peer };
std::string_view name_of(RowKind kind);

// What one generator took to make the code.
struct CompileTime {
  std::string backend;     // "nvrtc", "llvm", "hand"
  double generate_ms = 0;  // plan to text
  double compile_ms = 0;   // text to machine code
};

// Blocks that one SM holds at a time, and what keeps it from holding more.
struct Occupancy {
  int blocks = 0;
  int warps = 0;
  int most_warps = 0;
  std::string limit;  // "registers", "shared memory", "threads", "blocks"
};

// One part of the machine and what a row asks of it: the least time that it alone needs.
struct Part {
  std::string name;       // "DRAM", "L2", "L1/shared", "issue", "FP32", "FP64", "special", "tensor"
  double amount = 0;
  std::string unit;       // "bytes", "passes", "instructions", "operations"
  double rate = 0;        // of the whole card, a second
  double least_ms = 0;
  std::string how;        // how the amount was found
};

// What one access of a kernel asks for; counts are of the whole grid.
struct AccessRow {
  int line = 0;              // in the form `cuda` (of a hand kernel: of its file); 0: unknown
  std::string text;          // the instruction, or the access as the IR writes it
  std::string space;         // "global", "shared"
  std::string tensor;
  bool is_store = false;
  int bytes = 0;             // a lane's, the vector included
  double requests = 0;       // by warps
  double sectors = 0;
  double sectors_needed = 0;
  double passes = 0;
  double passes_needed = 0;
  std::string remark;        // a sentence where it asks for more than it needs; else empty
};

// What the simulator tells of an access of the program: every request of it, at `Ladder::note_dims`.
struct NoteRow {
  int line = 0;              // of the program; 0: unknown
  int thread_line = 0;       // in the form `thread`
  std::string text;          // as the program writes it, `B[k, j]`
  std::string space;         // "global", "shared"
  std::string kind;          // "load", "store", "atomic", …
  double requests = 0;
  double asked = 0;          // sectors, of shared memory wavefronts
  double needed = 0;
  std::string sentence;      // what is wrong; else empty
  std::string cure;          // schedule lines with which the call was counted again and is better
};

// A text of the code, with the line of the form above that each of its lines comes from (0: none; line n is origin[n - 1]).
struct Form {
  std::string name;   // "ir", "thread", "cuda", "ptx", "sass"
  std::string above;  // "program" for the IR, "ir" for the threads, "thread" for CUDA C, "cuda" for PTX and SASS
  std::string text;
  std::vector<int> origin;
};

struct LadderRow {
  RowKind kind = RowKind::Rung;
  std::string name;                // the line, the label of the hand kernel, "cuBLAS"
  std::vector<std::string> lines;  // of the schedule, that a rung stands for (since version 2)
  std::string backend;             // whose code was timed: "nvrtc", "llvm", "hand", "cpu", "library"
  std::optional<Timing> timing;    // where there is a device that times it
  std::vector<CompileTime> compile;
  int registers = 0;
  int spill_bytes = 0;
  std::int64_t shared_bytes = 0;
  int threads = 0;                 // of a block
  int kernels = 0;
  bool same_code = false;          // as the rung before it
  std::optional<Occupancy> occupancy;  // of the kernel that holds the fewest warps
  std::vector<std::pair<std::string, int>> instructions;  // of the SASS, those that matter: "HGMMA", "LDG.128"
  std::vector<Part> parts;
  std::string busiest;             // the name of the part with the largest share
  double least_ms = 0;             // what that part alone needs
  std::vector<std::string> not_counted;  // parts without a figure, and why
  std::vector<AccessRow> accesses;
  std::vector<NoteRow> notes;      // where code was asked for, of rungs (since version 3)
  std::vector<Form> forms;         // only where code was asked for
  std::string check;               // "right", what is wrong, or why it was not checked
  bool is_wrong = false;
  std::string note;                // "absent: …"
  std::string verdict;             // what this line changed, what paid and what did not
  std::string next;                // the line to try next, and why

  const Part* part(std::string_view name) const;
};

using Sizes = std::map<std::string, std::int64_t>;

struct Ladder {
  std::string verb;      // "ladder", "compare", "bench"
  std::string fn;
  std::string schedule;
  std::string bench;
  std::string program;   // its text, where code was asked for
  std::string program_file;
  Sizes dims;
  std::string device;    // the GPU's name, or why there is none
  std::string driver;
  std::string arch;
  std::string card;      // whose rates the parts are held against: "h200"
  std::string card_title;
  Sizes check_dims;      // where correctness was looked at, on a machine without a GPU
  std::optional<TimingOptions> protocol;  // how the rows of a GPU were timed (since version 2)
  Sizes note_dims;       // where the simulator counted accesses (since version 3)
  double work_operations = 0;  // of the definition; 0: not known
  double compulsory_bytes = 0; // inputs once, outputs once
  std::vector<LadderRow> rows;
};

// Fills in verdict and next of each rung from the rows.
void add_verdicts(Ladder& ladder);

std::string table_of(const Ladder& ladder);

// As text, and back. Reading throws UserError, with `where` named, for what is no ladder, is cut off, or comes from a
// later version.
std::string json_of(const Ladder& ladder);
Ladder ladder_of_json(const std::string& text, const std::string& where);

// ---- Words that the table, the page and the record share.
std::string number_text(double value);   // 16.5 G
std::string milliseconds_text(double ms);
// The row's own rate, "4.1 TFLOP/s" or "4210 GB/s"; empty without a time.
std::string rate_text(const Ladder& ladder, const LadderRow& row);

}  // namespace tilewright
