// Hand kernels of programs and of readers.
#include "runtime/library/hands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/hand_source.h"
#include "runtime/instruments.h"

namespace tilewright {

namespace {

std::string read_text(const std::string& path, Span span = {}) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(span, fmt::format("cannot read `{}`: {}", path, std::strerror(errno)));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

HandProgram from_item(const HandItem& item, std::string name, std::string path, std::string text) {
  HandProgram hand{std::move(name), std::move(path), std::move(text), item.temps, {}, item.when};
  for (const HandItem::Step& step : item.steps)
    match_variant(
        step,
        [&](const HandItem::Launch& launch) {
          hand.steps.push_back(HandLaunch{launch.kernel, launch.grid, launch.block, launch.shared_bytes, launch.arguments, launch.span});
        },
        [&](const HandItem::Zero& zero) { hand.steps.push_back(HandZero{zero.tensor}); },
        [&](const HandItem::Constant& constant) { hand.steps.push_back(HandConstant{constant.symbol, constant.tensor}); });
  return hand;
}

}  // namespace

std::vector<HandProgram> hand_programs(const Program& program, const TensorFn& fn, const std::string& folder, const DimMap& dims) {
  std::vector<HandProgram> result;
  for (const HandItem& item : program.hands) {
    if (item.fn != fn.name || !failed_conditions(fn, item.when, dims).empty()) continue;
    std::string path = (std::filesystem::path(folder) / item.file).lexically_normal().string();
    result.push_back(from_item(item, item.label, path, read_text(path, item.span)));
  }
  return result;
}

HandProgram hand_from_file(const std::string& path, const TensorFn& fn) {
  std::string text = read_text(path);
  HandSource source = read_hand_source(text, path);
  std::string steps;
  for (const HandComment& comment : source.comments) steps += comment.step + "\n";
  if (steps.empty()) {
    std::string kernels;
    for (const HandKernel& kernel : source.kernels) kernels += (kernels.empty() ? "" : ", ") + kernel.name;
    throw UserError({}, fmt::format("`{}` does not say how its kernel is launched", path),
                    fmt::format("write `// launch {}<<<(ceildiv(N, 16), ceildiv(M, 16)), (16, 16)>>>(A, B, C)` above it{}", source.kernels.empty() ? "kernel" : source.kernels[0].name,
                                kernels.empty() ? "" : "; its kernels are " + kernels));
  }
  HandItem item = parse_hand_steps(steps, fn);
  // The comments' template arguments were taken out for the reader of steps; the launches get them back, in order.
  auto comment = source.comments.begin();
  for (HandItem::Step& step : item.steps)
    if (HandItem::Launch* launch = std::get_if<HandItem::Launch>(&step)) {
      comment = std::find_if(comment, source.comments.end(), [&](const HandComment& one) { return one.kernel == launch->kernel; });
      if (comment == source.comments.end()) break;
      launch->kernel = comment->instance;
      ++comment;
    }
  return from_item(item, std::filesystem::path(path).filename().string(), path, std::move(text));
}

namespace {

// What a launch makes of the axes of an output: x goes with the last one, y with the one before. The threads of a block
// and the elements that a block of the grid has for itself.
TileSizes tiles_of(const PreparedHand& hand, const std::vector<std::int64_t>& shape) {
  TileSizes tiles(shape.size());
  for (const auto& step : hand.steps) {
    const auto* launch = std::get_if<PreparedLaunch>(&step);
    if (!launch) continue;
    for (std::size_t n = 0; n < std::min<std::size_t>(shape.size(), 3); ++n) {
      const std::size_t axis = shape.size() - 1 - n;
      tiles[axis].push_back(launch->block[n]);
    }
  }
  return tiles;
}

std::string_view name_of(Instrument instrument) { return instrument == Instrument::Exact ? "exact" : instrument == Instrument::Random ? "random" : "special"; }

}  // namespace

namespace {

// One kind of data at one set of sizes.
HandVerdict check_once(Instrument instrument, const HandPtx& hand, const TensorFn& fn, const Plan& plan, const DimMap& dims, std::uint64_t seed, bool is_worst_case) {
  HandVerdict verdict;
  Arguments arguments = bind_arguments(plan, instrument_inputs(instrument, fn, dims, seed), dims);
  const Expectation expected = expect(fn, instrument, arguments, {}, is_worst_case);
  const PreparedHand prepared = prepare_hand(hand.program, hand.source, hand.entries, plan, arguments);
  const RunReport report = run_hand_on_ptx(hand, plan, arguments);
  verdict.printed = report.printed;
  const auto add = [&](const std::string& line) {
    verdict.text += (verdict.text.empty() ? "" : "\n") + line;
    verdict.is_right = false;
  };
  if (report.error && !expected.oracle.error) add(describe(plan, *report.error));
  for (const std::string& fault : report.faults) add(fault);
  for (const OracleTensor& output : expected.oracle.outputs) {
    const HostTensor& got = arguments.tensors.at(output.name);
    const Comparison comparison = compare(output, got, expected.rule, tiles_of(prepared, got.shape));
    verdict.worst_ratio = std::max(verdict.worst_ratio, comparison.worst_ratio);
    if (!comparison.is_right()) add(comparison.text);
  }
  return verdict;
}

// Sizes nearby at which the kernel is right, where they are multiples of what a block has along an axis: the relation of
// a fault to the tile, for sizes that no output shows.
std::string cured_by_multiples(Instrument instrument, const HandPtx& hand, const TensorFn& fn, const Plan& plan, const DimMap& dims, std::uint64_t seed) {
  std::set<std::int64_t, std::greater<>> tiles;
  const Arguments arguments = bind_arguments(plan, instrument_inputs(instrument, fn, dims, seed), dims);
  const PreparedHand prepared = prepare_hand(hand.program, hand.source, hand.entries, plan, arguments);
  for (const auto& step : prepared.steps)
    if (const auto* launch = std::get_if<PreparedLaunch>(&step))
      for (const unsigned extent : launch->block)
        if (extent > 1 && extent <= 64) tiles.insert(extent);
  const auto round_up = [](std::int64_t size, std::int64_t tile) { return std::max<std::int64_t>(1, (size + tile - 1) / tile) * tile; };
  const auto is_cured = [&](const DimMap& others) { return others != dims && check_once(instrument, hand, fn, plan, others, seed, false).is_right; };
  for (const std::int64_t tile : tiles) {
    for (const auto& [name, size] : dims) {
      DimMap others = dims;
      others[name] = round_up(size, tile);
      if (is_cured(others)) return fmt::format("it is right with {} = {}: {} is then a multiple of {}, as many threads as a block has along an axis", name, others[name], name, tile);
    }
    DimMap others = dims;
    for (auto& [name, size] : others) size = round_up(size, tile);
    if (is_cured(others)) return fmt::format("it is right where all sizes are multiples of {}, as many threads as a block has along an axis", tile);
  }
  return "";
}

}  // namespace

HandVerdict check_hand(const HandPtx& hand, const TensorFn& fn, const Plan& plan, const DimMap& dims, std::uint64_t seed, bool is_worst_case) {
  HandVerdict verdict;
  for (const Instrument instrument : {Instrument::Exact, Instrument::Random, Instrument::Special}) {
    HandVerdict one = check_once(instrument, hand, fn, plan, dims, seed, is_worst_case);
    verdict.worst_ratio = std::max(verdict.worst_ratio, one.worst_ratio);
    verdict.printed += one.printed;
    if (one.is_right) continue;
    verdict.is_right = false;
    verdict.text = fmt::format("on {} data: {}", name_of(instrument), one.text);
    if (std::string cure = cured_by_multiples(instrument, hand, fn, plan, dims, seed); !cure.empty()) verdict.text += "\n  " + cure;
    return verdict;  // other data would say the same again
  }
  verdict.text = fmt::format("right on exact, random and special data ({:.2f} of the bound)", verdict.worst_ratio);
  return verdict;
}

std::optional<PlainProduct> plain_product(const TensorFn& fn) {
  if (fn.statements.size() != 1 || !fn.lets.empty()) return std::nullopt;
  const TensorStmt& stmt = fn.statements[0];
  if (stmt.combine || !stmt.where.empty() || stmt.index.size() != 2) return std::nullopt;
  auto without_casts = [](Expr expr) {
    while (const Cast* cast = as<Cast>(expr)) expr = cast->operand;
    return expr;
  };
  const Reduce* sum = as<Reduce>(without_casts(stmt.value));
  if (!sum || sum->op != CombineOp::Add || sum->axes.size() != 1 || !sum->where.empty()) return std::nullopt;
  const Binary* product = as<Binary>(without_casts(sum->body));
  if (!product || product->op != BinaryOp::Mul) return std::nullopt;
  const Load* left = as<Load>(without_casts(product->lhs));
  const Load* right = as<Load>(without_casts(product->rhs));
  if (!left || !right || left->access.index.size() != 2 || right->access.index.size() != 2) return std::nullopt;
  auto is = [](const Expr& expr, const Expr& other) { return expr == other; };
  Expr k = var(sum->axes[0].name);
  bool fits = is(left->access.index[0], stmt.index[0]) && is(left->access.index[1], k) && is(right->access.index[0], k) && is(right->access.index[1], stmt.index[1]);
  if (!fits) return std::nullopt;
  PlainProduct result{Dtype::F32, left->access.buffer, right->access.buffer, stmt.target, {}, {}, {}};
  std::optional<Dtype> dtype;
  for (const Param& param : fn.params) {
    if (param.shape.size() != 2) return std::nullopt;
    if (dtype && *dtype != param.dtype) return std::nullopt;
    dtype = param.dtype;
    if (param.name == result.a) result.m = param.shape[0], result.k = param.shape[1];
    if (param.name == result.b) result.n = param.shape[1];
  }
  if (!dtype || (*dtype != Dtype::F32 && *dtype != Dtype::BF16 && *dtype != Dtype::F16) || !result.m || !result.n) return std::nullopt;
  result.dtype = *dtype;
  return result;
}

}  // namespace tilewright
