// The netpbm formats.
#include "runtime/pnm.h"

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <filesystem>

#include "ir/diagnostic.h"
#include "runtime/files.h"

namespace tilewright {

namespace {

[[noreturn]] void refuse_image(const std::string& path, std::string_view what, std::string help = {}) {
  throw UserError({}, fmt::format("`{}` {}", path, what), std::move(help));
}

class ImageReader {
 public:
  ImageReader(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  // The next number; blanks and comments stand in front of it.
  std::int64_t number() {
    for (; position_ < text_.size(); ++position_) {
      if (text_[position_] == '#') {
        while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      } else if (std::isspace(static_cast<unsigned char>(text_[position_])) == 0) {
        break;
      }
    }
    if (position_ >= text_.size()) refuse_image(path_, "is truncated");
    std::int64_t value = 0;
    const std::size_t start = position_;
    for (; position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])) != 0; ++position_) {
      value = value * 10 + (text_[position_] - '0');
      if (value > (std::int64_t{1} << 32)) refuse_image(path_, "is no image: a number in it is too large");
    }
    if (position_ == start) refuse_image(path_, fmt::format("is no image: `{}` stands where a number is needed", text_[position_]));
    return value;
  }
  std::size_t position() const { return position_; }

 private:
  const std::string& text_;
  const std::string& path_;
  std::size_t position_ = 2;
};

}  // namespace

HostTensor read_pnm(const std::string& path) {
  const std::string text = read_whole_file(path);
  const char kind = text.size() > 2 && text[0] == 'P' ? text[1] : '\0';
  if (kind != '2' && kind != '3' && kind != '5' && kind != '6')
    refuse_image(path, "is no .pgm or .ppm image", "such a file starts with P2, P3, P5 or P6");
  const bool is_colour = kind == '3' || kind == '6';
  const bool is_binary = kind == '5' || kind == '6';
  ImageReader reader(text, path);
  const std::int64_t width = reader.number(), height = reader.number(), largest = reader.number();
  if (largest < 1 || largest > 255)
    refuse_image(path, fmt::format("has samples up to {}; 8 bits are read", largest), "convert it to a largest value of 255: pnmdepth 255");
  HostTensor image{Dtype::U8, is_colour ? std::vector<std::int64_t>{height, width, 3} : std::vector<std::int64_t>{height, width}, {}};
  std::int64_t count = 0;
  if (__builtin_mul_overflow(height, width * (is_colour ? 3 : 1), &count)) refuse_image(path, "says of itself that it is larger than any file");
  const std::size_t data = reader.position() + 1;  // one blank behind the header
  const auto present = static_cast<std::int64_t>(text.size() > data ? text.size() - data : 0);
  if (is_binary ? present < count : present < 2 * count - 1)
    refuse_image(path, fmt::format("is truncated: {} by {} pixels need {} bytes, and it has {}", width, height, is_binary ? count : 2 * count - 1, present));
  image.data.resize(static_cast<std::size_t>(count));
  if (is_binary && count > 0) std::memcpy(image.data.data(), text.data() + data, image.data.size());
  for (std::byte& sample : image.data) {
    std::int64_t value = is_binary ? std::to_integer<std::int64_t>(sample) : reader.number();
    if (value > largest) refuse_image(path, fmt::format("has a sample of {}, above the largest of {} that it states", value, largest));
    if (largest != 255) value = (value * 255 + largest / 2) / largest;
    sample = static_cast<std::byte>(value);
  }
  return image;
}

void write_pnm(const std::string& path, const HostTensor& tensor) {
  const bool is_grey = tensor.shape.size() == 2;
  const bool is_colour = tensor.shape.size() == 3 && tensor.shape[2] == 3;
  if (tensor.dtype != Dtype::U8 || (!is_grey && !is_colour))
    throw UserError({}, fmt::format("cannot write `{}`: an image is u8[H, W] or u8[H, W, 3], and this is {}[{}]", path, info(tensor.dtype).name,
                                    fmt::join(tensor.shape, ", ")),
                    "write an .npy file instead");
  const std::string ending = std::filesystem::path(path).extension();
  if ((ending == ".pgm" && is_colour) || (ending == ".ppm" && is_grey))
    throw UserError({}, fmt::format("cannot write `{}`: a {} image is a {} file", path, is_grey ? "grey" : "colour", is_grey ? ".pgm" : ".ppm"));
  const std::string head = fmt::format("{}\n{} {}\n255\n", is_grey ? "P5" : "P6", tensor.shape[1], tensor.shape[0]);
  replace_file(path, head, std::string_view(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()));
}

}  // namespace tilewright
