// What the verbs of the command line share: options that keep one meaning everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/library/inputs.h"
#include "runtime/library/session.h"

namespace CLI {
class App;
}

namespace tilewright {

// Exit codes, for scripts.
enum class ExitCode : int {
  Success = 0,
  WrongResult = 1,    // also: an error in the program or in what was asked for
  Usage = 2,          // options that do not parse
  Machine = 3,        // a tool, a GPU or memory is missing
  Internal = 4,       // our fault
};

inline constexpr const char* program_version = "tilewright 0.1.0";

struct Options {
  std::string file;
  std::string expression;  // -e: the program itself
  std::string fn;
  std::string schedule;
  std::vector<std::string> then;
  std::vector<std::string> sets;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> prints;
  std::string device = "auto";
  std::string backend = "nvrtc";
  std::string arch;
  std::uint64_t seed = 1;
  int threads = 0;
  bool check = false;
  bool verify = false;
  bool once = false;
  bool timings = false;
  bool json = false;
  bool no_cache = false;
  bool access = false;  // explain
  // dump
  std::string after;
  std::string emit = "ir";
  std::string folder;
  bool diff = false;
  // compare, ladder, bench
  std::string hand_file;
  std::vector<std::string> others;  // compare: further schedules of the fn, or plan files
  std::string bench;
  int rounds = 5;
  int lead_in_ms = 250;
  std::string bound = "root";
  std::string gpu;    // whose rates
  std::string peers;  // a file of rows that other programs took
  std::string sweep;  // T=8,16,32
  bool each_schedule = false;
  bool code = false;  // the texts too
  // records
  std::string record;      // the folder
  std::string question;
  std::string prediction;
  std::vector<std::string> command;  // the words that were given
  std::vector<std::string> words;    // journal: a folder, or `diff A B`, `repeat A`
  bool html = false;
  // help
  std::vector<std::string> topic;  // its words
};

// Keeps the texts, so that errors can show their lines.
void remember_sources(const std::vector<SourceFile>& sources);

// The program of a command, with its text for diagnostics. A plan file stands for a program of one fn, whose definition
// -e gives; without one the fn has no statements, and its results cannot be checked.
struct LoadedProgram {
  std::vector<SourceFile> sources;
  Program program;
  std::optional<Plan> plan;
  std::string folder;  // where the file lies: hand files are relative to it
};
// Parses the file, -e, or the plan file and -e. On a fault prints the diagnostics itself and throws UserError.
LoadedProgram load(const Options& options);

// `.ir` files hold a plan instead of a program.
bool is_plan_file(const std::string& path);
// The plan file beside a fn that it shall compute: throws UserError where its parameters are others.
LoadedProgram load_plan_for(const std::string& path, const TensorFn& fn);

struct Settings {
  InputRequest inputs;       // sizes, scalars, files, seed
  SelectionRequest schedule; // parameters of the schedule are what no size or scalar is called
  ExecutionRequest execution;
};
// Splits `--set` into sizes, scalars and schedule parameters.
Settings settings_of(const Options& options, const Program& program, const TensorFn& fn);
ExecutionRequest execution_of(const Options& options);

// A whole call, ready to run.
struct PreparedCall {
  const TensorFn* fn = nullptr;
  Settings settings;
  DimMap dims;
  Selection selection;
  std::vector<Rung> rungs;
};
// Of a plan file: one rung, the plan as it stands. Throws UserError where its facts or its class do not fit the sizes.
PreparedCall prepare(const Options& options, const LoadedProgram& loaded);
PreparedCall prepare_with(const LoadedProgram& loaded, const TensorFn& fn, Settings settings);

// Prints what a longer run is about to do, on the error stream.
void announce(const std::string& text);
// Product of the loop trips and elements: an estimate of the operations of one call.
double estimated_operations(const Plan& plan, const DimMap& dims);

// ---- The verbs; each returns the exit code.
ExitCode run_verb(const Options& options);
ExitCode check_verb(const Options& options);
ExitCode explain_verb(const Options& options);
ExitCode help_verb(const Options& options);
ExitCode dump_verb(const Options& options);
ExitCode ladder_verb(const Options& options);
ExitCode compare_verb(const Options& options);
ExitCode bench_verb(const Options& options);
ExitCode report_verb(const Options& options);
ExitCode journal_verb(const Options& options);
ExitCode info_verb(const Options& options);
ExitCode passes_verb(const Options& options);

// The whole command line; what `main` calls, and tests.
int command_line(int argc, const char* const* argv);

}  // namespace tilewright
