// The ladder without a GPU: occupancy, bounds that the card confirmed, sentences, the JSON form and what it refuses.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/disassemble.h"
#include "runtime/library/hands.h"
#include "runtime/library/ladder/forms.h"
#include "runtime/library/ladder/parts.h"
#include "runtime/library/ladder/sass.h"
#include "runtime/plan_ptx.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"
#include "tools/measure.h"

namespace tilewright {

namespace {

std::string example(const char* name) { return (source_root() / "examples" / name).string(); }

Arguments without_data(const TensorFn& fn, const DimMap& dims) {
  const std::vector<std::pair<std::string, std::int64_t>> names(dims.begin(), dims.end());
  Arguments arguments;
  arguments.dims = dims;
  for (const Param& param : fn.params) arguments.tensors[param.name] = HostTensor{param.dtype, shape_of(param.shape, names), {}};
  return arguments;
}

// The last rung of a schedule, counted at sizes of the bench, against the rates of an H200.
LadderRow counted(const char* file, const char* schedule, const DimMap& dims) {
  const Program program = load_program(example(file));
  const TensorFn& fn = choose_fn(program);
  SelectionRequest request;
  request.schedule = schedule;
  const std::vector<Rung> rungs = rungs_of(fn, select_schedule(program, fn, dims, request), dims, "sm_90a");
  Arguments arguments = without_data(fn, dims);
  LadderRow row;
  row.name = rungs.back().line;
  for (std::size_t n = 1; n < rungs.size(); ++n) row.lines.push_back(rungs[n].line);
  add_parts(row, work_of(fn, dims), count_on_ptx(thread_stage(rungs.back().plan, target_for("sm_90a")), arguments, {}), card_by_name("h200"), false);
  CAPTURE(row.not_counted.empty() ? "" : row.not_counted.front());
  CHECK(row.not_counted.empty());
  return row;
}

LadderRow counted_hand(const char* file, const char* name, const DimMap& dims) {
  const Program program = load_program(example(file));
  const TensorFn& fn = choose_fn(program);
  Arguments arguments = without_data(fn, dims);
  LadderRow row;
  for (const HandProgram& hand : hand_programs(program, fn, std::filesystem::path(example(file)).parent_path().string(), dims))
    if (hand.name == name)
      add_parts(row, work_of(fn, dims), count_hand_on_ptx(compile_hand_to_ptx(hand, "sm_90a"), rungs_of(fn, {}, dims, "sm_90a").front().plan, arguments), card_by_name("h200"), false);
  REQUIRE(!row.busiest.empty());
  return row;
}

const DimMap cube = {{"M", 4096}, {"N", 4096}, {"K", 4096}};

Ladder small_ladder() {
  Ladder ladder;
  ladder.verb = "ladder";
  ladder.fn = "f";
  ladder.dims = {{"N", 5}};
  ladder.rows.resize(2);
  LadderRow& row = ladder.rows[0];
  row.name = "tile block i 16 \"quoted\"";
  row.timing = Timing{};
  row.timing->median_ms = 1.5;
  row.timing->round_ms = {1.4, 1.5};
  row.timing->round_mhz = {1980, 1975};
  row.lines = {"tile block i 16"};
  row.notes = {{5, 9, "A[i]", "global", "load", 10, 40, 20, "a sentence", "a cure"}};
  ladder.protocol = TimingOptions{};
  ladder.protocol->lead_in_ms = 250;
  row.compile = {{"nvrtc", 0.25, 80}};
  row.occupancy = Occupancy{8, 64, 64, "threads"};
  row.instructions = {{"LDG.128", 4}, {"FFMA", 64}};
  row.parts = {{"DRAM", 1e9, "bytes", 4e12, 0.25, "inputs once"}};
  row.busiest = "DRAM";
  row.least_ms = 0.25;
  row.accesses = {{16, "ld.global.f32", "global", "A", false, 4, 10, 20, 10, 10, 10, "a remark"}};
  row.forms = {{"ir", "program", "a\nb\n", {1, 0}}};
  ladder.rows[1].kind = RowKind::Library;
  ladder.rows[1].note = "absent";
  return ladder;
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("occupancy: what the limits of an architecture leave room for") {
    const auto check = [](const char* arch, int threads, int registers, std::int64_t shared, int blocks, const char* limit) {
      const std::optional<Occupancy> found = occupancy_of(arch, threads, registers, shared);
      REQUIRE(found);
      CHECK(fmt::format("{} {}", found->blocks, found->limit) == fmt::format("{} {}", blocks, limit));
    };
    check("sm_90a", 256, 32, 0, 8, "threads");
    check("sm_90a", 256, 33, 0, 6, "registers");  // 40 a thread, in units of 256 a warp
    check("sm_90a", 256, 100, 16384, 2, "registers");
    check("sm_90a", 384, 168, 231424, 1, "registers");
    check("sm_90a", 128, 32, 100 * 1024, 2, "shared memory");
    check("sm_90a", 32, 16, 0, 32, "blocks");
    check("sm_75", 256, 32, 0, 4, "threads");
    check("sm_89", 32, 16, 0, 24, "blocks");
    CHECK_FALSE(occupancy_of("sm_90a", 1024, 255, 0));
    CHECK_FALSE(occupancy_of("sm_90a", 256, 32, 300 * 1024));
    CHECK_FALSE(occupancy_of("sm_1", 256, 32, 0));
    CHECK_THROWS_AS(card_by_name("z80"), UserError);
    CHECK(card_of_gpu("NVIDIA H200", "sm_90a")->name == "h200");
    CHECK(card_of_gpu("", "sm_80")->name == "a100");
    CHECK(card_of_gpu("NVIDIA Something New", "sm_90a") == nullptr);
  }

  TEST_CASE("ladder: least times lie at most 15 % under what an H200 measured") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    const auto check = [](const char* what, const LadderRow& row, double measured_ms, const char* busiest) {
      CAPTURE(what);
      CAPTURE(row.least_ms);
      CHECK(row.busiest == busiest);
      CHECK(row.least_ms <= measured_ms);
      CHECK(row.least_ms >= 0.85 * measured_ms);
    };
    // docs/results: the naive kernel 25.35 ms, the tiled one 16.88 generated and 16.91 by hand, the transposition 0.521; in the
    // record of chapter 5 the tile of width 32 15.55 and the coarsened kernel 3.956.
    check("naive", counted("ch05_tiled_matmul/matmul.tw", "ch3 threads 16x16", cube), 25.35, "L1/shared");
    check("tiled", counted("ch05_tiled_matmul/matmul.tw", "ch5 tiled", cube), 16.88, "L1/shared");
    check("tiled, width 32", counted("ch05_tiled_matmul/matmul.tw", "ch5 width", cube), 15.55, "L1/shared");
    check("coarsened", counted("ch05_tiled_matmul/matmul.tw", "ch6 coarsened", cube), 3.956, "L1/shared");
    check("tiled by hand", counted_hand("ch05_tiled_matmul/matmul.tw", "ch5 tiled", cube), 16.91, "L1/shared");
    check("transposition", counted("ch06_transpose/transpose.tw", "vector", {{"M", 16384}, {"N", 16384}}), 0.521, "DRAM");
  }

