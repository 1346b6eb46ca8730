// What the frontend offers beside whole programs: schedule lines, other parameters, steps of hand kernels.
#include <doctest/doctest.h>

#include "frontend/program.h"

namespace tilewright {

namespace {
const char* const matmul =
    "fn matmul(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N] { C[i, j] = sum[k] A[i, k] * B[k, j] }\n";
}

TEST_CASE("frontend: instantiate puts other values in place of a schedule's parameters") {
  const Program program = parse_program(
      std::string(matmul) + "schedule matmul \"ch5\" (T = 16, U = 4) { tile block i T, j T, k T; unroll k U }\n",
      "m.tw");
  REQUIRE(program.schedules.size() == 1);
  CHECK(program.schedules[0].lines[0].text == "tile block i 16, j 16, k 16");
  const Schedule wide = instantiate(program, program.schedules[0], {{"T", 32}, {"M", 64}});
  CHECK(wide.lines[0].text == "tile block i 32, j 32, k 32");
  CHECK(wide.lines[0].tokens[2].number == 32);
  CHECK(wide.lines[1].text == "unroll k 4");
  CHECK(wide.parameters[0].value == 32);
}

TEST_CASE("frontend: schedule lines by themselves") {
  const std::vector<ScheduleLine> lines =
      parse_schedule_lines("m: tile   block r 4; stage A[i, k; 0] in shared at k.block\nvectorize 4 // comment\n");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].target == "m");
  CHECK(lines[0].word == "tile");
  CHECK(lines[0].text == "m: tile block r 4");
  CHECK(lines[1].tokens.size() == 12);
  CHECK(lines[2].text == "vectorize 4");
  CHECK(parse_schedule_lines("").empty());
  CHECK_THROWS_AS(parse_schedule_lines("16 tile"), UserError);
  CHECK_THROWS_AS(parse_schedule_lines("tile ?`"), UserError);
}

TEST_CASE("frontend: steps of a hand kernel from a person's comment") {
  const TensorFn fn = parse_program(matmul, "m.tw").fns.at(0);
  const HandItem hand = parse_hand_steps(
      "let part = f32[ceildiv(N, 2)]\nlaunch tiled<16><<<(ceildiv(N, 16), M), (16, 16), 4 * K>>>(A, B, C, part, M, 3)",
      fn);
  REQUIRE(hand.steps.size() == 1);
  REQUIRE(hand.temps.size() == 1);
  const HandItem::Launch& launch = std::get<HandItem::Launch>(hand.steps[0]);
  CHECK(launch.kernel == "tiled<16>");
  CHECK(launch.grid.size() == 2);
  CHECK(evaluate_index(launch.grid[0], {{"N", 33}}) == 3);
  CHECK(evaluate_index(launch.shared_bytes, {{"K", 8}}) == 32);
  CHECK(launch.arguments.size() == 6);
  CHECK(print(launch.arguments[3]) == "part");
  CHECK_THROWS_AS(parse_hand_steps("launch k<<<1, 2>>>(Q)", fn), UserError);
  CHECK_THROWS_AS(parse_hand_steps("launch k<<<1>>>(A)", fn), UserError);
}

TEST_CASE("frontend: scalar fns that others call are not among the fns, unless alone") {
  CHECK(parse_program("fn f(x: f32) -> y: f32 { y = x }\nfn g(A: f32[N]) -> B: f32[N] { B[i] = f(A[i]) }", "p.tw")
            .fns.size() == 1);
  CHECK(parse_program("fn f(x: f32) -> y: f32 { y = x }", "p.tw").fns.size() == 1);
}

}  // namespace tilewright
