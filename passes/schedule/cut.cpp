// Cutting an `each` around a serial loop.
#include "passes/schedule/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/diagnostic.h"

namespace tilewright {

void insert_declaration(Block& body, const Stmt& declaration) {
  auto at =
      std::find_if(body.begin(), body.end(), [](const Stmt& stmt) { return !as<Buffer>(stmt) && !as<Role>(stmt); });
  body.insert(at, declaration);
}

namespace {

class Cutter {
 public:
  Cutter(const Block& block_body, const LineName& loop) : loop_(loop) {
    walk(block_body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt)) buffers_.emplace(buffer->name, *buffer);
      return true;
    });
  }

  // Statements of the block; an `each` with the loop in it becomes several.
  Block block_level(const Block& body) {
    Block result;
    for (const Stmt& stmt : body) {
      const Loop* loop = as<Loop>(stmt);
      if (!holds_loop(stmt)) {
        result.push_back(stmt);
      } else if (loop && loop->kind == LoopKind::Each) {
        for (Stmt& made : cut(*loop)) result.push_back(std::move(made));
      } else {
        result.push_back(map_bodies(stmt, [&](const Block& inner) { return block_level(inner); }));
      }
    }
    return result;
  }

  const Block& declarations() const { return declarations_; }

 private:
  bool holds_loop(const Stmt& stmt) const { return has_loop({stmt}, loop_.text); }

  Block cut(const Loop& each) {
    each_ = &each;
    lifted_.clear();
    private_.clear();
    element_vars_.clear();
    for (const Axis& axis : each.axes) element_vars_.insert(axis.name);
    element_names_ = varying_names(each.body, element_vars_);
    Block body = without_lets(each.body);
    std::map<std::string, std::set<int>> pieces;
    int piece = 0;
    note_pieces(body, pieces, piece);
    lift(body, pieces);
    return cut_body(body);
  }

  // A `let` beside the loop is needed in several pieces: its value takes its place.
  Block without_lets(const Block& body) const {
    Block result;
    std::vector<std::pair<std::string, Expr>> values;
    for (const Stmt& stmt : body) {
      Stmt here = values.empty() ? stmt : substitute({stmt}, values)[0];
      if (const Let* let = as<Let>(here)) {
        if (reads_memory(let->value, {}))
          throw UserError(loop_.span, fmt::format("`{}` cannot come outside: `let {}` beside it reads memory",
                                                  loop_.text, let->name));
        values.emplace_back(let->name, let->value);
        continue;
      }
      result.push_back(holds_loop(here) && !is_the_loop(here)
                           ? map_bodies(here, [&](const Block& inner) { return without_lets(inner); })
                           : here);
    }
    return result;
  }

  bool is_the_loop(const Stmt& stmt) const {
    const Loop* loop = as<Loop>(stmt);
    return loop &&
           std::any_of(loop->axes.begin(), loop->axes.end(), [&](const Axis& axis) { return axis.name == loop_.text; });
  }

  // Which pieces mention which buffer.
  void note_pieces(const Block& body, std::map<std::string, std::set<int>>& pieces, int& piece) const {
    ++piece;
    for (const Stmt& stmt : body) {
      if (holds_loop(stmt)) {
        if (const Loop* loop = as<Loop>(stmt)) {
          if (is_the_loop(stmt))
            note_mentions(loop->body, pieces, ++piece);
          else
            note_pieces(loop->body, pieces, piece);
        }
        ++piece;
      } else {
        note_mentions({stmt}, pieces, piece);
      }
    }
  }

  static void note_mentions(const Block& body, std::map<std::string, std::set<int>>& pieces, int piece) {
    walk_expressions(body, [&](const Expr& expr) {
      walk(expr, [&](const Expr& node) {
        if (const Load* access = as<Load>(node)) pieces[access->access.buffer].insert(piece);
        return true;
      });
    });
    walk(body, [&](const Stmt& stmt) {
      if (const Store* store = as<Store>(stmt)) pieces[store->target.buffer].insert(piece);
      return true;
    });
  }

  // Declares what is mentioned in several pieces for the block.
  void lift(const Block& body, const std::map<std::string, std::set<int>>& pieces) {
    for (const Stmt& stmt : body) {
      if (const Buffer* buffer = as<Buffer>(stmt)) {
        private_[buffer->name] = stmt;
        auto found = pieces.find(buffer->name);
        if (found == pieces.end() || found->second.size() < 2) continue;
        private_.erase(buffer->name);
        lifted_.insert(buffer->name);
        Buffer made = over_elements(*buffer);
        buffers_[made.name] = made;
        // The sides of a branch of the block share a buffer of one name.
        Stmt declaration = make_stmt(made, stmt->span);
        if (std::find(declarations_.begin(), declarations_.end(), declaration) == declarations_.end()) declarations_.push_back(declaration);
      } else if (holds_loop(stmt) && !is_the_loop(stmt)) {
        if (const Loop* loop = as<Loop>(stmt)) lift(loop->body, pieces);
      }
    }
  }

  // The places of the elements' axes: those of the deal, or of a register buffer that the `each` follows.
  std::vector<AxisLayout> element_places() const {
    if (each_->deal) return each_->deal->axes;
    for (const auto& [name, buffer] : buffers_) {
      if (buffer.space != Space::Register || !buffer.layout || !mentions_buffer(each_->body, name)) continue;
      if (buffer.axes.size() < each_->axes.size()) continue;
      return {buffer.layout->axes.begin(),
              buffer.layout->axes.begin() + static_cast<std::ptrdiff_t>(each_->axes.size())};
    }
    throw UserError(loop_.span,
                    fmt::format("the `each` around `{}` has no deal yet; `bind` or `warps` first", loop_.text));
  }

  Buffer over_elements(const Buffer& own) const {
    Buffer result = own;
    result.axes.clear();
    for (const Axis& axis : each_->axes) result.axes.push_back({axis.name, constant_extent(axis).value_or(1)});
    std::vector<AxisLayout> own_places(own.axes.size());
    std::int64_t stride = 1;
    for (std::size_t n = own.axes.size(); n-- > 0;) {
      own_places[n] = {own.axes[n].name, {Factor{own.axes[n].extent, Place::Reg, stride}}};
      stride *= own.axes[n].extent;
    }
    std::vector<AxisLayout> places = element_places();
    for (auto axis = places.rbegin(); axis != places.rend(); ++axis)
      for (auto factor = axis->factors.rbegin(); factor != axis->factors.rend(); ++factor)
        if (factor->place == Place::Step || factor->place == Place::Reg) {
          *factor = Factor{factor->extent, Place::Reg, stride};
          stride *= factor->extent;
        }
    for (std::size_t n = 0; n < places.size(); ++n) places[n].axis = each_->axes[n].name;
    places.insert(places.end(), own_places.begin(), own_places.end());
    result.axes.insert(result.axes.end(), own.axes.begin(), own.axes.end());
    result.layout = Layout{std::move(places), 0};
    return result;
  }

  Block cut_body(const Block& body) {
    Block result;
    Block piece;
    for (const Stmt& stmt : body) {
      if (!holds_loop(stmt)) {
        piece.push_back(stmt);
        continue;
      }
      flush(piece, result);
      const Loop* loop = as<Loop>(stmt);
      require_shared_bounds(stmt, loop);
      Loop outside = *loop;
      outside.body.clear();
      if (is_the_loop(stmt)) {
        Block inner = loop->body;
        flush(inner, outside.body);
      } else {
        outside.body = cut_body(loop->body);
      }
      result.push_back(make_stmt(std::move(outside), stmt->span));
    }
    flush(piece, result);
    return result;
  }

  void require_shared_bounds(const Stmt& stmt, const Loop* loop) const {
    if (!loop)
      throw UserError(
          loop_.span,
          fmt::format("`{}` stands in an `if` of its own element, so a block cannot run it together", loop_.text));
    if (loop->kind != LoopKind::Serial)
      throw UserError(loop_.span,
                      fmt::format("`{}` stands in a loop of each element (`{}`), so a block cannot run it together",
                                  loop_.text, loop->axes[0].name));
    for (const Axis& axis : loop->axes)
      for (const Expr& bound : {axis.lo, axis.hi, axis.step})
        if (bound && is_varying(bound, element_vars_, element_names_))
          throw UserError(
              loop_.span,
              fmt::format("the bounds of `{}` differ between the elements of a tile: `{}`", axis.name, print(bound)),
              "a block can only share a loop that all its threads run alike");
    (void)stmt;
  }

  // Turns a piece into fills and an `each`, and empties it.
  void flush(Block& piece, Block& out) const {
    Block statements;
    for (const Stmt& stmt : piece) {
      const Buffer* buffer = as<Buffer>(stmt);
      if (!buffer || (!lifted_.count(buffer->name) && !private_.count(buffer->name))) statements.push_back(stmt);
    }
    piece.clear();
    std::size_t first = 0;
    while (first < statements.size()) {
      auto fill = as_fill(statements[first]);
      if (!fill) break;
      out.push_back(make_stmt(*fill, statements[first]->span));
      ++first;
    }
    Block body(statements.begin() + static_cast<std::ptrdiff_t>(first), statements.end());
    if (body.empty()) return;
    body = with_own_declarations(body);
    Loop each = *each_;
    bool follows = std::any_of(lifted_.begin(), lifted_.end(),
                               [&](const std::string& name) { return mentions_buffer(body, name); });
    if (follows) each.deal.reset();
    Span span = body.front()->span;
    each.body = with_element_indices(body);
    out.push_back(make_stmt(std::move(each), span));
  }

  // What one piece alone uses is declared there, whichever piece declared it.
  Block with_own_declarations(const Block& body) const {
    Block result;
    std::set<std::string> declared;
    for (const Stmt& stmt : body) {
      for (const auto& [name, declaration] : private_)
        if (!declared.count(name) && mentions_buffer({stmt}, name)) {
          result.push_back(declaration);
          declared.insert(name);
        }
      result.push_back(stmt);
    }
    return result;
  }

  // `acc = 0.0` on all of a lifted buffer, alone or in its own unrolled nest.
  std::optional<Fill> as_fill(const Stmt& stmt) const {
    std::vector<Axis> axes;
    const Store* store = as<Store>(stmt);
    if (const Loop* nest = as<Loop>(stmt); nest && nest->kind == LoopKind::Unroll && nest->body.size() == 1) {
      axes = nest->axes;
      store = as<Store>(nest->body[0]);
    }
    if (!store || !lifted_.count(store->target.buffer) || !store->where.empty() || store->atomic ||
        !as<Const>(store->value))
      return std::nullopt;
    const Buffer& buffer = buffers_.at(store->target.buffer);
    if (store->target.index.size() != axes.size() || buffer.axes.size() != each_->axes.size() + axes.size())
      return std::nullopt;
    for (std::size_t n = 0; n < axes.size(); ++n) {
      const Var* index = as<Var>(store->target.index[n]);
      if (!index || index->name != axes[n].name ||
          constant_extent(axes[n]) != buffer.axes[each_->axes.size() + n].extent)
        return std::nullopt;
    }
    return Fill{store->target.buffer, store->value};
  }

  Access with_element_index(const Access& access) const {
    Access result = access;
    result.index.clear();
    for (const Axis& axis : each_->axes) result.index.push_back(var(axis.name));
    result.index.insert(result.index.end(), access.index.begin(), access.index.end());
    return result;
  }

  Block with_element_indices(const Block& body) const {
    Block loads = rewrite_expressions(body, [&](const Expr& expr) {
      const Load* access = as<Load>(expr);
      if (!access || !lifted_.count(access->access.buffer)) return expr;
      return load(with_element_index(access->access), expr->dtype, expr->span);
    });
    return rewrite_statements(loads, [&](const Stmt& stmt) -> Block {
      const Store* store = as<Store>(stmt);
      if (!store || !lifted_.count(store->target.buffer)) return {stmt};
      Store node = *store;
      node.target = with_element_index(node.target);
      return {make_stmt(std::move(node), stmt->span)};
    });
  }

  const LineName& loop_;
  std::map<std::string, Buffer> buffers_;
  Block declarations_;
  // Of the `each` being cut:
  const Loop* each_ = nullptr;
  std::set<std::string> lifted_;
  std::map<std::string, Stmt> private_;  // declarations beside the loop of what one piece uses
  std::set<std::string> element_vars_;
  std::set<std::string> element_names_;
};

}  // namespace

Block bring_outside(const Block& block_body, const LineName& loop) {
  Cutter cutter(block_body, loop);
  Block result = cutter.block_level(block_body);
  for (const Stmt& declaration : cutter.declarations()) insert_declaration(result, declaration);
  return result;
}

}  // namespace tilewright
