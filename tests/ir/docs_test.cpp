// docs/ir.md: its examples (whole plans, and bodies of kernels of one stage inside a frame), and that it names every node,
// instruction and function.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "ir/instructions.h"
#include "ir/operators.h"
#include "ir/plan.h"
#include "runtime/files.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

std::string framed(const std::string& stage, const std::string& text) {
  if (stage.empty()) return text;
  const std::string header = stage == "thread" ? " thread grid (1) block (64) shared 1024 args (A, C, M, K)" : "";
  return "plan example {\n  dim M, N, K\n  in A: f32[M, K]\n  in B: f32[K, N]\n  in I: u8[M]\n  out C: f32[M, N]\n  kernel C" + header + " {\n" + text +
         "  }\n}\n";
}

// The word of a kind of statement, expression or step, as docs/ir.md has it. A kind without one does not compile.
template <class Node>
constexpr std::string_view word_of = Node::has_no_word_in_this_test;
template <> constexpr std::string_view word_of<Loop> = "`serial`";
template <> constexpr std::string_view word_of<If> = "if e { statement";
template <> constexpr std::string_view word_of<Buffer> = "reg|shared NAME";
template <> constexpr std::string_view word_of<Let> = "let NAME";
template <> constexpr std::string_view word_of<Store> = "ACCESS = e";
template <> constexpr std::string_view word_of<Copy> = "`copy D[…] <- S[…]`";
template <> constexpr std::string_view word_of<Fill> = "`fill D <- e`";
template <> constexpr std::string_view word_of<Mma> = "`mma D[i, j]";
template <> constexpr std::string_view word_of<Fold> = "`reduce D[…]";
template <> constexpr std::string_view word_of<Pipe> = "`pipe p:";
template <> constexpr std::string_view word_of<Verb> = "acquire NAME     commit NAME     wait NAME     release NAME";
template <> constexpr std::string_view word_of<Role> = "`role NAME warps";
template <> constexpr std::string_view word_of<Labelled> = "`@NAME statement`";
template <> constexpr std::string_view word_of<Chain> = "chain NAME: DTYPE by OP from e";
template <> constexpr std::string_view word_of<Publish> = "`publish c <- e`";
template <> constexpr std::string_view word_of<Lookback> = "`lookback x <- c`";
template <> constexpr std::string_view word_of<Instr> = "INSTRUCTION(e, …)";
template <> constexpr std::string_view word_of<Const> = "| `Const` |";
template <> constexpr std::string_view word_of<Var> = "| `Var` |";
template <> constexpr std::string_view word_of<Unary> = "| `Unary` |";
template <> constexpr std::string_view word_of<Binary> = "| `Binary` |";
template <> constexpr std::string_view word_of<Select> = "| `Select` |";
template <> constexpr std::string_view word_of<Cast> = "| `Cast` |";
template <> constexpr std::string_view word_of<Call> = "| `Call` |";
template <> constexpr std::string_view word_of<Load> = "| `Load` |";
template <> constexpr std::string_view word_of<Reduce> = "A reduction folds its body";
template <> constexpr std::string_view word_of<Clear> = "| `clear` |";
template <> constexpr std::string_view word_of<Table> = "| `table` |";
template <> constexpr std::string_view word_of<Kernel> = "| `kernel` |";

