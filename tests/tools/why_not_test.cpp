// explain: what a call compiles to, and why not the schedules that were passed over.
#include <doctest/doctest.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/locations.h"
#include "tools/options.h"

namespace tilewright {

namespace {

nlohmann::json explained(std::vector<const char*> words) {
  words.insert(words.begin(), {"tilewright", "explain"});
  words.push_back("--json");
  std::ostringstream out;
  std::streambuf* before = std::cout.rdbuf(out.rdbuf());
  const int code = command_line(static_cast<int>(words.size()), words.data());
  std::cout.rdbuf(before);
  REQUIRE(code == 0);
  return nlohmann::json::parse(out.str());
}

std::map<std::string, std::string> reasons(const nlohmann::json& told) {
  std::map<std::string, std::string> result;
  for (const nlohmann::json& each : told["schedules"]) result[each["name"]] = each["why_not"];
  return result;
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("explain: says of each schedule passed over why, with the numbers") {
    const std::string text =
        "fn f(A: f32[M, N]) -> B: f32[N, M] { B[j, i] = A[i, j] }"
        "schedule f \"first\" { tile block j 32, i 32; bind j thread.y, i thread.x }"
        "schedule f \"too large\" { tile block j 512, i 512; bind j thread.y, i thread.x }"
        "schedule f \"vectors\" when N % 4 == 0, aligned 16 { tile block j 32, i 32; bind j thread.y, i thread.x }"
        "schedule f \"small card\" for sm_75 { tile block j 32, i 32; bind j thread.y, i thread.x }"
        "schedule f \"last\" { tile block j 16, i 16; bind j thread.y, i thread.x }";
    std::map<std::string, std::string> why = reasons(explained({"-e", text.c_str(), "--set", "M=64,N=30"}));
    CHECK(why["last"].empty());
    CHECK(why["first"] == "fits, but \"last\" does too and stands behind it");
    CHECK(why["too large"].find("its `when` holds, but a line is refused: ") == 0);
    CHECK(why["too large"].find("1024") != std::string::npos);
    CHECK(why["vectors"] == "`N % 4 == 0` does not hold: `N % 4` is 2; `aligned 16` does not hold: a row of `A` has 120 bytes");
    CHECK(why["small card"] == "it is for sm_75, not sm_90a");
    why = reasons(explained({"-e", text.c_str(), "--set", "M=64,N=30", "--schedule", "first"}));
    CHECK(why["first"].empty());
    CHECK(why["last"] == "fits, but --schedule names another");
  }
}

}  // namespace tilewright
