// overlap: the results of a tile leave while the next tile is multiplied.
//
//   overlap C
//   before   serial tile in worker .. tiles step workers {
//              let i.block = index(order[tile, 0]) …; reg acc…; fill acc <- 0.0
//              serial k.block in trips { …; mma acc…; release p }
//              unroll j.store in 4 { each i in 128, j in 64 { Cr[i, j] = bf16(acc[i, j.store*64 + j]) }
//                acquire q; copy Cs[q.in, …] <- Cr[…]; commit q; wait q; copy C[i.block*256 + …] <- Cs[q.out, …]; release q } }
//   after    reg Cw: bf16[i 128, j 256]
//            serial tile in worker .. tiles step workers {
//              let i.block = …; reg acc…; fill acc <- 0.0
//              serial k.block in trips { …; mma acc…
//                if tile > worker and k.block < 4 { let i.block.before = index(order[tile - workers, 0]) …
//                  unroll j.store in 4 { if k.block == j.store { acquire q; copy Cs[q.in, …] <- Cw[…]; …; release q } } }
//                release p }
//              if tile > worker and trips < 4 { …, the slices that found no trip }
//              each i in 128, j in 256 { Cw[i, j] = bf16(acc[i, j]) } }
//            if worker < tiles { let i.block.last = …; unroll j.store in 4 { … } }
//
// A trip starts its products and stores one slice of the tile before while they are at work. Between two tiles there is
// only the rounding left.
//
// Needs: `epilogue C` and `persist` before it, a loop of wgmmas, and registers for the rounded tile beside the accumulators.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "passes/loops.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/shared_tile.h"

namespace tilewright {

namespace {

const Stmt& without_label(const Stmt& stmt) {
  const Labelled* labelled = as<Labelled>(stmt);
  return labelled ? labelled->statement : stmt;
}

Stmt with_label(const Stmt& like, Stmt stmt) {
  const Labelled* labelled = as<Labelled>(like);
  return labelled ? make_stmt(Labelled{labelled->role, std::move(stmt)}, like->span) : stmt;
}

// The loop over slices that `epilogue` made: rounds a slice, then takes it through the slots to `tensor`.
const Loop* stores_slices(const Stmt& stmt, const std::string& tensor) {
  const Loop* loop = as<Loop>(without_label(stmt));
  const Loop* rounding = loop && loop->kind == LoopKind::Unroll && !loop->body.empty() ? as<Loop>(loop->body[0]) : nullptr;
  if (!rounding || rounding->kind != LoopKind::Each || rounding->body.empty() || !as<Store>(rounding->body.back())) return nullptr;
  const bool stores = std::any_of(loop->body.begin(), loop->body.end(), [&](const Stmt& inner) {
    const Copy* copy = as<Copy>(inner);
    return copy && copy->target.buffer == tensor;
  });
  return stores ? loop : nullptr;
}

// The loop of one tile's products, where they are at work while others go on.
const Loop* multiplies(const Stmt& stmt) {
  const Loop* loop = as<Loop>(without_label(stmt));
  if (!loop || loop->kind != LoopKind::Serial) return nullptr;
  const bool starts_products = std::any_of(loop->body.begin(), loop->body.end(), [](const Stmt& inner) {
    const Mma* mma = as<Mma>(without_label(inner));
    return mma && mma->instruction.starts_with("wgmma");
  });
  return starts_products ? loop : nullptr;
}

class Overlap {
 public:
  Overlap(Names& names, const LineName& tensor) : names_(names), tensor_(tensor) {}

  Block apply(const Block& block) {
    for (std::size_t n = 0; n < block.size(); ++n) {
      const Loop* tiles = as<Loop>(block[n]);
      if (!tiles || tiles->kind != LoopKind::Serial || !tiles->axes[0].step) continue;
      for (const Stmt& stmt : tiles->body)
        if (stores_slices(stmt, tensor_.text)) return around(block, n, *tiles);
    }
    if (is_overlapped(block)) throw UserError(tensor_.span, fmt::format("`{}` leaves while the next tile is multiplied already", tensor_.text));
    throw UserError(tensor_.span, fmt::format("`{}` is not stored in slices by blocks that go from tile to tile", tensor_.text),
                    "`epilogue … via shared tma, tile …` and `persist` first");
  }

