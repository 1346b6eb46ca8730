// Every pass of every schedule of the examples, checked by running; and a pass that lies is caught.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "runtime/library/shrink_failure.h"
#include "runtime/library/verify_passes.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

VerifyOptions options_for_tests(double most_operations) {
  VerifyOptions options;
  options.folder = fs::temp_directory_path().string();
  options.most_operations = most_operations;
  return options;
}

// `most`: schedules of a file.
void verify_examples(const VerifyOptions& options, std::size_t most) {
  int passes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source_root() / "examples")) {
    if (entry.path().extension() != ".tw") continue;
    INFO("file ", entry.path().filename().string());
    const std::string text = read_whole_file(entry.path());
    try {
      const Program program = parse_program(text, entry.path().filename().string());
      std::size_t taken = 0;
      for (const Schedule& schedule : program.schedules)
        for (const TensorFn& fn : program.fns) {
          if (fn.name != schedule.fn || taken++ >= most) continue;
          INFO("fn ", fn.name, ", schedule ", schedule.name);
          const Target target = schedule.arch.empty() ? Target{} : target_for(schedule.arch);
          passes += verify_passes(fn, build_rungs(fn, schedule.name, schedule.arch, schedule.when, schedule.lines, target, {}), target, options).passes;
        }
    } catch (const UserError& error) {
      if (error.diagnostics().front().message.find("cannot be finished") != std::string::npos) continue;  // what expansion lacks is not the matter here
      FAIL_CHECK(render(error.diagnostics(), {SourceFile{entry.path().filename().string(), text}}));
    } catch (const InternalError& error) {
      FAIL_CHECK(std::string(error.what()).substr(0, 4000));
    }
  }
  MESSAGE(passes << " passes compared");
  CHECK(passes > 60);
}

}  // namespace

TEST_SUITE("verify") {
  TEST_CASE("every pass of the examples' schedules keeps the result on small shapes") { verify_examples(options_for_tests(4e3), 1); }

  TEST_CASE("a pass that changes a result is named, with a reproducer that reads back") {
    const Program program = parse_program("fn add(X: f32[N], Y: f32[N]) -> Z: f32[N] { Z[i] = X[i] + Y[i] }\nschedule add \"s\" { tile block i 16;  bind i thread.x }\n", "add.tw");
    std::vector<Rung> rungs = build_rungs(program.fns[0], "s", "", {}, program.schedules[0].lines, Target{}, {});
    // As if `bind` had left out the last element of a tile.
    Plan& wrong = rungs.back().plan;
    wrong = map_kernels(wrong, [](const Kernel& kernel) {
      Kernel changed = kernel;
      changed.body = rewrite_expressions(kernel.body, [](const Expr& expr) {
        const Var* name = as<Var>(expr);
        return name && name->name == "N" ? var("N") + -1 : expr;
      });
      return changed;
    });
    const VerifyOptions options = options_for_tests(1e6);
    std::string said;
    try {
      verify_passes(program.fns[0], rungs, Target{}, options);
    } catch (const InternalError& error) {
      said = error.what();
    }
    CHECK(said.find("pass `bind i thread.x` changes the result at N=3") != std::string::npos);
    CHECK(said.find("--device interpreter --set N=3") != std::string::npos);
    CHECK(read_plan(read_whole_file(fs::path(options.folder) / "verify-bind-after.ir")) == wrong);
  }
}

TEST_SUITE("verify") {
  TEST_CASE("a failure is made small: statements, lines, terms and sizes that do not matter are left out") {
    const Program program = parse_program(
        "fn f(A: f32[M, K], B: f32[K, N], b: f32[N]) -> (C: f32[M, N], S: f32) {\n"
        "  let z[i, j] = exp(sum[k] A[i, k] * B[k, j]) + b[j]\n  C[i, j] = max(z[i, j], 0.0)\n  S = sum[n] b[n] }\n"
        "schedule f \"s\" { inline z;  C: tile block i 4, j 4, k 2;  C: bind i thread.y, j thread.x;  unroll k }\n",
        "f.tw");
    FailingCase failing{program.fns[0], "s", "", {}, program.schedules[0].lines, {}, {{"M", 9}, {"N", 5}, {"K", 7}}, "C: tile block i 4, j 4, k 2"};
    // As if `tile` were wrong for every sum of more than one column.
    const auto still_fails = [&](const FailingCase& candidate) {
      if (!verify(candidate.fn).empty() || candidate.dims.at("K") < 2) return false;
      bool has_sum = false;
      for (const TensorStmt& stmt : candidate.fn.statements)
        walk(stmt.value, [&](const Expr& node) {
          has_sum |= stmt.target != "S" && as<Reduce>(node) != nullptr;
          return true;
        });
      try {
        build_rungs(candidate.fn, "s", "", {}, candidate.lines, Target{}, {});
      } catch (const UserError&) {
        return false;
      }
      return has_sum && std::any_of(candidate.lines.begin(), candidate.lines.end(), [](const ScheduleLine& line) { return line.word == "tile"; });
    };
    REQUIRE(still_fails(failing));
    const FailingCase small = shrink_failure(failing, still_fails);
    CHECK(still_fails(small));
    CHECK(small.fn.statements.size() == 2);  // C is tiled, and z has the sum
    CHECK(small.lines.size() < failing.lines.size());
    CHECK(small.dims == DimMap{{"K", 2}, {"M", 0}, {"N", 0}});
    CHECK(print(small.fn).find("exp") == std::string::npos);
  }
}

TEST_SUITE("verify full") {
  TEST_CASE("every pass of the examples' schedules keeps the result on shapes of whole tiles") {
    VerifyOptions options = options_for_tests(2e7);
    options.finishes_every_rung = true;
    verify_examples(options, 100);
  }
}

}  // namespace tilewright