  TEST_CASE("ladder: tiling pays in passes of L1 and shared memory, and bytes of DRAM are no limit before or after") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    Ladder ladder;
    ladder.rows = {counted("ch05_tiled_matmul/matmul.tw", "ch3 threads 16x16", cube), counted("ch05_tiled_matmul/matmul.tw", "ch5 tiled", cube)};
    const LadderRow rows_first = counted("ch05_tiled_matmul/matmul.tw", "ch3 x on rows", cube);
    add_verdicts(ladder);
    const std::string& verdict = ladder.rows[1].verdict;
    CAPTURE(verdict);
    CHECK(verdict.find("paid      the least time fell 1.60x: L1/shared, the busiest part before, fell 1.6x") != std::string::npos);
    for (const LadderRow& row : ladder.rows) CHECK(row.part("DRAM")->least_ms < 0.01 * row.least_ms);
    // 142 ms were measured with x on rows: the mapping of threads is worth more than the tile.
    CHECK(rows_first.least_ms > 0.85 * 142);
    CHECK(rows_first.least_ms < 142);
    bool has_remark = false;
    for (const AccessRow& access : rows_first.accesses) has_remark |= access.remark.find("16.0 sectors a request of a warp, 2.0 would do") != std::string::npos;
    CHECK(has_remark);
  }

