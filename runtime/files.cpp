// Reading and atomic writing of files.
#include "runtime/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

[[noreturn]] void refuse_file(std::string_view what, const std::string& path, int code) {
  throw UserError({}, fmt::format("cannot {} `{}`: {}", what, path, std::strerror(code)));
}

std::string draft_of(const std::string& path) { return fmt::format("{}.{}.part", path, getpid()); }

}  // namespace

std::string read_whole_file(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) refuse_file("read", path, EISDIR);
  const File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) refuse_file("read", path, errno);
  std::string text;
  const auto size = std::filesystem::file_size(path, code);
  if (!code) text.reserve(static_cast<std::size_t>(size));
  char buffer[1 << 16];
  for (std::size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, file.get())) > 0;) text.append(buffer, count);
  if (std::ferror(file.get()) != 0) refuse_file("read", path, EIO);
  return text;
}

void replace_file(const std::string& path, std::string_view head, std::string_view body) {
  const std::string draft = draft_of(path);
  {
    File file(std::fopen(draft.c_str(), "wb"), std::fclose);
    if (!file) refuse_file("write", path, errno);
    const auto write = [&](std::string_view text) { return text.empty() || std::fwrite(text.data(), 1, text.size(), file.get()) == text.size(); };
    const bool is_written = write(head) && write(body);
    const int code = errno;
    const bool is_closed = std::fclose(file.release()) == 0;
    if (!is_written || !is_closed) {
      std::remove(draft.c_str());
      refuse_file("write", path, is_written ? errno : code);
    }
  }
  if (std::rename(draft.c_str(), path.c_str()) != 0) {
    const int code = errno;
    std::remove(draft.c_str());
    refuse_file("write", path, code);
  }
}

void require_writable(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) refuse_file("write", path, EISDIR);
  const std::string draft = draft_of(path);
  if (!File(std::fopen(draft.c_str(), "wb"), std::fclose)) refuse_file("write", path, errno);
  std::remove(draft.c_str());
}

}  // namespace tilewright
