// Where the tests find what they read and run.
#include "tests/locations.h"

#include <cstdlib>
#include <string>

namespace tilewright {

namespace {

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::filesystem::path source_root() {
  const std::string root = environment_value("TILEWRIGHT_ROOT");
  return root.empty() ? std::filesystem::path(TILEWRIGHT_SOURCE_DIR) : std::filesystem::path(root);
}

bool has_source_tree() { return std::filesystem::exists(source_root() / "CMakeLists.txt"); }

std::filesystem::path data_root() {
  const std::string root = environment_value("TILEWRIGHT_DATA");
  return root.empty() ? source_root() / ".." / "shared" / "data" : std::filesystem::path(root);
}

std::filesystem::path program_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

bool updates_expectations() { return environment_value("TILEWRIGHT_UPDATE") == "1"; }

}  // namespace tilewright
