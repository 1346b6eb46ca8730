// Whole kernels on the PTX machine: kernels/*.cu over `X: f32[N], I: i32[N]` and `Y: f32[N]` with N = 64, compiled by NVRTC.
// Beside each stands what the machine says: faults, text that was printed, and whether Y equals 2·X.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "runtime/library/hands.h"
#include "runtime/oracle.h"
#include "runtime/ptx/ptx.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string said_of(const fs::path& file) {
  const Program program = parse_program("fn twice(X: f32[N], I: i32[N]) -> Y: f32[N] { Y[i] = if I[i] >= 0 then 2.0 * X[i] else 0.0 }", "twice.tw");
  const TensorFn& fn = program.fns.at(0);
  const HandPtx hand = compile_hand_to_ptx(hand_from_file(file.string(), fn), "sm_90a");
  HostTensor x = make_tensor(Dtype::F32, {64});
  HostTensor index = make_tensor(Dtype::I32, {64});
  for (std::int64_t n = 0; n < 64; ++n) {
    write_real(x, n, static_cast<double>(n) - 20.5);
    write_integer(index, n, 63 - n);
  }
  const Plan plan = signature_plan(fn);
  Arguments arguments = bind_arguments(plan, {{"X", x}, {"I", index}});
  std::string text;
  try {
    const RunReport report = run_hand_on_ptx(hand, plan, arguments, 2'000'000);
    for (const std::string& fault : report.faults) text += fault + "\n";
    if (!report.printed.empty()) text += "printed: " + report.printed;
  } catch (const ptx::Unsupported& missing) {
    return std::string(missing.what()) + "\n";
  }
  int right = 0;
  for (std::int64_t n = 0; n < 64; ++n) right += read_real(arguments.tensors.at("Y"), n) == 2 * read_real(x, n) ? 1 : 0;
  return text + fmt::format("{} of 64 elements are right\n", right);
}

}  // namespace

TEST_SUITE("ptx") {
  TEST_CASE("PTX machine: what it says of kernels, good and bad") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    int files = 0;
    for (const auto& entry : fs::directory_iterator(source_root() / "tests/ptx/kernels")) {
      if (entry.path().extension() != ".cu") continue;
      ++files;
      CAPTURE(entry.path().string());
      const std::string said = said_of(entry.path());
      fs::path expected = entry.path();
      expected.replace_extension(".expected");
      if (updates_expectations()) std::ofstream(expected) << said;
      else CHECK(said == (fs::exists(expected) ? read_whole_file(expected.string()) : "(nothing is expected)"));
      if (entry.path().filename().string().starts_with("ok_")) CHECK(said.ends_with("64 of 64 elements are right\n"));
    }
    CHECK(files > 15);
  }
}

}  // namespace tilewright
