// The disk cache of machine code; see cache.h.
#include "runtime/cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tilewright {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view first_line = "tilewright-cubin-1\n";

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

fs::path file_of(const std::string& key) { return fs::path(cache_folder()) / fmt::format("{:016x}.cubin", fnv1a(key)); }

// Strings with their length in front.
void append(std::string& out, std::string_view text) { out += fmt::format("{}:", text.size()).append(text); }

class EntryReader {
 public:
  explicit EntryReader(std::string text) : text_(std::move(text)) {}
  bool skip(std::string_view expected) {
    if (text_.compare(at_, expected.size(), expected) != 0) return false;
    at_ += expected.size();
    return true;
  }
  std::optional<std::string> next() {
    const std::size_t colon = text_.find(':', at_);
    if (colon == std::string::npos || colon == at_ || colon - at_ > 15) return std::nullopt;
    std::size_t size = 0;
    for (; at_ < colon; ++at_) {
      if (text_[at_] < '0' || text_[at_] > '9') return std::nullopt;
      size = size * 10 + static_cast<std::size_t>(text_[at_] - '0');
    }
    ++at_;
    if (size > text_.size() - at_) return std::nullopt;
    std::string value = text_.substr(at_, size);
    at_ += size;
    return value;
  }
  bool is_at_end() const { return at_ == text_.size(); }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string cache_folder() {
  if (const char* folder = std::getenv("TILEWRIGHT_CACHE"); folder && *folder)
    return std::string_view(folder) == "off" ? "" : folder;
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
    return (fs::path(folder) / "tilewright").string();
  if (const char* home = std::getenv("HOME"); home && *home) return (fs::path(home) / ".cache" / "tilewright").string();
  return "";
}

std::string cache_key(const std::vector<std::string>& parts) {
  std::string key;
  for (const std::string& part : parts) append(key, part);
  return key;
}

std::optional<Cubin> find_cached(const std::string& key) {
  if (cache_folder().empty()) return std::nullopt;
  std::ifstream file(file_of(key), std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();
  EntryReader reader(std::move(content).str());
  if (!reader.skip(first_line) || reader.next() != key) return std::nullopt;
  const auto bytes = reader.next();
  const auto log = reader.next();
  if (!bytes || !log) return std::nullopt;
  Cubin cubin{{bytes->begin(), bytes->end()}, *log, {}};
  while (!reader.is_at_end()) {
    const auto name = reader.next();
    const auto entry = name ? reader.next() : std::nullopt;
    if (!entry) return std::nullopt;
    cubin.entries.emplace(*name, *entry);
  }
  return cubin;
}

void keep_cached(const std::string& key, const Cubin& cubin) {
  if (cache_folder().empty()) return;
  std::string content(first_line);
  append(content, key);
  append(content, {cubin.bytes.data(), cubin.bytes.size()});
  append(content, cubin.log);
  for (const auto& [name, entry] : cubin.entries) {
    append(content, name);
    append(content, entry);
  }
  std::error_code failed;
  fs::create_directories(cache_folder(), failed);
  const fs::path target = file_of(key);
  const fs::path temporary = target.string() + fmt::format(".{}", getpid());
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    if (!file) {
      fs::remove(temporary, failed);
      return;
    }
  }
  fs::rename(temporary, target, failed);
  if (failed) fs::remove(temporary, failed);
}

}  // namespace tilewright
