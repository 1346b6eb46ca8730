// docs/ir.md says of every pass what it does to a plan.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/loops.h"
#include "passes/pass.h"
#include "runtime/files.h"
#include "tests/locations.h"

namespace tilewright {

TEST_SUITE("passes docs") {
  TEST_CASE("docs/ir.md has a row for each kind of loop") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    const std::string document = read_whole_file(source_root() / "docs/ir.md");
    for (int kind = 0; kind <= static_cast<int>(LoopKind::Vector); ++kind) {
      const std::string_view name = name_of(static_cast<LoopKind>(kind));
      CHECK_MESSAGE(document.find(fmt::format("| `{}` |", name)) != std::string::npos, name);
    }
  }

  TEST_CASE("docs/ir.md has a row for each schedule line and each finishing pass, in their order") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    const std::string document = read_whole_file(source_root() / "docs/ir.md");
    std::size_t before = document.find("## What passes do to a plan");
    REQUIRE(before != std::string::npos);
    const auto check = [&](std::string_view name) {
      const std::size_t row = document.find(fmt::format("\n| `{}` | ", name), before);
      CHECK_MESSAGE(row != std::string::npos, name);
      if (row != std::string::npos) before = row;
    };
    for (const SchedulePass& pass : schedule_passes()) check(pass.word);
    for (const FinishingPass& pass : finishing_passes()) check(pass.name);
  }
}

}  // namespace tilewright
