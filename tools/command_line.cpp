// The command line: verbs, their options, and what becomes of errors.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iostream>

#include "ir/diagnostic.h"
#include "ir/spelling.h"
#include "tools/options.h"

namespace tilewright {

namespace {

struct VerbRow {
  const char* name;
  const char* summary;
  const char* example;
  ExitCode (*run)(const Options&);
  const char* options;  // groups: p program, d device, s sizes and inputs, t timing, b bound, e explain, l ladder, r record
};

constexpr VerbRow verbs[] = {
    {"run", "compile, launch, show or save the results", "tilewright run examples/ch05_tiled_matmul/matmul.tw --set M=100,N=50,K=30 --print C", run_verb, "pdsobr"},
    {"check", "compare with the definition: exact, random and special data at boundary shapes; on sim the hand kernels too", "tilewright check examples/ch05_tiled_matmul/matmul.tw --schedule \"ch5 tiled\" --device sim", check_verb, "pdsb"},
    {"explain", "schedule, class, ranges, kernels, and the ledger of shared memory and registers; --access: what each access costs", "tilewright explain examples/ch05_tiled_matmul/matmul.tw --set M=4096,N=4096,K=4096", explain_verb, "pdse"},
    {"help", "a schedule line, a topic, or what an error means", "tilewright help stage", help_verb, "h"},
    {"dump", "IR, CUDA C, LLVM IR, PTX and SASS after any or every line", "tilewright dump examples/ch05_tiled_matmul/matmul.tw --schedule \"ch5 tiled\" --after all --emit ir,cuda,ptx,sass --arch sm_90a -o out", dump_verb, "pdsm"},
    {"ladder", "the rungs of a schedule, each run and measured", "tilewright ladder examples/ch05_tiled_matmul/matmul.tw", ladder_verb, "pdstblr"},
    {"compare", "generated kernels beside hand kernels and libraries", "tilewright compare examples/ch05_tiled_matmul/matmul.tw --hand my.cu", compare_verb, "pdstcwbgrC"},
    {"bench", "time the benches of a program", "tilewright bench examples/ch02_vecadd/vecadd.tw", bench_verb, "pdstbgr"},
    {"report", "one page of a ladder, for a browser: from a program, measured now, or from a record or the ladder's JSON", "tilewright report examples/ch05_tiled_matmul/matmul.tw -o report.html", report_verb, "pdstblR"},
    {"journal", "records that --record made: list them, diff two, repeat one, make a page of some", "tilewright journal diff journal/first journal/second", journal_verb, "J"},
    {"info", "GPUs, driver and tools: found where, which version, how to get what is missing", "tilewright info", info_verb, "j"},
    {"passes", "the schedule lines and the finishing passes, in order", "tilewright passes", passes_verb, "j"},
};

void add_program_options(CLI::App& app, Options& options) {
  app.add_option("file", options.file, "program (.tw) or plan (.ir)");
  app.add_option("-e", options.expression, "the program itself, as text; beside a plan (.ir), the fn that its results are checked by");
  app.add_option("--fn", options.fn, "which fn (default: the last one of tensors)");
  app.add_option("--schedule", options.schedule, "which schedule, by a unique beginning; none for the lowered plan (default: the last that fits the call)");
  app.add_option("--then", options.then, "a further schedule line, for this run")->expected(1)->take_all();
}

void add_device_options(CLI::App& app, Options& options) {
  app.add_option("--device", options.device, "auto, cuda, cpu, sim or interpreter")->capture_default_str();
  app.add_option("--backend", options.backend, "nvrtc or llvm: the generator for cuda")->check(CLI::IsMember({"nvrtc", "llvm"}))->capture_default_str();
  app.add_option("--arch", options.arch, "architecture to compile for (default: the GPU's, or sm_90a)");
  app.add_option("--threads", options.threads, "cpu: threads (default: one a core)")->check(CLI::Range(0, 4096));
  app.add_flag("--no-cache", options.no_cache, "compile again, whatever the disk cache holds");
}

void add_size_options(CLI::App& app, Options& options) {
  app.add_option("--set", options.sets, "sizes, scalars and schedule parameters: M=64,T=8")->expected(1)->take_all();
  app.add_option("--in", options.inputs, "NAME=FILE (.npy, .pgm, .ppm), or NAME=zeros, ones, iota, random")->expected(1)->take_all();
  app.add_option("--seed", options.seed, "seed of random data and orders")->capture_default_str();
}

void add_options(CLI::App& app, const VerbRow& verb, Options& options) {
  for (const char* group = verb.options; *group; ++group) switch (*group) {
      case 'p': add_program_options(app, options); break;
      case 'd': add_device_options(app, options); break;
      case 's': add_size_options(app, options); break;
      case 'o':
        app.add_option("--out", options.outputs, "NAME=FILE: save a result")->expected(1)->take_all();
        app.add_option("--print", options.prints, "NAME: show a result")->expected(1)->take_all();
        app.add_flag("--check", options.check, "compare the results with the definition");
        app.add_flag("--verify", options.verify, "run the IR in front of every pass and behind it on small shapes, and compare");
        app.add_flag("--once", options.once, "one launch only, for profilers and sanitizers");
        app.add_flag("--timings", options.timings, "how long each step took");
        break;
      case 'm':
        app.add_option("--after", options.after, "which line: its number, its word, or all (default: the last)");
        app.add_option("--emit", options.emit, "ir, thread, cuda, llvm, ptx, sass, tensor: a list")->capture_default_str();
        app.add_option("-o,--output", options.folder, "write files into this folder instead of the screen");
        app.add_flag("--diff", options.diff, "what the line changed");
        break;
      case 't':
        app.add_option("--bench", options.bench, "which bench gives the sizes (default: the first)");
        app.add_option("--rounds", options.rounds, "rounds of interleaved timing")->check(CLI::Range(1, 1000))->capture_default_str();
        app.add_option("--lead-in", options.lead_in_ms, "milliseconds of a row's own launches before those that count, in each round")->check(CLI::Range(0, 60000))->capture_default_str();
        app.add_flag("--once", options.once, "one launch each");
        break;
      case 'r':
        app.add_option("--record", options.record, "a new folder for the record: record.json, record.md, ladder.svg");
        app.add_option("--question", options.question, "what this run shall answer, for the record");
        app.add_option("--predict", options.prediction, "what you expect, for the record");
        break;
      case 'C':
        app.add_flag("--code", options.code, "the SASS of both in two columns; with --json the texts of each row");
        app.add_option("-o,--output", options.folder, "a page of both for a browser, like that of report");
        break;
      case 'R': app.add_option("-o,--output", options.folder, "the page to write"); break;
      case 'J':
        app.add_option("words", options.words, "FOLDER: the records in it, newest first; diff A B; repeat A; page A…: a page of documentation");
        app.add_flag("--html", options.html, "the list as a page, else Markdown");
        app.add_option("-o,--output", options.folder, "the file to write the list to, else the screen");
        break;
      case 'w': app.add_option("--with", options.others, "a further schedule of the fn, by a unique beginning, or a plan file (.ir), timed beside it by --backend; may be given often"); break;
      case 'e': app.add_flag("--access", options.access, "sectors, bank conflicts, bytes and divergence of each access, counted in the simulator at these sizes"); break;
      case 'l':
        app.add_option("--gpu", options.gpu, "whose rates the counts are held against: h200, h100, a100, l4, t4, … (default: the GPU's, or the first of --arch); without a GPU and --arch, its architecture too");
        app.add_option("--peers", options.peers, "rows of other programs, as peers.py --json writes them");
        app.add_option("--sweep", options.sweep, "T=8,16,32: the last rung for each value of a schedule's parameter")->expected(1);
        app.add_flag("--each-schedule", options.each_schedule, "a rung for each schedule of the fn, in the order of the program, instead of one for each line");
        app.add_flag("--code", options.code, "with --json: the program, and IR, CUDA C, PTX and SASS of each row");
        break;
      case 'g':
        app.add_option("--peers", options.peers, "rows of other programs, as peers.py --json writes them");
        break;
      case 'c': app.add_option("--hand", options.hand_file, "a .cu file of your own, with `// launch k<<<grid, block>>>(arguments)` above its kernel; without a GPU it is checked on the PTX machine"); break;
      case 'h': app.add_option("topic", options.topic, "a schedule line, a pass, a function, an instruction, a topic, or the message of an error in quotes"); break;
      case 'b':
        app.add_option("--bound", options.bound, "how far a sum of h terms may be off: root (6 sqrt h units) or worst (h units)")->check(CLI::IsMember({"root", "worst"}))->capture_default_str();
        break;
      case 'j': break;
      default: internal_error("an option group without options");
    }
  app.add_flag("--json", options.json, "machine-readable output");
  app.footer(std::string("Example:\n  ") + verb.example);
}

// CLI11 would say that a subcommand is needed, not which word is none.
void check_verb_name(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> known;
  for (const VerbRow& verb : verbs) known.emplace_back(verb.name);
  if (std::find(known.begin(), known.end(), argv[1]) != known.end()) return;
  const std::string meant = did_you_mean(argv[1], known);
  throw CLI::ParseError(fmt::format("there is no verb `{}`; {}", argv[1], meant.empty() ? fmt::format("known are {}", fmt::join(known, ", ")) : meant),
                        CLI::ExitCodes::ExtrasError);
}

int as_int(ExitCode code) { return static_cast<int>(code); }

// The sources of the program at hand, so that diagnostics can show lines; load() fills it.
std::vector<SourceFile>& sources_at_hand() {
  static std::vector<SourceFile> sources;
  return sources;
}

}  // namespace

void remember_sources(const std::vector<SourceFile>& sources) { sources_at_hand() = sources; }

int command_line(int argc, const char* const* argv) {
  Options options;
  CLI::App app{"Tilewright: tensor programs to GPU kernels, one schedule line at a time.", "tilewright"};
  app.require_subcommand(1);
  app.set_version_flag("--version", program_version);
  app.set_help_flag("-h,--help", "this text");
  app.footer("Example:\n  tilewright ladder examples/ch05_tiled_matmul/matmul.tw\nExit codes: 0 done, 1 an error in the program or a wrong result, 2 options, 3 the machine lacks something, 4 our fault");
  ExitCode code = ExitCode::Success;
  for (const VerbRow& verb : verbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    add_options(*sub, verb, options);
  }
  sources_at_hand().clear();
  try {
    check_verb_name(argc, argv);
    app.parse(argc, argv);
    options.command.assign(argv + 1, argv + argc);
    for (const VerbRow& verb : verbs)
      if (app.got_subcommand(verb.name)) code = verb.run(options);
    std::cout.flush();
    return as_int(code);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : as_int(ExitCode::Usage);
  } catch (const UserError& error) {
    std::cout.flush();
    std::cerr << render(error.diagnostics(), sources_at_hand());
    return as_int(ExitCode::WrongResult);
  } catch (const MachineError& error) {
    std::cout.flush();
    std::cerr << "error: " << error.what() << "\n";
    return as_int(ExitCode::Machine);
  } catch (const std::bad_alloc&) {
    std::cerr << "error: there is not enough memory for this call\n";
    return as_int(ExitCode::Machine);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\nThis is a fault of Tilewright, not of the program.\n";
    return as_int(ExitCode::Internal);
  }
}

}  // namespace tilewright
