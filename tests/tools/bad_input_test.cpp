// Bad input through the command line: bad_input.txt holds commands and, behind each, its exit code and what it says.
// Every command runs in a folder of files made here, and must leave that folder as it was.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <vector>

#include "runtime/files.h"
#include "runtime/npy.h"
#include "tests/locations.h"
#include "tools/options.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

// The words of a command; '…' keeps spaces.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool is_quoted = false, is_open = false;
  for (const char c : command) {
    if (c == '\'') is_quoted = !is_quoted, is_open = true;
    else if (c == ' ' && !is_quoted) {
      if (is_open) words.push_back(word);
      word.clear(), is_open = false;
    } else word += c, is_open = true;
  }
  if (is_open) words.push_back(word);
  return words;
}

class WorkFolder {
 public:
  WorkFolder() : path_(fs::temp_directory_path() / ("tilewright-bad-" + std::to_string(getpid()))), before_(fs::current_path()) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    fs::current_path(path_);
    const std::string matmul = "fn matmul(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N] { C[i, j] = sum[k] A[i, k] * B[k, j] }\n";
    put("empty.tw", "");
    put("binary.tw", std::string("\x7f" "ELF\0\1\2\xff\xfe", 9));
    put("binary.ir", std::string("\0\1\2\xff\xfe", 5));
    put("matmul.tw", matmul);
    put("unbounded.tw", "fn f(A: f32[N]) -> B: f32[N] { B[i] = A[i] + q }\nfn g(A: f32[N]) -> B: f32[N] { B[i] = sum[k] 1.0 }\n");
    put("names.tw", "fn f(A: f32[N]) -> B: f32[N] { B[i] = A[i] + C[i] }\n");
    put("big.tw", matmul + "schedule matmul \"big\" { tile block i 32, j 32, k 2048; bind i thread.y, j thread.x; stage A, B in shared at k.block }\n");
    HostTensor a = make_tensor(Dtype::F32, {4, 6});
    write_npy("a.npy", a);
    write_npy("b.npy", make_tensor(Dtype::F32, {7, 5}));
    write_npy("half.npy", make_tensor(Dtype::F16, {6, 5}));
    std::string bytes = read_whole_file("a.npy");
    put("cut.npy", bytes.substr(0, bytes.size() - 10));
    put("head.npy", bytes.substr(0, 20));
    put("longer.npy", bytes + "more");
    bytes.replace(bytes.find("(4, 6)"), 6, "(9, 9)");
    put("lies.npy", bytes);
    put("text.npy", "these are no numbers\n");
    fs::create_directories("folder.npy");
    const std::string record = R"({"tilewright_record": 1, "verb": "ladder"})";
    for (const char* folder : {"cut", "later", "hollow", "norecord"}) fs::create_directories(folder);
    put("cut/record.json", record.substr(0, record.size() / 2));
    put("later/record.json", R"({"tilewright_record": 99, "verb": "ladder"})");
    put("hollow/record.json", record);
    put("cut.json", R"({"rows": [{"name": "b", "pe)");
    put("page.html", "a page of before");
    put("norows.json", R"({"rows": 5})");
  }
  ~WorkFolder() {
    fs::current_path(before_);
    fs::remove_all(path_);
  }
  // Every file and its content.
  std::map<std::string, std::string> content() const {
    std::map<std::string, std::string> result;
    for (const auto& entry : fs::recursive_directory_iterator(path_))
      result[entry.path().string()] = entry.is_regular_file() ? read_whole_file(entry.path().string()) : "";
    return result;
  }

 private:
  void put(const char* name, const std::string& text) { std::ofstream(name, std::ios::binary) << text; }

  fs::path path_;
  fs::path before_;
};

struct Outcome {
  int code = 0;
  std::string said;
};

Outcome call(const std::string& command) {
  const std::vector<std::string> words = words_of(command);
  std::vector<const char*> argv = {"tilewright"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, error;
  std::streambuf* const before_out = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const before_error = std::cerr.rdbuf(error.rdbuf());
  Outcome outcome;
  outcome.code = command_line(static_cast<int>(argv.size()), argv.data());
  std::cout.rdbuf(before_out);
  std::cerr.rdbuf(before_error);
  CHECK_MESSAGE(out.str().empty(), command, " printed a result: ", out.str());
  // What belongs to the machine the test runs on is left out.
  outcome.said = std::regex_replace(error.str(), std::regex("has [0-9.e+]+ GB|no GPU to run on: [^;]*;"), "[of this machine]");
  return outcome;
}

}  // namespace

TEST_CASE("command line: bad input gets a message and its exit code, and no file changes") {
  const std::string file = (source_root() / "tests/tools/bad_input.txt").string();
  std::istringstream cases(read_whole_file(file));
  const WorkFolder folder;
  const auto before = folder.content();
  std::string made;
  for (std::string line; std::getline(cases, line);) {
    if (line.starts_with("#") || line.empty()) made += line + "\n";
    if (!line.starts_with("$ ")) continue;
    if (line.find("--device cuda") != std::string::npos && has_gpu()) TILEWRIGHT_SKIP("a case is about machines without a GPU");
    const Outcome outcome = call(line.substr(2));
    CHECK_MESSAGE(outcome.code != 0, line);
    CHECK_MESSAGE(outcome.code != static_cast<int>(ExitCode::Internal), line);
    CHECK_MESSAGE(folder.content() == before, line << " changed a file");
    made += line + "\nexit " + std::to_string(outcome.code) + "\n";
    std::istringstream said(outcome.said);
    for (std::string text; std::getline(said, text);) made += "  " + text + "\n";
  }
  if (updates_expectations()) replace_file(file, {}, made);
  else CHECK(made == read_whole_file(file));
}

}  // namespace tilewright
