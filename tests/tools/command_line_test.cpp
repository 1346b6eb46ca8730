// The command line as a script calls it: exit codes, files that must not be lost, a person's own kernel.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "frontend/program.h"
#include "runtime/files.h"
#include "runtime/library/hands.h"
#include "tests/locations.h"
#include "tools/options.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

const char* const doubled = "fn twice(X: f32[N]) -> Y: f32[N] { Y[i] = 2.0 * X[i] }";

int call(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"tilewright"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return command_line(static_cast<int>(argv.size()), argv.data());
}

// A folder of this process' own, gone at the end.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("tilewright-test-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

}  // namespace

TEST_CASE("command line: a result is saved and no other file is touched") {
  const Folder folder;
  std::ofstream(folder.file("y.npy.part")) << "somebody's";
  CHECK(call({"run", "-e", doubled, "--set", "N=5", "--device", "cpu", "--out", "Y=" + folder.file("y.npy")}) == 0);
  CHECK(fs::exists(folder.file("y.npy")));
  CHECK(read_whole_file(folder.file("y.npy.part")) == "somebody's");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 2);
}

TEST_CASE("command line: bad input ends with its exit code") {
  const Folder folder;
  CHECK(call({"run", "-e", doubled, "--device", "cpu", "--out", "Y=" + folder.file("none/y.npy")}) == 1);
  CHECK(call({"run", "-e", doubled, "--device", "cpu", "--in", "X=" + folder.file("none.npy")}) == 1);
  CHECK(call({"run", "-e", "", "--device", "cpu"}) == 1);
  CHECK(call({"run", "-e", doubled, "--device", "cpu", "--then", "stage X in shared at q"}) == 1);
  CHECK(call({"run", "-e", doubled, "--device", "nothing"}) == 1);
  CHECK(call({"run", "--no-such-option"}) == 2);
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("hand file: a launch keeps the template arguments of its comment") {
  const fs::path student = source_root() / "examples/student/matmul_student.cu";
  if (!fs::exists(student)) TILEWRIGHT_SKIP("no examples here");
  const Program program = parse_program(read_whole_file((source_root() / "examples/ch05_tiled_matmul/matmul.tw").string()), "matmul.tw");
  const HandProgram hand = hand_from_file(student.string(), program.fns.at(0));
  std::vector<std::string> launched;
  for (const HandStep& step : hand.steps)
    if (const HandLaunch* launch = std::get_if<HandLaunch>(&step)) launched.push_back(launch->kernel);
  CHECK(launched == std::vector<std::string>{"tiled<16>"});
}

}  // namespace tilewright
