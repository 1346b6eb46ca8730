// explain: what each index ranges over, and from which access.
#include <doctest/doctest.h>

#include "frontend/program.h"
#include "tools/ranges.h"

namespace tilewright {

TEST_SUITE("explain") {
  TEST_CASE("ranges say which accesses they come from") {
    const Program program = parse_program(
        "fn f(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N] {\n"
        "  let s[k] = sum[i] A[i, k]\n"
        "  C[i, j] = sum[k] A[i, k] * B[k, j] + (sum[q in 1..=3] s[q; 0])\n}\n",
        "f.tw");
    std::vector<std::string> said;
    for (const RangeNote& note : range_notes(program.fns[0])) {
      said.push_back(note.target + ": " + note.index + " in " + note.range + ":");
      for (const std::string& access : note.accesses) said.back() += " " + access;
    }
    const std::vector<std::string> expected = {"s: k in 0 .. K: s[k] A[i, k]", "s: i in 0 .. M: A[i, k]",         "C: i in 0 .. M: C[i, j] A[i, k]",
                                               "C: j in 0 .. N: C[i, j] B[k, j]", "C: k in 0 .. K: A[i, k] B[k, j]", "C: q in 1 .. 4:"};
    CHECK(said == expected);
  }
}

}  // namespace tilewright