 private:
  // Slices leave in a loop inside that of the tiles.
  bool is_overlapped(const Block& block) const {
    bool found = false;
    walk(block, [&](const Stmt& tiles) {
      const Loop* loop = as<Loop>(tiles);
      if (!loop || loop->kind != LoopKind::Serial || !loop->axes[0].step) return !found;
      walk(loop->body, [&](const Stmt& stmt) {
        const Loop* trips = multiplies(stmt);
        if (trips) walk(trips->body, [&](const Stmt& inner) {
          const Copy* copy = as<Copy>(inner);
          found |= copy && copy->target.buffer == tensor_.text;
          return !found;
        });
        return !found;
      });
      return false;
    });
    return found;
  }

  Block around(const Block& block, std::size_t at, const Loop& tiles) {
    const Stmt* products = nullptr;
    const Stmt* stores = nullptr;
    for (const Stmt& stmt : tiles.body) {
      if (multiplies(stmt)) products = &stmt;
      if (stores_slices(stmt, tensor_.text)) stores = &stmt;
    }
    if (!products || products > stores)
      throw UserError(tensor_.span, "no loop of wgmmas stands in front of the stores: nothing is at work meanwhile", "`mma wgmma over …` and `pipeline … via tma` first");
    read_slices(*stores_slices(*stores, tensor_.text), block, tiles);
    const Axis& tile = tiles.axes[0];
    const Loop& trips = *multiplies(*products);
    const Axis& trip = trips.axes[0];
    if (trips.axes.size() != 1 || trip.step || (trip.lo && !is_integer_constant(trip.lo, 0)))
      throw UserError(trip.span, fmt::format("loop `{}` does not count from 0 by 1", trip.name));

    const Expr is_later = binary(BinaryOp::Gt, var(tile.name), tile.lo);
    const std::vector<std::pair<std::string, Expr>> one_back = {{tile.name, var(tile.name) - tile.step}};
    const Expr slice = var(slices_.axes[0].name);
    Block body;
    for (const Stmt& stmt : tiles.body) {
      if (&stmt == products) {
        Loop changed = trips;
        changed.body = with_slice(trips.body, *stores,
                                  make_if(both(is_later, less(var(trip.name), integer(count_))), of_tile(tiles, one_back, ".before", binary(BinaryOp::Eq, var(trip.name), slice))));
        body.push_back(with_label(stmt, make_stmt(std::move(changed), without_label(stmt)->span)));
        body.push_back(with_label(*stores, make_if(both(is_later, less(trip.hi, integer(count_))), of_tile(tiles, one_back, ".before", binary(BinaryOp::Ge, slice, trip.hi)))));
      } else if (&stmt == stores) {
        body.push_back(with_label(stmt, rounding_));
      } else {
        body.push_back(stmt);
      }
    }
    Loop changed = tiles;
    changed.body = without_buffer(body, rounded_slice_);

    Block result(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(at));
    result.push_back(make_stmt(whole_, tensor_.span));
    result.push_back(make_stmt(std::move(changed), block[at]->span));
    const Expr last = tile.lo + binary(BinaryOp::Div, tile.hi - integer(1) - tile.lo, tile.step) * tile.step;
    result.push_back(with_label(*stores, make_if(less(tile.lo, tile.hi), of_tile(tiles, {{tile.name, last}}, ".last", {}))));
    result.insert(result.end(), block.begin() + static_cast<std::ptrdiff_t>(at) + 1, block.end());
    return result;
  }

  Stmt make_if(Expr condition, Block body) const { return make_stmt(If{std::move(condition), std::move(body), {}}, tensor_.span); }

