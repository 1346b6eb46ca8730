// .npy files, after the format description in NumPy's documentation (numpy.lib.format).
#include "runtime/npy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

struct NpyType {
  std::string_view descr;  // without the byte order
  Dtype dtype;
};
constexpr std::array<NpyType, 12> types = {{{"f8", Dtype::F64}, {"f4", Dtype::F32}, {"f2", Dtype::F16}, {"i8", Dtype::I64}, {"i4", Dtype::I32},
                                            {"i2", Dtype::I16}, {"i1", Dtype::I8}, {"u8", Dtype::U64}, {"u4", Dtype::U32}, {"u2", Dtype::U16},
                                            {"u1", Dtype::U8}, {"b1", Dtype::Bool}}};

std::string_view descr_of(Dtype dtype) {
  if (dtype == Dtype::BF16) return "u2";
  if (dtype == Dtype::E4M3 || dtype == Dtype::E5M2) return "u1";
  for (const NpyType& type : types)
    if (type.dtype == dtype) return type.descr;
  internal_error("a tensor of a type that no file holds");
}

[[noreturn]] void refuse(const std::string& path, const std::string& why, std::string help = {}) {
  throw UserError({}, fmt::format("`{}` {}", path, why), std::move(help));
}

// The text between `'key':` and what ends its value.
std::string value_of(const std::string& header, const std::string& key, const std::string& path) {
  std::size_t at = header.find("'" + key + "'");
  if (at == std::string::npos) at = header.find("\"" + key + "\"");
  if (at != std::string::npos) at = header.find(':', at);
  if (at == std::string::npos) refuse(path, fmt::format("is no valid .npy file: its header has no `{}`", key));
  std::size_t start = header.find_first_not_of(" \t", at + 1);
  if (start == std::string::npos) refuse(path, "is no valid .npy file: its header ends early");
  char open = header[start];
  std::size_t end = std::string::npos;
  if (open == '(') end = header.find(')', start);
  else if (open == '\'' || open == '"') end = header.find(open, start + 1);
  else end = header.find_first_of(",}", start) - 1;
  if (end == std::string::npos || end < start) refuse(path, "is no valid .npy file: its header ends early");
  return header.substr(start, end - start + 1);
}

std::vector<std::int64_t> shape_in(const std::string& text, const std::string& path) {
  std::vector<std::int64_t> shape;
  std::size_t at = 1;
  while (at < text.size()) {
    at = text.find_first_of("0123456789-)", at);
    if (at == std::string::npos || text[at] == ')') break;
    char* end = nullptr;
    errno = 0;
    long long extent = std::strtoll(text.c_str() + at, &end, 10);
    if (errno != 0 || extent < 0 || end == text.c_str() + at) refuse(path, fmt::format("says the impossible shape {}", text));
    shape.push_back(extent);
    at = static_cast<std::size_t>(end - text.c_str());
  }
  return shape;
}

void swap_bytes(std::vector<std::byte>& data, std::size_t width) {
  for (std::size_t at = 0; at + width <= data.size(); at += width) std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at), data.begin() + static_cast<std::ptrdiff_t>(at + width));
}

// From column-major to row-major.
HostTensor turned(const HostTensor& tensor) {
  HostTensor result = make_tensor(tensor.dtype, tensor.shape);
  std::size_t bytes = static_cast<std::size_t>(bytes_of(tensor.dtype));
  std::vector<std::int64_t> place(tensor.shape.size(), 0);
  std::vector<std::int64_t> strides(tensor.shape.size(), 1);
  for (std::size_t d = 1; d < strides.size(); ++d) strides[d] = strides[d - 1] * tensor.shape[d - 1];
  for (std::int64_t n = 0; n < tensor.elements(); ++n) {
    std::int64_t from = 0;
    for (std::size_t d = 0; d < place.size(); ++d) from += place[d] * strides[d];
    std::memcpy(result.data.data() + static_cast<std::size_t>(n) * bytes, tensor.data.data() + static_cast<std::size_t>(from) * bytes, bytes);
    for (std::size_t d = place.size(); d-- > 0;) {
      if (++place[d] < tensor.shape[d]) break;
      place[d] = 0;
    }
  }
  return result;
}

}  // namespace

