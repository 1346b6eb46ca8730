// The examples with pieces lost, doubled or exchanged: every reader refuses in words or reads, and never ends the process.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/random.h"
#include "tests/fuzz/readers/readers.h"
#include "tests/locations.h"

namespace tilewright::fuzz {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> texts_below(const fs::path& folder, const std::string& ending, std::size_t most_bytes) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ending && entry.file_size() > 20 && entry.file_size() < most_bytes) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const fs::path& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

std::string damaged(Random& random, std::string text, const std::string& other) {
  for (std::size_t faults = 1 + random.below(3); faults > 0; --faults) {
    if (text.empty()) text = " ";
    const std::size_t at = random.below(text.size());
    switch (random.below(5)) {
      case 0: text.erase(at, 1 + random.below(8)); break;
      case 1: text.insert(at, text.substr(at, 1 + random.below(16))); break;
      case 2: text.insert(at, other.substr(random.below(other.size()), 1 + random.below(12))); break;
      case 3: text.resize(at); break;
      default: text[at] = static_cast<char>(random.below(256)); break;
    }
  }
  return text;
}

// `least`: how many of the undamaged texts must be read.
void check_reader(std::string (*reader)(const std::string&), const std::vector<std::string>& texts, std::size_t least, int rounds) {
  std::size_t read = 0;
  for (const std::string& text : texts) read += reader(text).empty() ? 1 : 0;
  CHECK(read >= least);
  Random random(1);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    CHECK_NOTHROW(reader(damaged(random, random.pick(texts), random.pick(texts))));
  }
}

std::string npy_text(const std::string& dict, std::size_t data_bytes) {
  std::string text = "\x93NUMPY\x01";
  text += '\0';
  text += static_cast<char>(dict.size() & 0xff);
  text += static_cast<char>(dict.size() >> 8);
  return text + dict + std::string(data_bytes, 'x');
}

}  // namespace

TEST_SUITE("fuzz") {
  TEST_CASE("readers: damaged programs") { check_reader(read_as_program, texts_below(source_root() / "examples", ".tw", 20000), 10, runs_full_tests() ? 20000 : 300); }
  TEST_CASE("readers: damaged plans") { check_reader(read_as_ir, texts_below(source_root() / "tests" / "passes", ".ir", 4000), 100, runs_full_tests() ? 20000 : 600); }
  TEST_CASE("readers: damaged .npy files") {
    const std::vector<std::string> texts = {npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", 48), npy_text("{'descr': '|u1', 'fortran_order': True, 'shape': (5,), }\n", 5),
                                            npy_text("{'descr': '>i8', 'fortran_order': False, 'shape': (), }\n", 8), npy_text("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 0, 3), }\n", 0)};
    check_reader(read_as_npy, texts, 3, runs_full_tests() ? 50000 : 2000);
  }
  TEST_CASE("readers: damaged schedule lines") {
    check_reader(read_as_schedule_line, {"tile block i 16, j 16, k 16", "C: tile thread i 4", "unroll k 4", "contract off", "math fast", "bind i block", "peel k.block", "fuse m, e into Y at r"}, 3, runs_full_tests() ? 50000 : 2000);
  }
}

}  // namespace tilewright::fuzz