template <class... Nodes>
std::vector<std::string_view> words_of(const std::variant<Nodes...>*) {
  return {word_of<Nodes>...};
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_SUITE("ir docs") {
  TEST_CASE("docs/ir.md names every node, instruction and function") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    const std::string document = read_whole_file(source_root() / "docs/ir.md");
    std::vector<std::string_view> words = words_of(static_cast<const StmtVariant*>(nullptr));
    for (const std::string_view word : words_of(static_cast<const ExprVariant*>(nullptr))) words.push_back(word);
    for (const std::string_view word : words_of(static_cast<const Step*>(nullptr))) words.push_back(word);
    for (const std::string_view word : words) CHECK_MESSAGE(holds(document, word), word);
    for (int place = 0; place <= static_cast<int>(Place::Vector); ++place) {
      const std::string name(name_of(static_cast<Place>(place)));
      const bool is_of_threads = name.starts_with("thread.");  // written `thread.x .y .z`
      CHECK_MESSAGE(holds(document, is_of_threads ? name.substr(6) : "`" + name + "`"), name);
    }
    for (const InstrInfo& row : all_instructions()) {
      if (wgmma_form(row.name) && row.name != "wgmma.m64n256k16.bf16") continue;  // one row of the document for all shapes
      const std::string operands = row.min_operands == row.max_operands ? fmt::format("{}", row.min_operands) : fmt::format("{} to {}", row.min_operands, row.max_operands);
      CHECK_MESSAGE(holds(document, fmt::format("| `{}` | {} | ", row.name, operands)), row.name);
      CHECK_MESSAGE(holds(document, fmt::format(" | {} |\n", row.meaning)), row.name);
    }
    for (const FunctionInfo& row : all_functions()) CHECK_MESSAGE(holds(document, fmt::format("`{}`", row.name)), row.name);
  }


  TEST_CASE("the examples of docs/ir.md parse, print back and verify") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    std::ifstream file(source_root() / "docs/ir.md");
    int examples = 0;
    std::string text;
    std::string stage;
    bool is_inside = false;
    for (std::string line; std::getline(file, line);) {
      if (!is_inside && line.rfind("```ir", 0) == 0) {
        is_inside = true;
        stage = line.size() > 6 ? line.substr(6) : "";
        text.clear();
      } else if (is_inside && line == "```") {
        is_inside = false;
        ++examples;
        const std::string whole = framed(stage, text);
        try {
          const Plan plan = read_plan(whole);
          CHECK(parse_plan(print(plan)) == plan);
          if (stage.empty()) CHECK(print(plan) == whole);
        } catch (const UserError& error) {
          FAIL_CHECK(render(error.diagnostics(), {{"docs/ir.md", whole}}));
        }
      } else if (is_inside) {
        text += line + "\n";
      }
    }
    CHECK(examples >= 6);
  }

  TEST_CASE("rows of the tables are in order and have their facts") {
    for (int op = 0; op <= static_cast<int>(BinaryOp::Shr); ++op) {
      const BinaryInfo& row = info(static_cast<BinaryOp>(op));
      CHECK(binary_by_spelling(row.spelling) == static_cast<BinaryOp>(op));
    }
    CHECK(info(BinaryOp::Shr).spelling == ">>");
    CHECK(info(BinaryOp::And).is_logical);
    CHECK(info(BinaryOp::Ge).is_comparison);
    for (const FunctionInfo& row : all_functions()) {
      CHECK(find_function(row.name) == &row);
      CHECK(row.arity > 0);
      if (row.group == FunctionGroup::Library || row.group == FunctionGroup::Fast) CHECK_MESSAGE(!row.libdevice_f32.empty(), row.name);
    }
    for (const InstrInfo& row : all_instructions()) {
      CHECK(find_instruction(row.name) == &row);
      CHECK(!row.meaning.empty());
      CHECK(row.min_operands <= row.max_operands);
      CHECK_MESSAGE(find_function(row.name) == nullptr, row.name);
    }
    int shapes = 0;
    for (const InstrInfo& row : all_instructions()) shapes += wgmma_form(row.name) ? 1 : 0;
    CHECK(shapes == 64);
    CHECK(wgmma_form("wgmma.m64n24k16.f16")->n == 24);
    CHECK(wgmma_form("wgmma.m64n24k16.f16")->dtype == Dtype::F16);
    CHECK(wgmma_form("wgmma.m64n256k16.bf16")->dtype == Dtype::BF16);
    CHECK(!wgmma_form("wgmma.fence"));
    CHECK(find_instruction("wgmma.m64n12k16.bf16") == nullptr);
  }
}

}  // namespace tilewright
