// Files of tensors: .npy in every dtype and both orders, images, and files that are not what they say.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "runtime/npy.h"
#include "runtime/pnm.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

// A folder that goes with the test.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("tilewright_files_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

template <class F>
std::string refusal(F action, std::string* help = nullptr) {
  try {
    action();
  } catch (const UserError& error) {
    if (help != nullptr) *help = error.diagnostics().front().help;
    return error.what();
  }
  return "no error";
}

HostTensor counting(Dtype dtype, std::vector<std::int64_t> shape) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  for (std::int64_t element = 0; element < tensor.elements(); ++element) write_integer(tensor, element, element % 7);
  return tensor;
}

void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// A file of version 1 with this header and data.
std::string npy(const std::string& header, const std::string& data) {
  const std::string head = header + "\n";
  return std::string("\x93NUMPY\x01", 7) + std::string(1, '\0') + static_cast<char>(head.size() & 255) + static_cast<char>(head.size() >> 8) + head + data;
}

}  // namespace

TEST_SUITE("npy") {
  TEST_CASE("every dtype and shape comes back, in both orders") {
    const Folder folder;
    const std::string path = folder / "a.npy";
    for (const Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2, Dtype::I64, Dtype::I32,
                              Dtype::I16, Dtype::I8, Dtype::U64, Dtype::U32, Dtype::U16, Dtype::U8, Dtype::Bool})
      for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {5}, {3, 4}, {2, 3, 5}, {0, 3}})
        for (const NpyOrder order : {NpyOrder::RowMajor, NpyOrder::ColumnMajor}) {
          const HostTensor tensor = counting(dtype, shape);
          write_npy(path, tensor, order);
          const HostTensor back = read_npy(path, dtype, "A");
          CHECK(back.shape == shape);
          CHECK(back.data == tensor.data);
          CHECK(read_whole_file(path).size() % 64 == tensor.data.size() % 64);
        }
  }

  TEST_CASE("column-major data lies by columns") {
    const Folder folder;
    write_npy(folder / "a.npy", counting(Dtype::U8, {2, 3}), NpyOrder::ColumnMajor);
    const std::string text = read_whole_file(folder / "a.npy");
    CHECK(text.substr(text.size() - 6) == std::string("\0\3\1\4\2\5", 6));
  }

  TEST_CASE("another dtype is refused with the line that converts it") {
    const Folder folder;
    write_npy(folder / "a.npy", counting(Dtype::F64, {2}));
    std::string help;
    CHECK(refusal([&] { read_npy(folder / "a.npy", Dtype::F32, "X"); }, &help) == "`X` is f32, but `" + (folder / "a.npy") + "` holds f64");
    CHECK(help.find(".astype('f4')") != std::string::npos);
    CHECK(refusal([&] { read_npy(folder / "a.npy", Dtype::BF16, "X"); }, &help).ends_with("holds f64"));
    CHECK(help.find("view(np.uint16)") != std::string::npos);
    CHECK(read_npy(folder / "a.npy").dtype == Dtype::F64);
  }

  TEST_CASE("other writers' headers") {
    const Folder folder;
    const std::string path = folder / "a.npy";
    put(path, npy("{\"shape\": (2L,), \"descr\": \">i2\", \"fortran_order\": False}", std::string("\0\1\1\0", 4)));
    const HostTensor swapped = read_npy(path, Dtype::I16, "X");
    CHECK(read_integer(swapped, 0) == 1);
    CHECK(read_integer(swapped, 1) == 256);
    put(path, npy("{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }", std::string("\x80\x3f", 2)));
    CHECK(read_real(read_npy(path, Dtype::BF16, "X"), 0) == 1.0);
  }

  TEST_CASE("files that are not what they say") {
    const Folder folder;
    const std::string path = folder / "a.npy";
    const auto says = [&](const std::string& text) {
      put(path, text);
      std::string what = refusal([&] { read_npy(path); });
      CHECK(what.starts_with("`" + path + "` "));
      return what.substr(path.size() + 3);
    };
    const std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    CHECK(says("") == "is no .npy file");
    CHECK(says("\x93NUMPY") == "is truncated: it ends in its header");
    CHECK(says(std::string("\x93NUMPY\x01\0\xff\x7f{", 11)) == "is truncated: it ends in its header");
    CHECK(says(std::string("\x93NUMPY\x09\0\x01\x00{", 11)) == "is of version 9 of the .npy format; 1 to 3 are known");
    CHECK(says(npy(head, "12345678")) == "has 8 bytes of data, but its shape [3] of f32 needs 12");
    CHECK(says(npy(head, "1234567890123")) == "has 13 bytes of data, but its shape [3] of f32 needs 12");
    CHECK(says(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "1234")) ==
          "has 4 bytes of data, but its shape [4294967296, 4294967296] of f32 needs more than any file has");
    CHECK(says(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "1234")) ==
          "says of itself that it has more elements than any file");
    CHECK(says(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678")) == "holds NumPy's `<c8`, which has no dtype here");
    CHECK(says(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")) == "holds records, not numbers of one type");
    for (const char* damaged : {"", "{", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 3, 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                                "{'descr': '<f4', 'fortran_order': False, 'shape': 1}", "{'descr': '<f4, 'fortran_order': False}"})
      CHECK(says(npy(damaged, "1234")) == "is no .npy file: its header cannot be read");
  }

  TEST_CASE("paths that cannot be read or written") {
    const Folder folder;
    CHECK(refusal([&] { read_npy(folder / "none.npy"); }) == "cannot read `" + (folder / "none.npy") + "`: No such file or directory");
    CHECK(refusal([&] { read_npy(folder.path); }) == "cannot read `" + folder.path.string() + "`: Is a directory");
    CHECK(refusal([&] { write_npy(folder / "no/a.npy", counting(Dtype::F32, {2})); }) == "cannot write `" + (folder / "no/a.npy") + "`: No such file or directory");
    std::filesystem::create_directories(folder.path / "b.npy");
    CHECK(refusal([&] { write_npy(folder / "b.npy", counting(Dtype::F32, {2})); }) != "no error");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);  // no half-written file is left
  }

  TEST_CASE("the shared data") {
    if (!std::filesystem::exists(data_root() / "digits_x.npy")) TILEWRIGHT_SKIP("no shared data");
    CHECK(read_npy((data_root() / "digits_x.npy").string(), Dtype::F32, "X").shape == std::vector<std::int64_t>{397, 64});
    CHECK(read_npy((data_root() / "flower.npy").string(), Dtype::U8, "I").shape == std::vector<std::int64_t>{427, 640, 3});
    CHECK(read_npy((data_root() / "digits_y.npy").string()).dtype == Dtype::I32);
  }
}

TEST_SUITE("pnm") {
  TEST_CASE("images come back") {
    const Folder folder;
    const HostTensor grey = counting(Dtype::U8, {3, 4}), colour = counting(Dtype::U8, {3, 4, 3});
    write_pnm(folder / "a.pgm", grey);
    write_pnm(folder / "a.ppm", colour);
    CHECK(read_pnm(folder / "a.pgm").data == grey.data);
    CHECK(read_pnm(folder / "a.ppm").shape == colour.shape);
    CHECK(read_pnm(folder / "a.ppm").data == colour.data);
  }

  TEST_CASE("text images, comments, smaller ranges") {
    const Folder folder;
    put(folder / "a.pgm", "P2 # grey\n# a comment\n3 1\n15\n0 15 5\n");
    const HostTensor image = read_pnm(folder / "a.pgm");
    CHECK(image.shape == std::vector<std::int64_t>{1, 3});
    CHECK(read_integer(image, 1) == 255);
    CHECK(read_integer(image, 2) == 85);
  }

  TEST_CASE("what is no image is refused") {
    const Folder folder;
    const auto says = [&](const std::string& text) {
      put(folder / "a.pgm", text);
      return refusal([&] { read_pnm(folder / "a.pgm"); }).substr((folder / "a.pgm").size() + 3);
    };
    CHECK(says("") == "is no .pgm or .ppm image");
    CHECK(says("P4\n1 1\n") == "is no .pgm or .ppm image");
    CHECK(says("P5\n4 x") == "is no image: `x` stands where a number is needed");
    CHECK(says("P5\n4 4\n65535\n") == "has samples up to 65535; 8 bits are read");
    CHECK(says("P5\n4 4\n255\nabc") == "is truncated: 4 by 4 pixels need 16 bytes, and it has 3");
    CHECK(says("P5\n4294967295 4294967295\n255\nabc").starts_with("says of itself"));
    CHECK(says("P2\n1 1\n7\n9\n") == "has a sample of 9, above the largest of 7 that it states");
    CHECK(refusal([&] { write_pnm(folder / "b.pgm", counting(Dtype::F32, {2, 2})); }) ==
          "cannot write `" + (folder / "b.pgm") + "`: an image is u8[H, W] or u8[H, W, 3], and this is f32[2, 2]");
    CHECK(refusal([&] { write_pnm(folder / "b.pgm", counting(Dtype::U8, {2, 2, 3})); }).ends_with("a colour image is a .ppm file"));
  }
}

}  // namespace tilewright
