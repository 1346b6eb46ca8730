// persist: as many blocks as fit stay on the GPU, each takes one tile after the other.
//
//   persist order hilbert
//   before   grid i.block in ceildiv(M, 128), j.block in ceildiv(N, 256) { reg acc…; shared As…; pipe p…; … }
//   after    dim workers = resident(C)
//            table order: i32[ceildiv(M, 128)*ceildiv(N, 256), 2] = hilbert(ceildiv(M, 128), ceildiv(N, 256))
//            grid worker in workers { shared As…; pipe p…
//              serial tile in worker .. ceildiv(M, 128)*ceildiv(N, 256) step workers {
//                let i.block = index(order[tile, 0]) in 0 .. ceildiv(M, 128); let j.block = …; reg acc…; … } }
//
// The old names go on as values. Shared buffers and pipes move out of the tile loop, so that a pipe runs on over tiles;
// accumulators stay in it. `order rows` is the order of the grid, `grouped` goes down groups of 8 rows (or `grouped
// n`), `hilbert` follows a curve whose neighbours share operands in L2. The order is over the last two grid loops; a
// grid of one loop has none.
//
// `by gpc` behind an order: the tiles that are in work at a time are dealt so that blocks of one GPC, whose requests for
// the same lines L2 sees as one, work on one row, or on one column where the operand of the rows is multicast:
// `hilbert.gpc(ceildiv(M, 128), ceildiv(N, 256), workers, 0)`. The runtime asks the GPU which blocks are neighbours.
//
// A second line changes the order only.
//
// Needs: a bound grid. A cluster loop stays directly inside the grid, so that a worker is a cluster.
#include <fmt/format.h>

#include <algorithm>

#include "passes/loops.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

struct Order {
  std::string function;   // of the table
  std::int64_t rows = 0;  // of a group
  bool by_gpc = false;
};

Order read_order(const ScheduleLine& line) {
  LineReader reader(line);
  reader.expect("order");
  LineName name = reader.name("`rows`, `grouped` or `hilbert`");
  Order result{name.text, 8};
  if (name.text != "rows" && name.text != "grouped" && name.text != "hilbert")
    throw UserError(name.span,
                    fmt::format("there is no order `{}`; `rows`, `grouped` and `hilbert` are there", name.text));
  const bool has_rows = name.text == "grouped" && !reader.at_end() && !reader.at("by");
  if (has_rows) result.rows = reader.number("the number of rows of a group").value;
  if (reader.accept("by")) {
    reader.expect("gpc");
    result.by_gpc = true;
  }
  reader.end();
  return result;
}

// What the tiles of a kernel's plane are dealt by.
struct Plane {
  Expr rows;
  Expr columns;
  std::string row;  // the loop's name
  std::string workers;
};

// The axis that blocks of one GPC shall share: 0, a row, unless a multicast copy depends on the row and none on the column.
std::int64_t shared_axis(const Block& body, const std::string& row) {
  bool has_row = false;
  bool has_other = false;
  walk(body, [&](const Stmt& stmt) {
    const Copy* copy = as<Copy>(stmt);
    if (!copy || copy->multicast.empty()) return true;
    bool depends = false;
    for (const Expr& index : copy->source.index)
      walk(index, [&](const Expr& part) {
        const Var* name = as<Var>(part);
        depends = depends || (name && name->name == row);
        return true;
      });
    (depends ? has_row : has_other) = true;
    return true;
  });
  return has_row && !has_other ? 1 : 0;
}

Expr order_of(const Order& order, const Plane& plane, const Block& body) {
  std::vector<Expr> arguments = {plane.rows, plane.columns};
  if (order.function == "grouped") arguments.push_back(integer(order.rows));
  if (!order.by_gpc) return call(order.function, std::move(arguments), Dtype::I32);
  arguments.push_back(var(plane.workers));
  arguments.push_back(integer(shared_axis(body, plane.row)));
  return call(order.function + ".gpc", std::move(arguments), Dtype::I32);
}

class Persisting {
 public:
  Persisting(Plan& plan, Names& names, const Order& order, Span line)
      : plan_(plan), names_(names), order_(order), line_(line) {}

  // The kernel, with a dim and perhaps a table that the plan gains.
  Kernel apply(const Kernel& kernel, std::optional<Table>& table) {
    auto grid = std::find_if(kernel.body.begin(), kernel.body.end(), [](const Stmt& stmt) {
      const Loop* loop = as<Loop>(stmt);
      return loop && loop->kind == LoopKind::Grid;
    });
    if (grid == kernel.body.end())
      throw UserError(
          line_,
          fmt::format("kernel `{}` has no grid; its loops are {}", kernel.name, in_words(loop_names(kernel.body))),
          "`warps` or `bind` first");
    const Loop& loop = *as<Loop>(*grid);
    workers_ = names_.fresh("workers");
    plan_.dims.push_back(Dim{workers_, call("resident", {var(kernel.name)}, Dtype::Index)});
    tile_ = names_.fresh("tile");
    make_values(loop, table, (*grid)->span);

    Axis worker{names_.fresh("worker"), integer(0), var(workers_), {}, line_};
    first_ = var(worker.name);
    Kernel result = kernel;
    Stmt& place = result.body[static_cast<std::size_t>(grid - kernel.body.begin())];
    place =
        make_stmt(Loop{LoopKind::Grid, {worker}, std::nullopt, around_tiles(loop.body, (*grid)->span)}, (*grid)->span);
    return result;
  }

