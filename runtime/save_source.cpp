// Keeps a text that a tool refused; see save_source.h.
#include "runtime/save_source.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace tilewright {

std::string save_source(const std::string& text, const std::string& extension) {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  std::string path = ((failed ? std::filesystem::path("/tmp") : folder) / ("tilewright-XXXXXX" + extension)).string();
  const int file = mkstemps(path.data(), static_cast<int>(extension.size()));
  if (file < 0) return "(it could not be saved)";
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(file, text.data() + written, text.size() - written);
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  close(file);
  return written == text.size() ? path : "(it could not be saved)";
}

}  // namespace tilewright
