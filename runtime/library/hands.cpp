// Hand kernels of programs and of readers.
#include "runtime/library/hands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/hand_source.h"

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
  HandProgram hand{std::move(name), std::move(path), std::move(text), item.temps, {}};
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
