// The faults of faults.txt fit the passes as they are: scripts/mutate-compiler, which plants them, is not a part of every run.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "passes/pass.h"
#include "runtime/files.h"
#include "tests/locations.h"
#include "tests/plant/fault_list.h"

namespace tilewright {

TEST_SUITE("plant") {
  TEST_CASE("each planted fault has its place in a pass, and each pass has two faults") {
    std::map<std::string, int> counts;
    for (const SchedulePass& pass : schedule_passes()) counts[std::string(pass.word)] = 0;
    for (const FinishingPass& pass : finishing_passes()) counts[std::string(pass.name)] = 0;
    for (const PlantedFault& fault : read_faults((source_root() / "tests/plant/faults.txt").string())) {
      CAPTURE(fault.name);
      const std::string text = read_whole_file(source_root() / fault.file);
      const std::size_t place = text.find(fault.right);
      REQUIRE(place != std::string::npos);
      CHECK(text.find(fault.right, place + 1) == std::string::npos);
      CHECK(counts.count(fault.name.substr(0, fault.name.find('.'))) == 1);
      ++counts[fault.name.substr(0, fault.name.find('.'))];
    }
    for (const auto& entry : counts) CHECK_MESSAGE(entry.second >= 2, entry.first);
  }
}

}  // namespace tilewright
