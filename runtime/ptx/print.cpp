// printf in kernels: the arguments lie one behind the other, each at a multiple of its size.
#include "runtime/ptx/print.h"

#include <cstdio>
#include <string_view>

#include "runtime/ptx/access.h"

namespace tilewright::ptx {

namespace {

template <class T>
T take(Warp& warp, const Op& op, int lane, std::uint64_t& address) {
  address = (address + sizeof(T) - 1) / sizeof(T) * sizeof(T);
  T value{};
  if (const Place place = locate(warp, op, Space::Generic, address, sizeof(T), lane, false); place.data != nullptr) std::memcpy(&value, place.data, sizeof(T));
  address += sizeof(T);
  return value;
}

}  // namespace

std::string text_at(Warp& warp, const Op& op, int lane, std::uint64_t address) {
  std::string text;
  while (text.size() < 4096) {
    const Place place = locate(warp, op, Space::Generic, address++, 1, lane, false);
    if (place.data == nullptr || *place.data == std::byte{0}) break;
    text += static_cast<char>(*place.data);
  }
  return text;
}

int print_formatted(Warp& warp, const Op& op, int lane, std::uint64_t format_address, std::uint64_t address) {
  const std::string format = text_at(warp, op, lane, format_address);
  std::string& out = *warp.core->printed;
  int count = 0;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    if (at + 1 < format.size() && format[at + 1] == '%') {
      out += '%';
      ++at;
      continue;
    }
    // Flags, width and precision stay as they are; `*` becomes its number, the length is looked at and left out.
    std::string piece = "%";
    bool is_wide = false;
    char conversion = '\0';
    while (++at < format.size() && conversion == '\0') {
      const char c = format[at];
      if (c == '*') piece += std::to_string(take<std::int32_t>(warp, op, lane, address)), ++count;
      else if (c == 'l' || c == 'j' || c == 'z' || c == 't') is_wide = true;
      else if (c == 'h' || c == 'L') continue;
      else if (std::string_view("0123456789.+- #").find(c) != std::string_view::npos) piece += c;
      else conversion = c;
    }
    --at;
    char text[512] = "";
    ++count;
    switch (conversion) {
      case 'd': case 'i': {
        const long long value = is_wide ? take<std::int64_t>(warp, op, lane, address) : take<std::int32_t>(warp, op, lane, address);
        std::snprintf(text, sizeof text, (piece + "lld").c_str(), value);
        break;
      }
      case 'u': case 'x': case 'X': case 'o': {
        const unsigned long long value = is_wide ? take<std::uint64_t>(warp, op, lane, address) : take<std::uint32_t>(warp, op, lane, address);
        std::snprintf(text, sizeof text, (piece + "ll" + conversion).c_str(), value);
        break;
      }
      case 'c': std::snprintf(text, sizeof text, (piece + "c").c_str(), take<std::int32_t>(warp, op, lane, address)); break;
      case 'f': case 'F': case 'e': case 'E': case 'g': case 'G': case 'a': case 'A': std::snprintf(text, sizeof text, (piece + conversion).c_str(), take<double>(warp, op, lane, address)); break;
      case 'p': std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(take<std::uint64_t>(warp, op, lane, address))); break;
      case 's': std::snprintf(text, sizeof text, (piece + "s").c_str(), text_at(warp, op, lane, take<std::uint64_t>(warp, op, lane, address)).c_str()); break;
      default: std::snprintf(text, sizeof text, "%s%c", piece.c_str(), conversion);
    }
    out += text;
  }
  return count;
}

}  // namespace tilewright::ptx
