// .pgm and .ppm, binary, 8 bits a sample.
#include "runtime/pnm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

// The next number of the header; comments run from # to the end of the line.
std::int64_t next_number(std::istream& file, const std::string& path) {
  int c = file.get();
  while (c == '#' || std::isspace(c)) {
    if (c == '#')
      while (c != '\n' && c != EOF) c = file.get();
    c = file.get();
  }
  std::int64_t value = 0;
  int digits = 0;
  for (; std::isdigit(c) && digits < 10; ++digits) {
    value = value * 10 + (c - '0');
    c = file.get();
  }
  if (digits == 0 || digits == 10) throw UserError({}, fmt::format("`{}` is no valid image: its header has no size", path));
  return value;
}

}  // namespace

HostTensor read_pnm(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError({}, fmt::format("cannot read `{}`: {}", path, std::strerror(errno)));
  char kind[2] = {};
  file.read(kind, 2);
  if (!file || kind[0] != 'P' || (kind[1] != '5' && kind[1] != '6')) throw UserError({}, fmt::format("`{}` is no binary .pgm or .ppm image", path));
  std::int64_t width = next_number(file, path);
  std::int64_t height = next_number(file, path);
  std::int64_t most = next_number(file, path);
  if (most != 255) throw UserError({}, fmt::format("`{}` has samples up to {}; 255 is read", path, most));
  std::vector<std::int64_t> shape = {height, width};
  if (kind[1] == '6') shape.push_back(3);
  HostTensor image = make_tensor(Dtype::U8, shape);
  file.read(reinterpret_cast<char*>(image.data.data()), static_cast<std::streamsize>(image.data.size()));
  if (!file && !image.data.empty()) throw UserError({}, fmt::format("`{}` is truncated: {} of {} bytes", path, file.gcount(), image.data.size()));
  return image;
}

void write_pnm(const std::string& path, const HostTensor& tensor) {
  bool colour = tensor.shape.size() == 3 && tensor.shape[2] == 3;
  if (tensor.dtype != Dtype::U8 || (tensor.shape.size() != 2 && !colour))
    throw UserError({}, fmt::format("`{}`: an image is u8[H, W] or u8[H, W, 3]", path), "write an .npy file");
  std::string beside = fmt::format("{}.{}.part", path, getpid());
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  if (!file) throw UserError({}, fmt::format("cannot write `{}`: {}", path, std::strerror(errno)));
  file << fmt::format("P{}\n{} {}\n255\n", colour ? 6 : 5, tensor.shape[1], tensor.shape[0]);
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
