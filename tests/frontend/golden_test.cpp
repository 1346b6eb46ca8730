// Programs beside what the frontend makes of them: tensor IR and items, or diagnostics (names that begin with `fail_`).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/program.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

std::string read_file(const std::filesystem::path& path) {
  const std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string print_all(const std::vector<Expr>& exprs) {
  std::vector<std::string> texts;
  for (const Expr& expr : exprs) texts.push_back(print(expr));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string print_facts(const std::vector<Fact>& facts) {
  std::vector<std::string> texts;
  for (const Fact& fact : facts)
    texts.push_back(fact.kind == Fact::Kind::Aligned      ? fmt::format("aligned {}", fact.alignment)
                    : fact.kind == Fact::Kind::Contiguous ? "contiguous"
                                                          : print(fact.condition));
  return texts.empty() ? std::string() : fmt::format(" when {}", fmt::join(texts, ", "));
}

std::string print_hand(const HandItem& hand) {
  std::string text =
      fmt::format("hand {} \"{}\" from \"{}\"{}\n", hand.fn, hand.label, hand.file, print_facts(hand.when));
  for (const Temp& temp : hand.temps)
    text += fmt::format("  let {}: {}[{}]\n", temp.name, info(temp.dtype).name, print_all(temp.shape));
  for (const HandItem::Step& step : hand.steps)
    match_variant(
        step,
        [&](const HandItem::Launch& launch) {
          text +=
              fmt::format("  launch {} grid ({}) block ({}){} args ({})\n", launch.kernel, print_all(launch.grid),
                          print_all(launch.block), launch.shared_bytes ? " shared " + print(launch.shared_bytes) : "",
                          print_all(launch.arguments));
        },
        [&](const HandItem::Zero& zero) { text += fmt::format("  zero {}\n", zero.tensor); },
        [&](const HandItem::Constant& constant) {
          text += fmt::format("  constant {} = {}\n", constant.symbol, constant.tensor);
        });
  return text;
}

std::string print_program(const Program& program) {
  std::string text;
  for (const TensorFn& fn : program.fns) {
    text += print(fn);
    for (const std::string& fault : verify(fn)) text += "VERIFIER: " + fault + "\n";
  }
  for (const Schedule& schedule : program.schedules) {
    text += fmt::format("schedule {} \"{}\"", schedule.fn, schedule.name);
    for (const ScheduleParameter& parameter : schedule.parameters)
      text += fmt::format(" {} = {}", parameter.name, parameter.value);
    text += fmt::format("{}{}\n", schedule.arch.empty() ? "" : " for " + schedule.arch, print_facts(schedule.when));
    for (const ScheduleLine& line : schedule.lines) {
      text += fmt::format("  {} |", line.text);
      if (!line.target.empty()) text += fmt::format(" {}:", line.target);
      text += " " + line.word;
      for (const ScheduleToken& token : line.tokens)
        text += fmt::format(" {}{}", "nds."[static_cast<int>(token.kind)], token.text);
      text += "\n";
    }
  }
  for (const HandItem& hand : program.hands) text += print_hand(hand);
  for (const BenchItem& bench : program.benches) {
    text += fmt::format("bench \"{}\" {}:", bench.name, bench.fn);
    for (const auto& [name, value] : bench.sizes) text += fmt::format(" {} = {}", name, value);
    for (const auto& [name, value] : bench.reals) text += fmt::format(" {} = {}", name, value);
    text += "\n";
  }
  return text;
}

std::vector<std::filesystem::path> cases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(source_root() / "tests" / "frontend"))
    if (entry.path().extension() == ".tw") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TEST_CASE("frontend: programs and their tensor IR or diagnostics") {
  REQUIRE_FALSE(cases().empty());
  for (const std::filesystem::path& path : cases()) {
    CAPTURE(path.filename().string());
    const std::string name = path.filename().string();
    const std::string text = read_file(path);
    std::string seen;
    bool is_refused = false;
    try {
      seen = print_program(parse_program(text, name));
    } catch (const UserError& error) {
      is_refused = true;
      seen = render(error.diagnostics(), {SourceFile{name, text}});
    }
    CHECK(is_refused == (name.rfind("fail_", 0) == 0));
    CHECK(seen.find("VERIFIER") == std::string::npos);
    const std::filesystem::path expected = std::filesystem::path(path).replace_extension(".expected");
    if (updates_expectations()) std::ofstream(expected, std::ios::binary) << seen;
    REQUIRE_MESSAGE(std::filesystem::exists(expected), "no expectation; TILEWRIGHT_UPDATE=1 writes it");
    CHECK(read_file(expected) == seen);
  }
}

TEST_CASE("frontend: every example is a program") {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_root() / "examples")) {
    if (entry.path().extension() != ".tw") continue;
    CAPTURE(entry.path().string());
    const std::string text = read_file(entry.path());
    try {
      const Program program = parse_program(text, entry.path().filename().string());
      for (const TensorFn& fn : program.fns) {
        const std::vector<std::string> faults = verify(fn);
        CHECK_MESSAGE(faults.empty(), fmt::format("{}", fmt::join(faults, "\n")));
      }
    } catch (const UserError& error) {
      FAIL_CHECK(render(error.diagnostics(), {SourceFile{entry.path().filename().string(), text}}));
    }
  }
}

}  // namespace tilewright