  TEST_CASE("ladder: without times nothing is said of rungs whose parts are not all counted") {
    Ladder ladder;
    ladder.rows.resize(2);
    ladder.rows[0].parts = {{"DRAM", 1e6, "bytes", 1e12, 0.001, ""}, {"L1/shared", 1e9, "passes", 1e11, 10, ""}};
    ladder.rows[0].busiest = "L1/shared", ladder.rows[0].least_ms = 10;
    ladder.rows[1].parts = {{"DRAM", 1e6, "bytes", 1e12, 0.001, ""}};
    ladder.rows[1].busiest = "DRAM", ladder.rows[1].least_ms = 0.001;
    add_verdicts(ladder);
    CHECK(ladder.rows[1].verdict == "open      not all parts of both rungs are counted, so their least times cannot be compared");
    CHECK(ladder.rows[1].next.empty());
    CHECK_FALSE(ladder.rows[0].next.empty());
  }

  TEST_CASE("ladder: a line is laid beside its lines in every other form, and they change no code") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Nvdisasm)) TILEWRIGHT_SKIP("NVRTC or nvdisasm was not found");
    const Program program = load_program(example("ch05_tiled_matmul/matmul.tw"));
    const TensorFn& fn = choose_fn(program);
    SelectionRequest request;
    request.schedule = "ch5 tiled";
    const std::vector<Rung> rungs = rungs_of(fn, select_schedule(program, fn, cube, request), cube, "sm_90a");
    std::string note;
    const std::vector<Form> forms = forms_of(rungs.back().plan, {}, &note);
    REQUIRE(forms.size() == 5);
    const auto lines_of = [](const Form& form) {
      std::vector<std::string> lines(1);  // from 1 on
      for (std::size_t start = 0, end = 0; (end = form.text.find('\n', start)) != std::string::npos; start = end + 1) lines.push_back(form.text.substr(start, end - start));
      return lines;
    };
    std::map<std::string, std::vector<std::string>> text;
    for (const Form& form : forms) {
      text[form.name] = lines_of(form);
      CHECK(form.origin.size() + 1 == text[form.name].size());
    }
    // The SASS's multiplications are the multiplications of every form above.
    int ffma = 0, in_cuda = 0;
    for (std::size_t line = 1; line < text["sass"].size(); ++line) {
      if (text["sass"][line].find("FFMA") == std::string::npos) continue;
      ++ffma;
      const auto cuda = static_cast<std::size_t>(forms[4].origin[line - 1]);
      in_cuda += text["cuda"].at(cuda).find("fmaf(As[") != std::string::npos;
      const auto thread = static_cast<std::size_t>(forms[2].origin.at(cuda - 1));
      CHECK(text["thread"].at(thread).find("acc = fma(As[") != std::string::npos);
      const auto ir = static_cast<std::size_t>(forms[1].origin.at(thread - 1));
      CHECK(text["ir"].at(ir).find("acc[i, j] = fma(As[i, k], Bs[k, j], acc[i, j])") != std::string::npos);
      CHECK(forms[0].origin.at(ir - 1) == 5);  // of the program
    }
    CHECK(ffma == 16);
    CHECK(in_cuda == 16);
    // Copies stem from the line of the IR that says so.
    for (std::size_t line = 1; line < text["thread"].size(); ++line)
      if (text["thread"][line].find("As[t] = ") != std::string::npos) CHECK(text["ir"].at(static_cast<std::size_t>(forms[1].origin[line - 1])).find("copy As[") != std::string::npos);
    const Plan threads = thread_stage(rungs.back().plan, target_for("sm_90a"));
    CompileOptions without, with;
    with.line_info = true;
    const Kernel& kernel = *kernels_of(threads).front();
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      if (backend == Backend::Llvm && !find_tool(Tool::NvJitLink)) continue;
      without.backend = with.backend = backend;
      CHECK(instruction_bytes(compile_kernel(threads, kernel, without).cubin, "C") == instruction_bytes(compile_kernel(threads, kernel, with).cubin, "C"));
    }
  }

  TEST_CASE("ladder: SASS of LLVM's PTX is laid beside the PTX, the threads and the program") {
    if (!find_tool(Tool::NvJitLink) || !find_tool(Tool::Nvdisasm)) TILEWRIGHT_SKIP("nvJitLink or nvdisasm was not found");
    const Program program = load_program(example("ch05_tiled_matmul/matmul.tw"));
    const TensorFn& fn = choose_fn(program);
    SelectionRequest request;
    request.schedule = "ch5 tiled";
    CompileOptions options;
    options.backend = Backend::Llvm;
    std::string note;
    const std::vector<Form> forms = forms_of(rungs_of(fn, select_schedule(program, fn, cube, request), cube, "sm_90a").back().plan, options, &note);
    CHECK(note.empty());
    std::map<std::string, std::vector<std::string>> text;
    std::map<std::string, const Form*> by_name;
    for (const Form& form : forms) {
      by_name[form.name] = &form;
      std::istringstream lines(form.text);
      text[form.name].emplace_back();
      for (std::string line; std::getline(lines, line);) text[form.name].push_back(line);
    }
    REQUIRE(by_name.count("sass") == 1);
    CHECK(by_name["sass"]->above == "ptx");
    CHECK(by_name["ptx"]->above == "thread");
    int ffma = 0, marked = 0;
    for (std::size_t line = 1; line < text["sass"].size(); ++line) {
      const auto ptx = static_cast<std::size_t>(by_name["sass"]->origin[line - 1]);
      marked += ptx > 0;
      if (text["sass"][line].find("FFMA") == std::string::npos) continue;
      ++ffma;
      CHECK(text["ptx"].at(ptx).find("fma.rn.f32") != std::string::npos);
      CHECK(text["thread"].at(static_cast<std::size_t>(by_name["ptx"]->origin.at(ptx - 1))).find("acc = fma(As[") != std::string::npos);
    }
    CHECK(ffma == 16);
    CHECK(marked > static_cast<int>(text["sass"].size() * 9 / 10));
  }

  TEST_CASE("ladder: JSON says everything, and what is no such file is refused by name") {
    const Ladder ladder = small_ladder();
    const std::string text = json_of(ladder);
    CHECK(json_of(ladder_of_json(text, "x.json")) == text);
    const auto refusal = [](const std::string& json) {
      try {
        ladder_of_json(json, "x.json");
      } catch (const UserError& error) {
        return error.diagnostics().front().message;
      }
      return std::string();
    };
    const auto replaced = [&](const std::string& from, const std::string& to) {
      std::string changed = text;
      changed.replace(changed.find(from), from.size(), to);
      return changed;
    };
    CHECK(refusal(text.substr(0, text.size() / 2)) == "`x.json` cannot be read: it is no JSON, or it was cut off");
    CHECK(refusal(replaced("\"tilewright_ladder\": 3", "\"tilewright_ladder\": 4")) == "`x.json` cannot be read: it is of version 4, and this program reads up to 3");
    CHECK(refusal("{}") == "`x.json` cannot be read: it is no ladder of Tilewright");
    CHECK(refusal("[1]") == "`x.json` cannot be read: it is no ladder of Tilewright");
    CHECK(refusal(replaced("\"busiest\"", "\"busyest\"")) == "`x.json` cannot be read: the field `busiest` is missing");
    CHECK(refusal(replaced("\"registers\": 0", "\"registers\": \"no\"")) == "`x.json` cannot be read: the field `registers` has the wrong type");
    CHECK(refusal(replaced("\"kind\": \"rung\"", "\"kind\": \"stair\"")) == "`x.json` cannot be read: no row is of the kind `stair`");
  }

  TEST_CASE("ladder: JSON of the first version is read, without what it did not say") {
    nlohmann::ordered_json old = nlohmann::ordered_json::parse(json_of(small_ladder()));
    old["tilewright_ladder"] = 1;
    old.erase("protocol");
    old.erase("note_dims");
    for (nlohmann::ordered_json& row : old["rows"]) row.erase("lines"), row.erase("notes");
    const Ladder ladder = ladder_of_json(old.dump(), "x.json");
    CHECK_FALSE(ladder.protocol);
    CHECK(ladder.rows[0].lines.empty());
    CHECK(ladder.rows[0].timing->round_mhz == std::vector<int>{1980, 1975});
    old["tilewright_ladder"] = 2;
    CHECK_THROWS_WITH_AS(ladder_of_json(old.dump(), "x.json"), doctest::Contains("the field `lines` is missing"), UserError);
  }

  TEST_CASE("ladder: a time by rounds differs where no round of one is as fast as one of the other") {
    const auto verdict = [](std::vector<double> before, std::vector<double> now) {
      Ladder ladder;
      for (const std::vector<double>& rounds : {before, now}) {
        Timing timing;
        timing.round_ms = rounds;
        timing.median_ms = median_of(rounds);
        timing.lowest_ms = *std::min_element(rounds.begin(), rounds.end());
        timing.highest_ms = *std::max_element(rounds.begin(), rounds.end());
        ladder.rows.emplace_back().timing = timing;
      }
      add_verdicts(ladder);
      return ladder.rows[1].verdict;
    };
    CHECK(verdict({10.0, 10.1, 10.0}, {9.8, 9.8, 9.9}).starts_with("paid      the time fell 1.02x"));
    CHECK(verdict({9.8, 9.8, 9.9}, {10.0, 10.1, 10.0}).starts_with("cost      the time rose 1.02x"));
    CHECK(verdict({0.2044, 0.2050, 0.2120}, {0.2173, 0.2100, 0.2200}) == "no change the time is the same, as far as the rounds tell: 0.2044 ms to 0.2120 ms before, 0.2100 ms to 0.2200 ms now");
    CHECK(verdict({10.0, 10.0}, {9.95, 9.96}).starts_with("no change the time is the same"));  // less than a percent
    CHECK(verdict({10.0}, {9.7}) == "no change the time is the same within 5 %");               // one round has no spread
  }

  TEST_CASE("ladder: each schedule of a fn is a rung, and one passed over says why") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    Options options;
    options.file = example("ch02_vecadd/vecadd.tw");
    options.device = "sim";
    options.sets = {"N=1001"};
    options.each_schedule = true;
    const Ladder ladder = ladder_of(options, false);
    std::vector<std::string> rungs;
    for (const LadderRow& row : ladder.rows)
      if (row.kind == RowKind::Rung) rungs.push_back(row.name + (row.note.empty() ? "" : " " + row.note));
    CHECK(rungs == std::vector<std::string>{"(lowered)", "ch2", "two neighbours", "two strided", "vector passed over: `N % 4 == 0` does not hold: `N % 4` is 1"});
    const auto neighbours = std::find_if(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return row.name == "two neighbours"; });
    CHECK(neighbours->lines == std::vector<std::string>{"tile block i 256", "bind i thread.x", "coarsen i 2 by 2"});
    CHECK_FALSE(neighbours->verdict.empty());  // held against the schedule before
    options.schedule = "ch2";
    CHECK_THROWS_WITH_AS(ladder_of(options, false), doctest::Contains("--each-schedule takes every schedule"), UserError);
  }

  TEST_CASE("ladder: rows of peers are those of the bench, and a bad file is refused") {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("tilewright-peers-{}.json", getpid());
    const auto with = [&](const std::string& content) {
      std::ofstream(file) << content;
      Ladder ladder;
      ladder.bench = "b";
      ladder.device = "NVIDIA H200";
      try {
        add_peers(ladder, file.string());
      } catch (const UserError& error) {
        return "refused: " + error.diagnostics().front().message;
      }
      std::string text;
      for (const LadderRow& row : ladder.rows) text += fmt::format("{} {} {};", row.name, row.timing ? row.timing->median_ms : 0, row.note);
      return text;
    };
    CHECK(with(R"({"device": "NVIDIA H200", "rows": [{"name": "b", "peer": "cublas", "ms": 0.5}, {"name": "c", "peer": "cudnn", "ms": 1}]})") == "cublas 0.5 ;");
    CHECK(with(R"({"device": "NVIDIA A100", "rows": [{"name": "b", "peer": "cublas", "ms": 0.5}]})") == "cublas 0.5 measured on NVIDIA A100;");
    CHECK(with(R"({"rows": []})").starts_with("peers 0 absent: "));
    CHECK(with(R"({"rows": [{"name": "b"}]})").starts_with("refused: a row of "));
    CHECK(with(R"({"rows": 5})").find("has no list `rows`") != std::string::npos);
    CHECK(with("{").find("is no JSON") != std::string::npos);
    std::filesystem::remove(file);
  }

  TEST_CASE("ladder: without a GPU it is compiled for the card that is named, and without nvdisasm it says what is missing") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    Options options;
    options.expression = "fn scale(X: f32[N]) -> Y: f32[N] { Y[i] = 2.0 * X[i] }";
    options.device = "sim";
    options.sets = {"N=100000"};
    options.gpu = "t4";
    const Ladder ladder = ladder_of(options, false);
    CHECK(ladder.card_title == "Tesla T4");
    if (!has_gpu()) CHECK(ladder.arch == "sm_75");
    const auto rung = std::find_if(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return row.kind == RowKind::Rung; });
    REQUIRE(rung != ladder.rows.end());
    CHECK(rung->busiest == "DRAM");
    CHECK(std::abs(rung->least_ms - 800'000 / 0.320e12 * 1e3) < 1e-9);
    const std::string table = table_of(ladder);
    CHECK(table.find("least times are for the rates of Tesla T4 (--gpu t4)") != std::string::npos);
    CHECK(table.find("open      L2: its rate on this card is not known") != std::string::npos);
    CHECK(table.find(find_tool(Tool::Nvdisasm) ? "SASS      " : "open      SASS: nvdisasm was not found") != std::string::npos);
    options.gpu = "z80";
    CHECK_THROWS_WITH_AS(ladder_of(options, false), doctest::Contains("no card is called `z80`"), UserError);
  }

  TEST_CASE("ladder: a sweep has a row a value, and says which are refused") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    Options options;
    options.file = example("ch05_tiled_matmul/matmul.tw");
    options.device = "sim";
    options.schedule = "ch5 width";
    options.sweep = "T=8,16,64";
    options.sets = {"M=64,N=64,K=64"};
    const Ladder ladder = ladder_of(options, false);
    std::vector<std::string> rungs;
    for (const LadderRow& row : ladder.rows)
      if (row.kind == RowKind::Rung) rungs.push_back(row.name + (row.note.empty() ? "" : " refused"));
    CHECK(rungs == std::vector<std::string>{"T = 8", "T = 16", "T = 64 refused"});
    options.sweep = "Q=8";
    CHECK_THROWS_WITH_AS(ladder_of(options, false), doctest::Contains("names no parameter"), UserError);
    options.sweep = "T=";
    CHECK_THROWS_WITH_AS(ladder_of(options, false), doctest::Contains("is no NAME=VALUE,VALUE"), UserError);
    options.sweep = "T=8,x";
    CHECK_THROWS_WITH_AS(ladder_of(options, false), doctest::Contains("has the value `x`, which is no integer"), UserError);
    options.sweep = "T=64,128";
    CHECK_THROWS_WITH_AS(ladder_of(options, false), doctest::Contains("every value of `T` is refused; "), UserError);
    options.sweep = "T=8,,16";
    CHECK_THROWS_WITH_AS(ladder_of(options, false), doctest::Contains("has an empty value"), UserError);
  }
}

}  // namespace tilewright
