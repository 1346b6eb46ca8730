// compare: the code of both beside each other, in the terminal and as a page.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "runtime/files.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"
#include "tools/line_pairs.h"
#include "tools/options.h"

namespace tilewright {

TEST_SUITE("tools") {
  TEST_CASE("compare: lines pair where they are equal, in order") {
    const auto pairs = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
      std::string text;
      for (const auto& [n, m] : pair_lines(a, b)) text += fmt::format("{}-{} ", n, m);
      return text;
    };
    CHECK(pairs({"a", "b", "c"}, {"a", "c"}) == "1-1 2-0 3-2 ");
    CHECK(pairs({"a"}, {"x", "a", "y"}) == "0-1 1-2 0-3 ");
    CHECK(pairs({}, {"x"}) == "0-1 ");
    CHECK(pairs({}, {}).empty());
    CHECK(lines_of_text("a\n\nb") == std::vector<std::string>{"a", "", "b"});
  }

  TEST_CASE("compare: the machine code of both stands side by side") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Nvdisasm)) TILEWRIGHT_SKIP("NVRTC or nvdisasm was not found");
    const std::string file = (source_root() / "examples/ch05_tiled_matmul/matmul.tw").string();
    const std::filesystem::path page = std::filesystem::temp_directory_path() / fmt::format("tilewright-compare-{}.html", getpid());
    const std::string name = page.string();
    std::ostringstream out;
    std::streambuf* before = std::cout.rdbuf(out.rdbuf());
    const std::vector<const char*> words = {"tilewright", "compare", file.c_str(), "--schedule", "ch5 tiled", "--with", "ch3 threads 16", "--device", "sim", "--arch", "sm_90a", "--set", "M=64,N=64,K=64", "--code", "-o", name.c_str()};
    const int code = command_line(static_cast<int>(words.size()), words.data());
    std::cout.rdbuf(before);
    CHECK(code == 0);
    std::istringstream lines(out.str());
    int both = 0, ours = 0;
    bool is_beside = false, has_counts = false;
    for (std::string line; std::getline(lines, line);) {
      has_counts |= line.starts_with("BAR.SYNC") && line.find(" 2 ") != std::string::npos;
      if (line.starts_with("SASS of ")) is_beside = line.find("beside ch5 tiled (hand)") != std::string::npos;
      if (!is_beside || line.find("FFMA") == std::string::npos) continue;
      const bool is_paired = line.find(" | ") != std::string::npos && line.find("FFMA") != line.rfind("FFMA");
      both += is_paired, ours += !is_paired;
    }
    CHECK(both >= 14);  // of the tile's 16 products nearly all have their like in the chapter's kernel, in order
    CHECK(2 * both + ours == 32);
    CHECK(has_counts);
    CHECK(read_whole_file(name).find("\"verb\": \"compare\"") != std::string::npos);
    std::filesystem::remove(page);
  }
}

}  // namespace tilewright
