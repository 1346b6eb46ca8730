// The orders of tiles, and how they are dealt to the workers of each GPC.
#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "ir/diagnostic.h"
#include "ir/plan.h"
#include "runtime/table.h"

namespace tilewright {

namespace {

using Tile = std::pair<std::int64_t, std::int64_t>;

Table table_of(const char* formula) {
  const std::string text = std::string("plan t {\n  dim R, C, W\n  in A: f32[R, C]\n  in B: f32[W]\n  out Y: f32[R]\n  table order: i32[R*C, 2] = ") + formula + "\n}\n";
  return std::get<Table>(parse_plan(text).steps.at(0));
}

std::vector<Tile> tiles_of(const char* formula, std::int64_t rows, std::int64_t columns, const std::vector<int>& gpcs = {}) {
  const HostTensor made = make_table(table_of(formula), {{"R", rows}, {"C", columns}, {"W", static_cast<std::int64_t>(gpcs.size())}}, gpcs);
  std::vector<Tile> tiles;
  for (std::int64_t n = 0; n < rows * columns; ++n) tiles.emplace_back(read_integer(made, 2 * n), read_integer(made, 2 * n + 1));
  return tiles;
}

// In how many (GPC, row) or (GPC, column) pairs the tiles of one wave lie: what is fetched apart.
std::size_t fetched(const std::vector<Tile>& tiles, std::size_t first, const std::vector<int>& gpcs, bool by_row) {
  std::set<std::pair<int, std::int64_t>> seen;
  for (std::size_t worker = 0; worker < gpcs.size() && first + worker < tiles.size(); ++worker) {
    const Tile& tile = tiles[first + worker];
    seen.emplace(gpcs[worker], by_row ? tile.first : tile.second);
  }
  return seen.size();
}

}  // namespace

TEST_SUITE("runtime") {
  TEST_CASE("table: tiles are dealt by GPC within each wave, and each stands there once") {
    // 18 workers, dealt round about to GPCs of 8, 6 and 4.
    std::vector<int> gpcs;
    for (int round = 0; round < 8; ++round)
      for (const auto& [gpc, size] : {std::pair(7, 8), std::pair(3, 6), std::pair(5, 4)})
        if (round < size) gpcs.push_back(gpc);
    for (const auto& shape : {std::pair<std::int64_t, std::int64_t>{8, 8}, {16, 16}, {1, 40}, {40, 1}, {7, 5}, {0, 3}}) {
      const std::int64_t rows = shape.first;
      const std::int64_t columns = shape.second;
      CAPTURE(rows);
      CAPTURE(columns);
      for (const bool by_row : {true, false}) {
        const std::vector<Tile> plain = tiles_of("hilbert(R, C)", rows, columns);
        const std::vector<Tile> dealt = tiles_of(by_row ? "hilbert.gpc(R, C, W, 0)" : "hilbert.gpc(R, C, W, 1)", rows, columns, gpcs);
        REQUIRE(dealt.size() == plain.size());
        for (std::size_t first = 0; first < plain.size(); first += gpcs.size()) {
          const auto wave = [&](const std::vector<Tile>& tiles) {
            return std::set<Tile>(tiles.begin() + static_cast<std::ptrdiff_t>(first), tiles.begin() + static_cast<std::ptrdiff_t>(std::min(first + gpcs.size(), tiles.size())));
          };
          CHECK(wave(dealt) == wave(plain));
          CHECK(fetched(dealt, first, gpcs, by_row) <= fetched(plain, first, gpcs, by_row));
        }
      }
    }
    CHECK(fetched(tiles_of("hilbert.gpc(R, C, W, 0)", 16, 16, gpcs), 0, gpcs, true) < fetched(tiles_of("hilbert(R, C)", 16, 16, gpcs), 0, gpcs, true));
  }

  TEST_CASE("table: where GPCs are not known the order is the plain one") {
    CHECK(tiles_of("grouped.gpc(R, C, 3, W, 0)", 7, 5) == tiles_of("grouped(R, C, 3)", 7, 5));
    CHECK(tiles_of("rows.gpc(R, C, W, 1)", 7, 5) == tiles_of("rows(R, C)", 7, 5));
    CHECK_THROWS_WITH_AS(tiles_of("grouped.gpc(R, C, 0, W, 0)", 7, 5), doctest::Contains("groups of 0 rows"), UserError);
  }
}

}  // namespace tilewright
