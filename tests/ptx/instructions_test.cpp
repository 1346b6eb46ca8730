// Single instructions on the PTX machine: cases/*.txt, a line each, with what they give in *.expected beside them.
//
//   add.f32 f32 | f32 7fc00001 | f32 3f800000      instruction, type of the result | operands: type and bits
//   lop3.b32 b32 | b32 f0 | b32 cc | b32 aa | = 0xe8     an operand that stands in the text
//
// A result that PTX leaves open is printed as `open`. Where nvJitLink is found, it has to take the text too.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/nvjitlink.h"
#include "runtime/ptx/ptx.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// One case as PTX: operands into registers, the instruction, the result to its place.
std::string ptx_of_case(const std::string& line, int number) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; std::getline(stream, part, '|');) parts.push_back(trimmed(part));
  std::istringstream head(parts[0]);
  std::string instruction, result;
  head >> instruction >> result;
  const auto register_type = [](const std::string& type) { return type == "pred" ? type : "b" + type.substr(type.find_first_of("0123456789")); };
  std::string text = fmt::format("  {{ // {}\n    .reg .{} %d; .reg .pred %true;\n", line, register_type(result));
  std::string operands;
  for (std::size_t n = 1; n < parts.size(); ++n) {
    std::istringstream part(parts[n]);
    std::string type, bits;
    part >> type >> bits;
    if (type == "=") {
      operands += ", " + bits;
      continue;
    }
    operands += fmt::format(", %a{}", n);
    text += fmt::format("    .reg .{} %a{};\n", register_type(type), n);
    if (type == "pred") text += fmt::format("    setp.ne.u32 %a{}, {}, 0;\n", n, bits);
    else text += fmt::format("    mov.{} %a{}, 0x{};\n", register_type(type), n, bits);
  }
  text += fmt::format("    {} %d{};\n", instruction, operands);
  if (result == "pred") text += fmt::format("    .reg .b32 %word;\n    selp.b32 %word, 1, 0, %d;\n    st.global.b32 [%out+{}], %word;\n", 8 * number);
  else text += fmt::format("    st.global.{} [%out+{}], %d;\n", register_type(result), 8 * number);
  return text + "  }\n";
}

std::string results_of(const fs::path& path) {
  std::vector<std::string> cases;
  for (const std::string& line : lines_of(path))
    if (!line.empty() && line[0] != '#') cases.push_back(line);
  std::string text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 results) {\n  .reg .b64 %out;\n  ld.param.u64 %out, [results];\n";
  for (std::size_t n = 0; n < cases.size(); ++n) text += ptx_of_case(cases[n], static_cast<int>(n));
  text += "  ret;\n}\n";
  if (find_tool(Tool::NvJitLink)) {
    NvJitLinkOptions options;
    options.arch = "sm_90a";
    CHECK(!assemble_ptx(text, options).bytes.empty());
  }
  ptx::PtxMachine machine(text);
  ptx::Region results;
  results.name = "results";
  results.bytes = 8 * cases.size();
  results.own.resize(results.bytes);
  results.written.resize(results.bytes);
  const std::uint64_t address = machine.place(std::move(results));
  std::vector<std::byte> parameters(8);
  std::memcpy(parameters.data(), &address, sizeof address);
  machine.launch("k", {1, 1, 1}, {1, 1, 1}, 0, parameters);
  for (const std::string& fault : machine.faults().sentences()) CHECK_MESSAGE(false, fault);
  std::string out;
  const ptx::Region& region = machine.region_at(address);
  for (std::size_t n = 0; n < cases.size(); ++n) {
    std::istringstream head(cases[n]);
    std::string instruction, type;
    head >> instruction >> type;
    const std::size_t bytes = type == "pred" ? 4 : static_cast<std::size_t>(std::stoi(type.substr(type.find_first_of("0123456789")))) / 8;
    std::uint64_t value = 0;
    std::memcpy(&value, region.data + 8 * n, bytes);
    const bool is_open = region.written[8 * n] != 1;
    out += is_open ? fmt::format("{} -> open\n", cases[n]) : fmt::format("{} -> {:0{}x}\n", cases[n], value, type == "pred" ? 1 : 2 * bytes);
  }
  return out;
}

}  // namespace

TEST_SUITE("ptx") {
  TEST_CASE("PTX machine: what single instructions give") {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(source_root() / "tests/ptx/cases")) {
      if (entry.path().extension() != ".txt") continue;
      ++files;
      CAPTURE(entry.path().string());
      const std::string results = results_of(entry.path());
      fs::path expected = entry.path();
      expected.replace_extension(".expected");
      if (updates_expectations()) {
        std::ofstream(expected) << results;
        continue;
      }
      const std::vector<std::string> wanted = lines_of(expected);
      std::istringstream stream(results);
      std::size_t n = 0;
      for (std::string line; std::getline(stream, line); ++n) CHECK(line == (n < wanted.size() ? wanted[n] : "(nothing is expected)"));
      CHECK(n == wanted.size());
    }
    CHECK(files > 3);
  }
}

}  // namespace tilewright