HostTensor read_npy(const std::string& path, Dtype wanted, const std::string& name) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) refuse(path, "is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError({}, fmt::format("cannot read `{}`: {}", path, std::strerror(errno)));
  std::array<unsigned char, 12> start{};
  file.read(reinterpret_cast<char*>(start.data()), 10);
  if (file.gcount() != 10 || std::memcmp(start.data(), "\x93NUMPY", 6) != 0) refuse(path, "is no .npy file");
  std::size_t header_bytes = static_cast<std::size_t>(start[8]) | static_cast<std::size_t>(start[9]) << 8;
  if (start[6] < 1 || start[6] > 3) refuse(path, fmt::format("has format version {}; 1 to 3 are known", start[6]));
  if (start[6] > 1) {
    file.read(reinterpret_cast<char*>(start.data() + 10), 2);
    header_bytes |= static_cast<std::size_t>(start[10]) << 16 | static_cast<std::size_t>(start[11]) << 24;
  }
  constexpr std::size_t longest_header = 1 << 20;
  if (header_bytes > longest_header) refuse(path, fmt::format("says its header has {} bytes", header_bytes));
  std::string header(header_bytes, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));
  if (!file) refuse(path, "is truncated inside its header");

  std::string descr = value_of(header, "descr", path);
  if (descr.size() < 4 || (descr[0] != '\'' && descr[0] != '"')) refuse(path, "holds records, not plain elements");
  char order = descr[1];
  std::string type = descr.substr(2, descr.size() - 3);
  std::optional<Dtype> stored;
  for (const NpyType& row : types)
    if (row.descr == type) stored = row.dtype;
  if (!stored) refuse(path, fmt::format("holds elements of type {}, which no tensor has", descr));
  bool raw = descr_of(wanted) == type && *stored != wanted;  // bf16 as u16, fp8 as u8
  if (*stored != wanted && !raw)
    refuse(path, fmt::format("holds {}, `{}` is {}", info(*stored).name, name, info(wanted).name),
           fmt::format("convert it: numpy.save(file, numpy.load(file).astype({}))", wanted == Dtype::BF16 || is_narrow_float(wanted) ? "…), as raw bits" : fmt::format("\"{}\"", descr_of(wanted))));
  std::vector<std::int64_t> shape = shape_in(value_of(header, "shape", path), path);
  std::string fortran = value_of(header, "fortran_order", path);

  std::int64_t bytes = bytes_of(wanted);
  for (std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) refuse(path, "says a shape beyond all memory");
  std::uintmax_t size = std::filesystem::file_size(path, failure);
  std::uintmax_t data_at = static_cast<std::uintmax_t>(file.tellg());
  if (!failure && size - data_at != static_cast<std::uintmax_t>(bytes))
    refuse(path, fmt::format("{}: its shape needs {} bytes of elements, it has {}", size - data_at < static_cast<std::uintmax_t>(bytes) ? "is truncated" : "is longer than its shape", bytes, size - data_at));
  HostTensor tensor = make_tensor(wanted, shape);
  file.read(reinterpret_cast<char*>(tensor.data.data()), static_cast<std::streamsize>(tensor.data.size()));
  if (!file && !tensor.data.empty()) refuse(path, "is truncated");
  if (order == '>') swap_bytes(tensor.data, static_cast<std::size_t>(bytes_of(wanted)));
  return fortran.rfind("True", 0) == 0 && shape.size() > 1 ? turned(tensor) : tensor;
}

void write_npy(const std::string& path, const HostTensor& tensor) {
  std::string shape;
  for (std::int64_t extent : tensor.shape) shape += fmt::format("{}, ", extent);
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string_view descr = descr_of(tensor.dtype);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", bytes_of(tensor.dtype) > 1 ? '<' : '|', descr, shape);
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::string beside = fmt::format("{}.{}.part", path, getpid());
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  if (!file) throw UserError({}, fmt::format("cannot write `{}`: {}", path, std::strerror(errno)));
  file.write("\x93NUMPY\x01\x00", 8);
  const char length[2] = {static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  file.write(length, 2);
  file << header;
  file.write(reinterpret_cast<const char*>(tensor.data.data()), static_cast<std::streamsize>(tensor.data.size()));
  file.flush();
  bool written = file.good();
  file.close();
  if (!written || std::rename(beside.c_str(), path.c_str()) != 0) {
    std::string why = std::strerror(errno);
    std::remove(beside.c_str());
    throw MachineError(fmt::format("cannot write `{}`: {}", path, why));
  }
}

}  // namespace tilewright
