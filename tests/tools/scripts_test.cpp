// What the scripts say on machines that lack something. Each runs in a copy of scripts/, with stand-ins for the system's own programs.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/locations.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

class ScriptFolder {
 public:
  ScriptFolder() : path_(fs::temp_directory_path() / fmt::format("tilewright-scripts-{}", getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_ / "bin");
    fs::copy(source_root() / "scripts", path_ / "scripts", fs::copy_options::recursive);
  }
  ~ScriptFolder() { fs::remove_all(path_); }

  void put_program(const std::string& name, const std::string& body) const {
    const fs::path file = path_ / "bin" / name;
    std::ofstream(file) << "#!/bin/sh\n" << body;
    fs::permissions(file, fs::perms::owner_all);
  }

  struct Said {
    int code = 0;
    std::string text;
  };
  Said run(const std::string& command) const {
    FILE* const pipe = popen(fmt::format("cd '{0}' && PATH='{0}/bin':\"$PATH\" {1} 2>&1 </dev/null", path_.string(), command).c_str(), "r");
    REQUIRE(pipe != nullptr);
    Said said;
    char piece[4096];
    for (std::size_t count = 0; (count = fread(piece, 1, sizeof piece, pipe)) > 0;) said.text.append(piece, count);
    said.code = WEXITSTATUS(pclose(pipe));
    return said;
  }

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

TEST_SUITE("scripts") {
  TEST_CASE("setup: an archive without LLVM 22 is named, and nothing is installed") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    const ScriptFolder folder;
    // As on Ubuntu 24.04: nothing is installed, and all is offered but LLVM 22.
    folder.put_program("dpkg-query", "exit 1\n");
    folder.put_program("apt-cache", "case $2 in llvm-22-dev) echo '  Candidate: (none)' ;; *) echo '  Candidate: 1.0' ;; esac\n");
    folder.put_program("apt-get", "echo \"$@\" >> apt-get.log\n");
    folder.put_program("id", "echo 0\n");
    const ScriptFolder::Said said = folder.run("scripts/setup --yes --no-cuda");
    CHECK(said.code == 1);
    CHECK(said.text.find("does not offer: llvm-22-dev\n") != std::string::npos);
    CHECK(said.text.find("archive of the LLVM project") != std::string::npos);
    CHECK(!fs::exists(folder.path() / "apt-get.log"));
  }

  TEST_CASE("setup: what is missing is listed before anything is installed") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    const ScriptFolder folder;
    folder.put_program("dpkg-query", "echo 'ii g++'\n");
    folder.put_program("apt-cache", "echo '  Candidate: 1.0'\n");
    folder.put_program("apt-get", "echo \"$@\" >> apt-get.log\necho 'After this operation, 700 MB of additional disk space will be used.'\n");
    folder.put_program("id", "echo 0\n");
    const ScriptFolder::Said said = folder.run("scripts/setup --plan --no-cuda");
    CHECK(said.code == 0);
    CHECK(said.text.find("llvm-22-dev") != std::string::npos);
    CHECK(said.text.find(" g++ ") == std::string::npos);
    CHECK(said.text.find("700 MB of additional disk space") != std::string::npos);
  }

  TEST_CASE("test-gpu: a machine without a GPU, and a folder without a test program") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    const ScriptFolder folder;
    const ScriptFolder::Said without = folder.run("scripts/test-gpu");
    CHECK(without.code == 1);
    CHECK(without.text.find("no test program here: run scripts/bundle or scripts/test first") != std::string::npos);
    if (has_gpu()) return;
    fs::create_symlink(program_folder() / "tilewright_tests", folder.path() / "tilewright_tests");
    const ScriptFolder::Said said = folder.run("scripts/test-gpu");
    CHECK(said.code == 1);
    CHECK(said.text == "error: --gpu needs a CUDA device, and none was found\n");
  }
}

}  // namespace tilewright
