// NumPy's format: magic, version, length of the header, a Python dict with descr, fortran_order and shape, the data.
#include "runtime/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "ir/diagnostic.h"
#include "runtime/files.h"

namespace tilewright {

namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";

[[noreturn]] void refuse_npy(const std::string& path, std::string_view what, std::string help = {}) {
  throw UserError({}, fmt::format("`{}` {}", path, what), std::move(help));
}

struct Header {
  std::string descr;
  bool is_fortran = false;
  std::vector<std::int64_t> shape;
};

// Reads the dict's text, `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header read() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    need('{');
    while (!take('}')) {
      const std::string key = quoted();
      need(':');
      if (key == "descr") {
        skip_blanks();
        if (position_ < text_.size() && text_[position_] == '[') refuse_npy(path_, "holds records, not numbers of one type");
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order") {
        header.is_fortran = word() == "True";
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        damaged();
      }
      if (!take(',')) {
        need('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape) damaged();
    return header;
  }

 private:
  [[noreturn]] void damaged() const { refuse_npy(path_, "is no .npy file: its header cannot be read"); }
  void skip_blanks() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])) != 0) ++position_;
  }
  bool take(char c) {
    skip_blanks();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void need(char c) {
    if (!take(c)) damaged();
  }
  std::string quoted() {
    skip_blanks();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') damaged();
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) damaged();
    std::string result(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return result;
  }
  std::string word() {
    skip_blanks();
    const std::size_t start = position_;
    while (position_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[position_])) != 0) ++position_;
    std::string result(text_.substr(start, position_ - start));
    if (result != "True" && result != "False") damaged();
    return result;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> extents;
    need('(');
    while (!take(')')) {
      skip_blanks();
      std::int64_t extent = 0;
      const std::size_t start = position_;
      for (; position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])) != 0; ++position_)
        if (__builtin_mul_overflow(extent, 10, &extent) || __builtin_add_overflow(extent, text_[position_] - '0', &extent))
          refuse_npy(path_, "says of itself that it has more elements than any file");
      if (position_ == start || extents.size() > 64) damaged();
      take('L');  // Python 2
      extents.push_back(extent);
      if (!take(',')) {
        need(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t position_ = 0;
};

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t n = bytes.size(); n-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[n]);
  return value;
}

struct Code {
  Dtype dtype;
  std::string_view letters;  // NumPy's kind and bytes
};
constexpr Code codes[] = {{Dtype::F64, "f8"}, {Dtype::F32, "f4"}, {Dtype::F16, "f2"}, {Dtype::I64, "i8"}, {Dtype::I32, "i4"},
                          {Dtype::I16, "i2"}, {Dtype::I8, "i1"},  {Dtype::U64, "u8"}, {Dtype::U32, "u4"}, {Dtype::U16, "u2"},
                          {Dtype::U8, "u1"},  {Dtype::Bool, "b1"}, {Dtype::BF16, "V2"}, {Dtype::E4M3, "V1"}};

std::string_view code_of(Dtype dtype) {
  if (dtype == Dtype::BF16) return "u2";
  if (dtype == Dtype::E4M3 || dtype == Dtype::E5M2) return "u1";
  const auto code = std::find_if(std::begin(codes), std::end(codes), [&](const Code& c) { return c.dtype == dtype; });
  if (code == std::end(codes)) internal_error(fmt::format("a tensor of {} in a file", info(dtype).name));
  return code->letters;
}

// The line that makes a file of `wanted` from one of another dtype.
std::string cure(const std::string& path, Dtype wanted) {
  const auto line = [&](std::string_view conversion) {
    return fmt::format("convert it: python3 -c \"import numpy as np; np.save('{0}', np.load('{0}'){1})\"", path, conversion);
  };
  if (wanted == Dtype::BF16)
    return fmt::format("convert it: python3 -c \"import numpy as np, ml_dtypes; np.save('{0}', np.load('{0}').astype(ml_dtypes.bfloat16).view(np.uint16))\"", path);
  if (wanted == Dtype::E4M3 || wanted == Dtype::E5M2)
    return fmt::format("convert it: python3 -c \"import numpy as np, ml_dtypes; np.save('{0}', np.load('{0}').astype(ml_dtypes.float8_{1}).view(np.uint8))\"",
                       path, wanted == Dtype::E4M3 ? "e4m3fn" : "e5m2");
  if (wanted == Dtype::Bool) return line(" != 0");
  return line(fmt::format(".astype('{}')", code_of(wanted)));
}

struct Contents {
  Header header;
  Dtype dtype = Dtype::F32;
  bool is_swapped = false;
  bool is_raw = false;  // V1, V2: bits of a type that NumPy has not
  std::string text;
  std::size_t data = 0;  // where it starts
};

