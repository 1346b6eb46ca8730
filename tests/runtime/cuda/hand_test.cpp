// Reading a person's `.cu` file: what is left out, what stays, launches in comments; and that NVRTC takes the rest.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/hand.h"
#include "runtime/hand_lexer.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool names(const std::vector<std::string>& left_out, const std::string& what) {
  return std::any_of(left_out.begin(), left_out.end(),
                     [&](const std::string& line) { return line.find(what) != std::string::npos; });
}

HandProgram program_of(const std::string& text, HandLaunch launch) {
  HandProgram program;
  program.name = "hand";
  program.file_name = "hand.cu";
  program.text = text;
  program.steps.push_back(std::move(launch));
  return program;
}

constexpr const char* mixed = R"(#include <stdio.h>
#include <cfloat>
#include "cuda_runtime.h"
#define WIDTH 16
using namespace std;
typedef float real;
const int radius = 3;
int count = 7;
static std::vector<float> host_data(100);
struct Pair { float a, b; };  // { a brace in a comment
__constant__ float F_c[2 * 3 + 1];
namespace book {
template <class T, int W>
__device__ T twice(T x) { return x + x; }
// launch book::scale<float, 16><<<ceildiv(N, 256), 256>>>(X, Y, N, 2.0)
template <typename T, int W>
__global__ void __launch_bounds__(256) scale(const T* __restrict__ x, T* y, size_t n, T by) {
  const char* brace = "}";  (void)brace;
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = twice<T, W>(x[i]) * by * FLT_MAX * F_c[radius];
}
}  // namespace book
void check(int code) { if (code != 0) { printf("}{"); } }
float host_sum(const float* x, int n);
extern "C" {
// zero Y
__global__ void plain(Pair* p, bool flag) { if (flag) p->a = 1; }
}
int main(int argc, char** argv) {
  book::scale<float, 16><<<1, 256>>>(nullptr, nullptr, 0, 1);
}
)";

}  // namespace

TEST_SUITE("runtime") {
  TEST_CASE("hand source: the pieces make up the file") {
    std::string together;
    for (const HandPiece& piece : cut_hand_source(mixed)) together += piece.text;
    CHECK(together == mixed);
    for (const char* odd : {"", "}", "{", "/*", "\"", "R\"(", "#", "#define A \\", "a(", ");;}}", "'"}) {
      together.clear();
      for (const HandPiece& piece : cut_hand_source(odd)) together += piece.text;
      CHECK(together == odd);
    }
  }

  TEST_CASE("hand source: host code is left out and named, device code stays on its line") {
    const HandSource source = read_hand_source(mixed, "mixed.cu");
    for (const char* gone :
         {"#include <stdio.h>", "function `main`", "function `check`", "`host_sum`", "`count`", "`host_data`"}) {
      CAPTURE(gone);
      CHECK(names(source.left_out, gone));
    }
    for (const char* kept : {"#define WIDTH 16", "typedef float real;", "const int radius", "struct Pair",
                             "F_c[2 * 3 + 1]", "twice(T x)", "#define FLT_MAX"}) {
      CAPTURE(kept);
      CHECK(source.text.find(kept) != std::string::npos);
    }
    CHECK(source.text.find("main(") == std::string::npos);
    REQUIRE(source.kernels.size() == 2);
    CHECK(source.kernels[0].name == "book::scale");
    CHECK(source.kernels[0].is_template);
    REQUIRE(source.kernels[0].parameters.size() == 4);
    CHECK(source.kernels[0].parameters[0].is_pointer);
    CHECK(source.kernels[0].parameters[2].dtype == Dtype::U64);
    CHECK(!source.kernels[0].parameters[3].is_known_type);
    CHECK(source.kernels[1].is_extern_c);
    CHECK(source.kernels[1].parameters[1].dtype == Dtype::Bool);
    REQUIRE(source.comments.size() == 2);
    CHECK(source.comments[0].instance == "book::scale<float, 16>");
    CHECK(source.comments[0].step == "launch book::scale<<<ceildiv(N, 256), 256>>>(X, Y, N, 2.0)");
    CHECK(source.comments[1].step == "zero Y");
    const std::string begin = source.text.substr(source.text.find("#line 1"));
    CHECK(std::count(begin.begin(), begin.end(), '\n') ==
          std::count(std::begin(std::string_view(mixed)), std::end(std::string_view(mixed)), '\n') + 1);
  }

  TEST_CASE("hand source: templates, constants and instances go through NVRTC") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    HandLaunch launch;
    launch.kernel = "book::scale<float, 16>";
    launch.arguments = {var("X"), var("Y"), var("N"), real(2.0, Dtype::F32)};
    HandProgram program = program_of(mixed, launch);
    program.steps.emplace_back(HandConstant{"F_c", "F"});
    // The local header of this text does not exist; without it the file is complete.
    program.text.replace(program.text.find("#include \"cuda_runtime.h\""), 25, "");
    const CompiledHand hand = compile_hand(program, "sm_90a", false);
    CHECK(hand.cubin.entries.count("book::scale<float, 16>") == 1);
    REQUIRE(hand.resources.size() == 1);
    CHECK(hand.resources[0].second.registers > 0);
  }

  TEST_CASE("hand source: a launch that does not fit is the user's fault") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    const std::string text =
        "__global__ void k(float* x, int n) {}\ntemplate <int T> __global__ void t(float* x) {}\nint main() {}\n";
    HandLaunch launch;
    launch.kernel = "other";
    CHECK_THROWS_WITH_AS(compile_hand(program_of(text, launch), "sm_90a"), doctest::Contains("no kernel `other`"),
                         UserError);
    launch.kernel = "k";
    launch.arguments = {var("X")};
    CHECK_THROWS_WITH_AS(compile_hand(program_of(text, launch), "sm_90a"), doctest::Contains("has 2 parameters"),
                         UserError);
    launch.kernel = "t";
    CHECK_THROWS_WITH_AS(compile_hand(program_of(text, launch), "sm_90a"), doctest::Contains("is a template"),
                         UserError);
  }

  TEST_CASE("hand source: every example's file goes through NVRTC") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_root() / "examples")) {
      if (entry.path().extension() != ".cu") continue;
      CAPTURE(entry.path().string());
      ++files;
      const std::string text = read(entry.path());
      const HandSource source = read_hand_source(text, "hand.cu");
      CHECK(!source.kernels.empty());
      HandProgram program;
      program.file_name = entry.path().string();
      program.text = text;
      for (const HandKernel& kernel : source.kernels) {
        HandLaunch launch;
        launch.kernel = kernel.is_template ? kernel.name + "<16>" : kernel.name;
        launch.arguments.assign(kernel.parameters.size(), integer(0));
        program.steps.emplace_back(launch);
      }
      CHECK(compile_hand(program, "sm_90a", false).resources.size() == source.kernels.size());
    }
    CHECK(files > 0);
  }
}

}  // namespace tilewright