  // From the loop over slices: the rounding of the whole tile, into registers that outlive it, and a slice's way out.
  void read_slices(const Loop& slices, const Block& block, const Loop& tiles) {
    slices_ = slices;
    count_ = constant_extent(slices.axes[0]).value_or(0);
    Loop rounding = *as<Loop>(slices.body[0]);
    Store store = *as<Store>(rounding.body.back());
    rounded_slice_ = store.target.buffer;
    const Buffer& part = buffer_named(rounded_slice_, block, tiles);
    std::string accumulator;
    for (const Stmt& stmt : tiles.body)
      if (const Buffer* buffer = as<Buffer>(stmt); buffer && buffer->name != part.name && buffer->layout && buffer->space == Space::Register && mentions_buffer(rounding.body, buffer->name))
        accumulator = buffer->name;
    if (accumulator.empty()) throw UserError(tensor_.span, fmt::format("what is stored to `{}` stands in no register buffer of the tile", tensor_.text));
    whole_ = buffer_named(accumulator, block, tiles);
    whole_.name = names_.fresh(tensor_.text + "w");
    whole_.dtype = part.dtype;
    for (std::size_t n = 0; n < whole_.axes.size(); ++n) {
      whole_.axes[n].name = part.axes[n].name;
      whole_.layout->axes[n].axis = part.axes[n].name;
      rounding.axes[n] = counted(rounding.axes[n].name, whole_.axes[n].extent, rounding.axes[n].span);
    }
    store.target.buffer = whole_.name;
    rounding.body.back() = make_stmt(store, rounding.body.back()->span);
    rounding.body = replace(rounding.body, {{slices.axes[0].name, integer(0)}});
    rounding_ = make_stmt(std::move(rounding), slices.body[0]->span);

    way_out_.assign(slices.body.begin() + 1, slices.body.end());
    for (Stmt& stmt : way_out_) {
      const Copy* copy = as<Copy>(stmt);
      if (!copy || copy->source.buffer != part.name) continue;
      Copy changed = *copy;
      changed.source.buffer = whole_.name;
      for (std::size_t n = 0; n < part.axes.size(); ++n)
        if (part.axes[n].extent != whole_.axes[n].extent) changed.source.index[n] = var(slices.axes[0].name) * part.axes[n].extent + changed.source.index[n];
      stmt = make_stmt(std::move(changed), stmt->span);
    }
  }

  const Buffer& buffer_named(const std::string& name, const Block& block, const Loop& tiles) const {
    for (const Block* statements : {&block, &tiles.body})
      for (const Stmt& stmt : *statements)
        if (const Buffer* buffer = as<Buffer>(stmt); buffer && buffer->name == name) return *buffer;
    throw UserError(tensor_.span, fmt::format("`{}` is not declared in the block", name));
  }

  // The slices of another tile: its values under names of their own, then each slice where `condition` (if any) holds.
  Block of_tile(const Loop& tiles, const std::vector<std::pair<std::string, Expr>>& tile, const std::string& suffix, const Expr& condition) {
    Block result;
    std::vector<std::pair<std::string, Expr>> renamed = tile;
    for (const Stmt& stmt : tiles.body) {
      const Let* let = as<Let>(stmt);
      if (!let) continue;
      Let own = *let;
      own.name = names_.fresh(let->name + suffix);
      for (Expr* value : {&own.value, &own.lo, &own.hi})
        if (*value) *value = replace(*value, renamed);
      renamed.emplace_back(let->name, var(own.name));
      result.push_back(make_stmt(std::move(own), stmt->span));
    }
    Loop slices = slices_;
    slices.body = replace(way_out_, renamed);
    if (condition) slices.body = {make_if(condition, std::move(slices.body))};
    result.push_back(make_stmt(std::move(slices), tensor_.span));
    return result;
  }

  // `slice` stands behind the products of a trip, in front of the verb that waits for those before them.
  Block with_slice(const Block& trip, const Stmt& like, Stmt slice) const {
    auto is_product = [](const Stmt& stmt) { return as<Mma>(without_label(stmt)) != nullptr; };
    Block result = trip;
    auto last = std::find_if(result.rbegin(), result.rend(), is_product);
    result.insert(last.base(), with_label(like, std::move(slice)));
    return result;
  }

  static Block without_buffer(const Block& body, const std::string& name) {
    Block result;
    for (const Stmt& stmt : body)
      if (const Buffer* buffer = as<Buffer>(stmt); !buffer || buffer->name != name) result.push_back(stmt);
    return result;
  }

  Names& names_;
  const LineName& tensor_;
  Loop slices_{LoopKind::Unroll, {}, std::nullopt, {}};
  std::int64_t count_ = 0;
  std::string rounded_slice_;
  Buffer whole_;
  Stmt rounding_;
  Block way_out_;
};

}  // namespace

Plan overlap(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line);
  const LineName tensor = reader.name("the tensor that the kernel writes");
  reader.end();
  const Kernel& meant = kernel_named(plan, tensor);
  if (!line.target.empty() && line.target != meant.name)
    throw UserError(tensor.span, fmt::format("kernel `{}` does not write `{}`", line.target, tensor.text));
  Names names(plan);
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.name != meant.name) return kernel;
    Kernel result = kernel;
    result.body = map_block_body(kernel.body, [&](const Block& block) { return Overlap(names, tensor).apply(block); });
    require_registers_fit(result, target, line.span, "a smaller tile");
    return result;
  });
}

}  // namespace tilewright