Contents read_contents(const std::string& path) {
  Contents contents;
  contents.text = read_whole_file(path);
  const std::string& text = contents.text;
  if (!std::string_view(text).starts_with(npy_magic)) refuse_npy(path, "is no .npy file");
  if (text.size() < 10) refuse_npy(path, "is truncated: it ends in its header");
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) refuse_npy(path, fmt::format("is of version {} of the .npy format; 1 to 3 are known", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t length = little_endian(std::string_view(text).substr(8, length_bytes));
  contents.data = 8 + length_bytes + length;
  if (text.size() < contents.data) refuse_npy(path, "is truncated: it ends in its header");
  contents.header = HeaderReader(std::string_view(text).substr(8 + length_bytes, length), path).read();

  std::string_view descr = contents.header.descr;
  const char order = descr.empty() ? '?' : descr.front();
  if (order == '<' || order == '>' || order == '|' || order == '=') descr.remove_prefix(1);
  contents.is_swapped = order == '>';
  const auto code = std::find_if(std::begin(codes), std::end(codes), [&](const Code& c) { return c.letters == descr; });
  if (code == std::end(codes)) refuse_npy(path, fmt::format("holds NumPy's `{}`, which has no dtype here", contents.header.descr));
  contents.dtype = code->dtype;
  contents.is_raw = descr.front() == 'V';

  std::int64_t bytes = bytes_of(contents.dtype);
  bool is_empty = false, overflows = false;
  for (const std::int64_t extent : contents.header.shape) {
    is_empty = is_empty || extent == 0;
    overflows = overflows || __builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (is_empty) bytes = 0;
  const auto present = static_cast<std::int64_t>(text.size() - contents.data);
  if ((overflows && !is_empty) || bytes != present)
    refuse_npy(path, fmt::format("has {} bytes of data, but its shape [{}] of {} needs {}", present, fmt::join(contents.header.shape, ", "),
                             info(contents.dtype).name, overflows && !is_empty ? "more than any file has" : std::to_string(bytes)));
  return contents;
}

// Moves elements between row-major and column-major order; `to_rows` from column-major.
std::vector<std::byte> reordered(const std::byte* data, const std::vector<std::int64_t>& shape, std::size_t size, bool to_rows) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  std::vector<std::byte> result(static_cast<std::size_t>(count) * size);
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::int64_t row_major = 0; row_major < count; ++row_major) {
    std::int64_t column_major = 0;
    for (std::size_t axis = shape.size(); axis-- > 0;) column_major = column_major * shape[axis] + index[axis];
    const auto from = static_cast<std::size_t>(to_rows ? column_major : row_major);
    const auto to = static_cast<std::size_t>(to_rows ? row_major : column_major);
    std::memcpy(result.data() + to * size, data + from * size, size);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

HostTensor tensor_of(const Contents& contents, Dtype dtype) {
  HostTensor tensor = make_tensor(dtype, contents.header.shape);
  const auto size = static_cast<std::size_t>(bytes_of(dtype));
  const auto* data = reinterpret_cast<const std::byte*>(contents.text.data()) + contents.data;
  if (contents.header.is_fortran && tensor.shape.size() > 1) tensor.data = reordered(data, tensor.shape, size, true);
  else if (!tensor.data.empty()) std::memcpy(tensor.data.data(), data, tensor.data.size());
  if (contents.is_swapped && size > 1)
    for (std::size_t offset = 0; offset < tensor.data.size(); offset += size)
      std::reverse(tensor.data.begin() + static_cast<std::ptrdiff_t>(offset), tensor.data.begin() + static_cast<std::ptrdiff_t>(offset + size));
  if (dtype == Dtype::Bool)
    for (std::byte& value : tensor.data) value = value == std::byte{0} ? std::byte{0} : std::byte{1};
  return tensor;
}

}  // namespace

HostTensor read_npy(const std::string& path) {
  const Contents contents = read_contents(path);
  return tensor_of(contents, contents.dtype);
}

HostTensor read_npy(const std::string& path, Dtype wanted, const std::string& name) {
  const Contents contents = read_contents(path);
  const bool is_byte = contents.dtype == Dtype::U8 || contents.dtype == Dtype::E4M3;
  const bool is_bits = (wanted == Dtype::BF16 && contents.dtype == Dtype::U16) || ((wanted == Dtype::E4M3 || wanted == Dtype::E5M2) && is_byte);
  if (contents.dtype != wanted && !is_bits)
    throw UserError({}, fmt::format("`{}` is {}, but `{}` holds {}", name, info(wanted).name, path, info(contents.dtype).name), cure(path, wanted));
  return tensor_of(contents, wanted);
}

void write_npy(const std::string& path, const HostTensor& tensor, NpyOrder order) {
  const bool is_fortran = order == NpyOrder::ColumnMajor;
  std::string shape = fmt::format("{}", fmt::join(tensor.shape, ", "));
  if (tensor.shape.size() == 1) shape += ",";
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': ({}), }}", bytes_of(tensor.dtype) == 1 ? '|' : '<',
                                 code_of(tensor.dtype), is_fortran ? "True" : "False", shape);
  const std::size_t head_bytes = 10;
  dict.append((64 - (head_bytes + dict.size() + 1) % 64) % 64, ' ');  // the data starts at a multiple of 64
  dict += '\n';
  if (dict.size() > 65535) internal_error("a shape with thousands of axes");
  std::string head(npy_magic);
  head += {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  head += dict;
  const auto as_text = [](const std::vector<std::byte>& data) { return std::string_view(reinterpret_cast<const char*>(data.data()), data.size()); };
  if (!is_fortran || tensor.shape.size() < 2) return replace_file(path, head, as_text(tensor.data));
  replace_file(path, head, as_text(reordered(tensor.data.data(), tensor.shape, static_cast<std::size_t>(bytes_of(tensor.dtype)), false)));
}

}  // namespace tilewright