 private:
  // let i.block = index(order[tile, 0]) in 0 .. ceildiv(M, 128), …
  void make_values(const Loop& grid, std::optional<Table>& table, Span span) {
    std::size_t rank = grid.axes.size();
    tiles_ = extent_of(grid.axes[0]);
    for (std::size_t n = 1; n < rank; ++n) tiles_ = tiles_ * extent_of(grid.axes[n]);
    auto add = [&](const Axis& axis, Expr value) {
      Expr lo = axis.lo ? axis.lo : integer(0);
      values_.push_back(make_stmt(Let{axis.name, lo + value, lo, axis.hi}, span));
    };
    if (rank == 1) return add(grid.axes[0], var(tile_));
    const Axis& row = grid.axes[rank - 2];
    const Axis& column = grid.axes[rank - 1];
    Expr plane = extent_of(row) * extent_of(column);
    Expr left = var(tile_);
    for (std::size_t n = 0; n + 2 < rank; ++n) {
      Expr behind = plane;
      for (std::size_t m = n + 1; m + 2 < rank; ++m) behind = extent_of(grid.axes[m]) * behind;
      add(grid.axes[n], binary(BinaryOp::Div, left, behind));
      left = binary(BinaryOp::Mod, left, behind);
    }
    std::string name = names_.fresh("order");
    table = Table{name, Dtype::I32, {plane, integer(2)}, order_of(order_, {extent_of(row), extent_of(column), row.name, workers_}, grid.body)};
    auto entry = [&](std::int64_t n) {
      return cast(Dtype::Index, load(Access{name, {left, integer(n)}, {}, span}, Dtype::I32));
    };
    add(row, entry(0));
    add(column, entry(1));
  }

  Block around_tiles(const Block& body, Span span) const {
    Block result;
    Block inside = values_;
    for (const Stmt& stmt : body) {
      const Loop* loop = as<Loop>(stmt);
      if (loop && loop->kind == LoopKind::Cluster)
        return {map_bodies(stmt, [&](const Block& inner) { return around_tiles(inner, span); })};
      const Buffer* buffer = as<Buffer>(stmt);
      bool goes_out = (buffer && buffer->space == Space::Shared) || as<Pipe>(stmt);
      (goes_out ? result : inside).push_back(stmt);
    }
    Axis tiles{tile_, first_, tiles_, var(workers_), line_};
    result.push_back(make_stmt(Loop{LoopKind::Serial, {tiles}, std::nullopt, std::move(inside)}, span));
    return result;
  }

  Plan& plan_;
  Names& names_;
  const Order& order_;
  Span line_;
  std::string workers_;
  std::string tile_;
  Expr first_;
  Expr tiles_;
  Block values_;
};

// The dim that says how many workers the kernel has, "" where it is not persistent.
std::string workers_of(const Plan& plan, const Kernel& kernel) {
  for (const Dim& dim : plan.dims) {
    const Call* value = as<Call>(dim.value);
    const Var* name = value && value->function == "resident" ? as<Var>(value->arguments[0]) : nullptr;
    if (name && name->name == kernel.name) return dim.name;
  }
  return "";
}

// The name that `let i.block = index(order[tile, 0])` gives the row.
std::string row_of(const Block& body, const std::string& table) {
  std::string row;
  walk(body, [&](const Stmt& stmt) {
    const Let* let = as<Let>(stmt);
    if (!let || !row.empty()) return true;
    walk(let->value, [&](const Expr& part) {
      const Load* load = as<Load>(part);
      if (load && load->access.buffer == table && integer_value(load->access.index.back()) == 0) row = let->name;
      return true;
    });
    return true;
  });
  return row;
}

// Gives the table that a persistent kernel reads another order.
void reorder(std::vector<Step>& steps, const Kernel& kernel, const std::string& workers, const Order& order, Span line) {
  for (Step& step : steps) {
    Table* table = std::get_if<Table>(&step);
    if (!table || !mentions_buffer(kernel.body, table->name)) continue;
    const std::vector<Expr>& arguments = as<Call>(table->value)->arguments;
    table->value = order_of(order, {arguments[0], arguments[1], row_of(kernel.body, table->name), workers}, kernel.body);
    return;
  }
  throw UserError(line, fmt::format("the tiles of kernel `{}` lie in one row; there is no other order", kernel.name));
}

bool has_grid(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [](const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    return loop && loop->kind == LoopKind::Grid;
  });
}

}  // namespace

Plan persist(const Plan& plan, const ScheduleLine& line, const Target&) {
  Order order = read_order(line);
  if (!line.target.empty()) kernel_named(plan, {line.target, line.span});
  std::size_t count = kernels_of(plan).size();
  Plan result = plan;
  Names names(plan);
  std::vector<Step> steps;
  bool acted = false;
  for (const Step& step : plan.steps) {
    const Kernel* kernel = std::get_if<Kernel>(&step);
    bool meant = kernel && (line.target.empty() ? count == 1 || has_grid(*kernel) : kernel->name == line.target);
    if (!meant) {
      steps.push_back(step);
      continue;
    }
    acted = true;
    if (const std::string workers = workers_of(plan, *kernel); !workers.empty()) {
      reorder(steps, *kernel, workers, order, line.span);
      steps.push_back(step);
      continue;
    }
    std::optional<Table> table;
    Kernel changed = Persisting(result, names, order, line.span).apply(*kernel, table);
    if (table) steps.emplace_back(std::move(*table));
    steps.emplace_back(std::move(changed));
  }
  if (!acted) throw UserError(line.span, "no kernel has a grid", "`warps` or `bind` first");
  result.steps = std::move(steps);
  return result;
}

}  // namespace tilewright
