// Schedule lines by recipe.
#include "tests/fuzz/draw_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/diagnostic.h"

namespace tilewright::fuzz {

namespace {

// What lines may name of a kernel.
struct KernelView {
  std::string name;
  std::vector<std::string> free;     // axes of its parallel loops
  std::vector<std::string> reduced;  // names of its serial loops
  std::vector<std::string> reads;    // tensors with axes
  bool has_deep_operands = false;    // two narrow operands of a product
};

KernelView view_of(const Kernel& kernel) {
  KernelView view{kernel.name, {}, {}, {}, false};
  std::set<std::string> reads;
  walk(kernel.body, [&](const Stmt& stmt) {
    if (const Loop* loop = as<Loop>(stmt))
      for (const Axis& axis : loop->axes) (loop->kind == LoopKind::Serial ? view.reduced : view.free).push_back(axis.name);
    return true;
  });
  walk_expressions(kernel.body, [&](const Expr& expr) {
    walk(expr, [&](const Expr& node) {
      if (const Load* load = as<Load>(node); load && !load->access.index.empty()) reads.insert(load->access.buffer);
      return true;
    });
  });
  view.reads.assign(reads.begin(), reads.end());
  return view;
}

class ScheduleDraw {
 public:
  ScheduleDraw(Random& random, const Plan& plan, Tally& tally, DrawnSchedule& drawn) : random_(random), plan_(plan), tally_(tally), drawn_(drawn) {}

  Plan run(bool for_tensor_cores) {
    draw(for_tensor_cores);
    return plan_;
  }

 private:
  void draw(bool for_tensor_cores) {
    for (const Kernel* kernel : kernels_of(plan_)) views_.push_back(view_of(*kernel));
    if (views_.size() > 1 && random_.chance(55)) merge_kernels();
    views_.clear();
    for (const Kernel* kernel : kernels_of(plan_)) views_.push_back(view_of(*kernel));
    if (views_.empty()) return;
    if (random_.chance(8)) attempt("contract off");
    for (std::size_t n = 0; n < views_.size(); ++n) {
      kernel_ = views_[n];
      has_target_ = views_.size() > 1 && (n > 0 || random_.chance(80));
      if (n > 0 && !random_.chance(55)) continue;
      if (for_tensor_cores && n == 0) tensor_cores();
      else if (!kernel_.reduced.empty() && random_.chance(30)) shared_reduction();
      else threads();
    }
    if (random_.chance(8)) attempt(random_.pick({"contract off", "math fast", "math fast"}));
    for (std::size_t count = random_.weighted({70, 20, 10}); count > 0; --count) attempt(anything());
  }

  void attempt(std::string text) {
    if (has_target_ && !text.empty() && random_.chance(90) && !text.starts_with("inline") && !text.starts_with("fuse")) text = kernel_.name + ": " + text;
    drawn_.tried = text;
    std::string word;
    try {
      const ScheduleLine line = tokenize_line(text);
      const auto words = schedule_passes();
      word = std::any_of(words.begin(), words.end(), [&](const SchedulePass& pass) { return pass.word == line.word; }) ? line.word : "an unknown word";
      tally_.count("line drawn", word);
      plan_ = apply_line(plan_, line, Target{});
      tally_.count("line accepted", word);
      drawn_.lines.push_back(text);
    } catch (const UserError& error) {
      tally_.count("line refused", word);
      tally_.count("refusal", fmt::format("{}: {}", word, kind_of_refusal(error.diagnostics().front().message)));
    }
    drawn_.tried.clear();
  }

  // A sequence of lines, some left out, now and then two the other way round.
  void attempt_all(std::vector<std::string> lines) {
    if (lines.size() > 1 && random_.chance(12)) {
      const std::size_t at = random_.below(lines.size() - 1);
      std::swap(lines[at], lines[at + 1]);
    }
    for (const std::string& line : lines)
      if (random_.chance(94)) attempt(line);
  }

  std::string loop() {
    std::vector<std::string> names = kernel_.free;
    names.insert(names.end(), kernel_.reduced.begin(), kernel_.reduced.end());
    if (names.empty() || random_.chance(3)) return "q";
    return random_.pick(names);
  }
  std::string tensor() { return kernel_.reads.empty() || random_.chance(3) ? kernel_.name : random_.pick(kernel_.reads); }
  std::string place() { return loop() + random_.pick({".block", ".block", ".block", ""}); }

  void merge_kernels() {
    std::vector<std::string> lines;
    for (const Temp& temp : plan_.temps)
      if (random_.chance(60)) lines.push_back("inline " + temp.name);
    if (random_.chance(50)) {
      const KernelView& into = views_.back();
      std::vector<std::string> from;
      for (const KernelView& view : views_)
        if (view.name != into.name && (random_.chance(60) || from.empty())) from.push_back(view.name);
      lines.push_back(fmt::format("fuse {} into {} at {}", fmt::join(from, ", "), into.name, into.free.empty() ? "i" : random_.pick(into.free)));
      if (random_.chance(40)) std::swap(lines.front(), lines.back());
    }
    for (const std::string& line : lines) attempt(line);
  }

  std::string tile_line(const std::vector<std::string>& free, const std::vector<std::string>& reduced, const std::vector<std::string>& sizes, const std::vector<std::string>& depths) {
    std::string text = "tile block ";
    std::vector<std::string> parts;
    for (const std::string& name : free) parts.push_back(name + " " + random_.pick(sizes));
    for (const std::string& name : reduced) parts.push_back(name + " " + random_.pick(depths));
    if (random_.chance(5)) std::reverse(parts.begin(), parts.end());
    return text + fmt::format("{}", fmt::join(parts, ", "));
  }

  std::string stage_line(const std::string& at, const std::string& layout) {
    std::vector<std::string> tensors = kernel_.reads;
    if (tensors.size() > 1 && random_.chance(40)) tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(random_.below(tensors.size())));
    if (tensors.size() > 2) tensors.resize(2);
    if (tensors.empty()) tensors.push_back(kernel_.name);
    return fmt::format("stage {} in shared at {}{}", fmt::join(tensors, ", "), at, layout);
  }

  std::string pipeline_line(const std::string& at) {
    const std::string mechanism = random_.pick({"registers", "registers", "cp.async", "cp.async", "tma"});
    const int depth = mechanism == "registers" ? 2 : static_cast<int>(2 + random_.below(3));
    std::string text = fmt::format("pipeline {} depth {} via {}", at, depth, mechanism);
    if (mechanism != "registers" && random_.chance(30)) text += fmt::format(", in flight {}", random_.below(static_cast<std::size_t>(depth)));
    return text;
  }

  std::string persist_line() { return std::string("persist order ") + random_.pick({"rows", "rows", "grouped", "grouped 2", "hilbert", "hilbert by gpc", "grouped 2 by gpc"}); }

  // Tiles for single threads.
  void threads() {
    std::vector<std::string> free = kernel_.free, reduced = kernel_.reduced;
    if (free.size() > 3) free.resize(3);
    if (free.size() > 2 && random_.chance(50)) free.erase(free.begin());
    if (!reduced.empty() && random_.chance(20)) reduced.clear();
    if (reduced.size() > 1 && random_.chance(60)) reduced.resize(1);
    const std::vector<std::string> sizes = {"2", "4", "8", "16", "4", "8", "3", "5", "32"}, depths = {"2", "4", "8", "16", "3"};
    std::vector<std::string> lines;
    if (!free.empty() || !reduced.empty()) lines.push_back(tile_line(free, reduced, sizes, depths));
    if (!free.empty() && random_.chance(10)) lines.push_back(fmt::format("tile thread {} 2", random_.pick(free)));
    const std::string depth = reduced.empty() ? (free.empty() ? "i" : free.back()) : reduced.front();
    if (!reduced.empty() && random_.chance(15)) lines.push_back(fmt::format("peel {}.block", depth));
    if (random_.chance(80) && !free.empty()) {
      if (random_.chance(20)) {
        lines.push_back(fmt::format("warps {}", random_.pick({"1", "2", "4"})));
      } else {
        std::vector<std::string> parts = {free.back() + " thread.x"};
        if (free.size() > 1) parts.insert(parts.begin(), free[free.size() - 2] + " thread.y");
        if (random_.chance(6)) parts[0] = free[0] + random_.pick({" block", " thread.x", " thread.z"});
        lines.push_back(fmt::format("bind {}", fmt::join(parts, ", ")));
      }
    }
    std::vector<std::string> later;
    int by = 0;
    if (!free.empty() && random_.chance(40)) {
      by = random_.chance(60) ? random_.pick({2, 4}) : 0;
      std::vector<std::string> parts;
      for (const std::string& name : free)
        if (random_.chance(70) || parts.empty()) parts.push_back(fmt::format("{} {}{}", name, by > 0 ? by * random_.pick({1, 2}) : random_.pick({2, 4}), by > 0 ? fmt::format(" by {}", by) : ""));
      later.push_back(fmt::format("coarsen {}", fmt::join(parts, ", ")));
    }
    bool is_staged = false;
    if (random_.chance(60)) {
      const std::string layout = random_.chance(25) ? random_.pick({" pad 1", " pad 4", " transposed", " pad 4 transposed", " swizzle 32"}) : "";
      const std::string at = random_.chance(85) ? depth + ".block" : place();
      later.push_back(stage_line(at, layout));
      is_staged = true;
    }
    if (later.size() > 1 && random_.chance(30)) std::swap(later[0], later[1]);
    lines.insert(lines.end(), later.begin(), later.end());
    if (!reduced.empty() && random_.chance(15)) lines.push_back(fmt::format("peel {}.block", depth));
    if (random_.chance(10) && !free.empty()) lines.push_back(fmt::format("peel {}.block", random_.pick(free)));
    if (random_.chance(by > 0 ? 65 : 8)) lines.push_back(fmt::format("vectorize {}", by > 0 ? by : random_.pick({2, 4})));
    if (random_.chance(30)) lines.push_back(random_.chance(50) ? "unroll " + depth : fmt::format("unroll {} {}", depth, random_.pick({2, 4})));
    if (is_staged && random_.chance(35)) lines.push_back(pipeline_line(depth + ".block"));
    if (random_.chance(12)) lines.push_back(persist_line());
    if (random_.chance(6) && !free.empty()) lines.push_back(fmt::format("cluster {}.block 2", random_.pick(free)));
    attempt_all(std::move(lines));
  }

  // A reduction shared by threads, or by blocks and then by threads.
  void shared_reduction() {
    const std::string index = kernel_.reduced.empty() ? "k" : random_.pick(kernel_.reduced);
    const auto by = [&] { return std::string(random_.pick({"", "", " by 2", " by 4"})); };
    std::vector<std::string> lines;
    if (random_.chance(25)) {
      lines.push_back(fmt::format("split {} block {}", index, random_.pick({"4", "8", "16", "3"})));
      if (random_.chance(60)) lines.push_back(fmt::format("split {} {} thread.x{}", index + random_.pick({"", ".part"}), random_.pick({"32", "64"}), by()));
      return attempt_all(std::move(lines));
    }
    std::string place = "thread.x", threads = random_.pick({"32", "64", "96", "48", "128"});
    if (!kernel_.free.empty()) {
      const std::string& last = kernel_.free.back();
      const std::size_t form = random_.below(10);
      if (form < 4) {
        std::vector<std::string> parts;
        for (const std::string& name : kernel_.free) parts.push_back(name + " block");
        lines.push_back(fmt::format("bind {}", fmt::join(parts, ", ")));
      } else if (form < 7) {
        lines = {fmt::format("tile block {} {}", last, random_.pick({"2", "4", "8"})), fmt::format("bind {} thread.y", last)};
        threads = random_.pick({"8", "16", "32", "64"});
      } else {
        lines = {fmt::format("tile block {} {}", last, random_.pick({"8", "16", "32"})), fmt::format("bind {} thread.x", last)};
        threads = random_.pick({"2", "4", "8"});
        place = random_.pick({"thread.y", "thread.y", "thread.z", "thread.x"});
      }
      if (form >= 4 && random_.chance(25)) lines.push_back(fmt::format("coarsen {} 2", last));
    }
    lines.push_back(fmt::format("split {} {} {}{}", index, threads, place, by()));
    if (lines.back().find(" by ") != std::string::npos && random_.chance(60)) lines.push_back("vectorize " + lines.back().substr(lines.back().size() - 1));
    if (random_.chance(15)) lines.push_back("unroll " + index + ".block");
    attempt_all(std::move(lines));
  }

  // Tiles for warpgroups.
  void tensor_cores() {
    if (kernel_.free.size() < 2 || kernel_.reduced.empty()) return threads();
    const std::string i = kernel_.free[kernel_.free.size() - 2], j = kernel_.free.back(), k = kernel_.reduced.front();
    if (random_.chance(30)) return every_line_of_hopper(i, j, k);
    const bool is_wgmma = random_.chance(65);
    const std::string depth = random_.pick({"16", "16", "32"});
    std::vector<std::string> lines = {fmt::format("tile block {} {}, {} {}, {} {}", i, is_wgmma ? "64" : random_.pick({"16", "32", "64"}), j, random_.pick({"16", "32", "64"}), k, depth)};
    lines.push_back(fmt::format("warps {}", is_wgmma ? "4" : random_.pick({"1", "2", "4"})));
    lines.push_back(stage_line(k + ".block", is_wgmma || random_.chance(30) ? fmt::format(" swizzle {}", depth == "16" ? "32" : "64") : random_.pick({"", " pad 8"})));
    lines.push_back(is_wgmma ? "mma wgmma over " + i : "mma mma.sync");
    const std::string mechanism = is_wgmma ? random_.pick({"tma", "tma", "tma", "cp.async", "registers"}) : random_.pick({"cp.async", "registers", "tma"});
    if (random_.chance(75)) lines.push_back(fmt::format("pipeline {}.block depth {} via {}{}", k, mechanism == "registers" ? 2 : static_cast<int>(2 + random_.below(3)), mechanism, random_.chance(30) && mechanism != "registers" ? ", in flight 1" : ""));
    if (random_.chance(45)) lines.push_back(fmt::format("roles producer 1 {}, consumer 1 warpgroup{}", random_.chance(70) ? "warpgroup registers 40" : random_.pick({"warpgroup", "warp"}), random_.chance(70) ? " registers 232" : ""));
    if (random_.chance(35)) lines.push_back(fmt::format("cluster {}.block 2{}", random_.pick({i, i, j}), random_.chance(75) && !kernel_.reads.empty() ? " multicast " + tensor() : ""));
    if (random_.chance(45)) lines.push_back(fmt::format("epilogue {} via shared tma, tile {} {} buffers {}", kernel_.name, j, random_.pick({"16", "16", "32", "8"}), random_.pick({"1", "2"})));
    if (random_.chance(45)) lines.push_back(persist_line());
    if (random_.chance(45)) lines.push_back("overlap " + kernel_.name);
    attempt_all(std::move(lines));
  }

  // The whole way of a product to Hopper's tensor cores: each line needs those before it.
  void every_line_of_hopper(const std::string& i, const std::string& j, const std::string& k) {
    const std::string depth = random_.pick({"16", "32"});
    const std::string columns = random_.pick({"16", "32", "64"});
    attempt(fmt::format("tile block {} 64, {} {}, {} {}", i, j, columns, k, depth));
    attempt("warps 4");
    attempt(stage_line(k + ".block", fmt::format(" swizzle {}", depth == "16" ? "32" : "64")));
    attempt("mma wgmma over " + i);
    attempt(fmt::format("pipeline {}.block depth {} via tma{}", k, random_.pick({"2", "3", "4"}), random_.chance(50) ? ", in flight 1" : ""));
    if (random_.chance(70)) attempt("roles producer 1 warpgroup registers 40, consumer 1 warpgroup registers 232");
    if (random_.chance(35)) attempt(fmt::format("cluster {}.block 2{}", i, kernel_.reads.empty() ? "" : " multicast " + kernel_.reads.back()));
    attempt(fmt::format("epilogue {} via shared tma, tile {} {} buffers {}", kernel_.name, j, random_.chance(80) ? "16" : columns, random_.pick({"1", "2"})));
    attempt(persist_line());
    attempt("overlap " + kernel_.name);
    if (random_.chance(15)) attempt("overlap " + kernel_.name);
  }

  // Any word, in any place, with what comes to hand.
  std::string anything() {
    const auto number = [&] { return random_.pick({"1", "2", "3", "4", "8", "16", "0", "64", "1000"}); };
    switch (random_.below(22)) {
      case 0: return "inline " + (plan_.temps.empty() ? tensor() : random_.pick(plan_.temps).name);
      case 1: return fmt::format("fuse {} into {} at {}", tensor(), kernel_.name, loop());
      case 2: return fmt::format("tile {} {} {}", random_.pick({"block", "warp", "thread", "outer"}), place(), number());
      case 3: return fmt::format("bind {} {}", loop(), random_.pick({"thread.x", "thread.y", "block", "thread.w"}));
      case 4: return fmt::format("warps {}", random_.pick({"1", "4", "8", "33", "0"}));
      case 5: return fmt::format("coarsen {} {}{}", loop(), number(), random_.chance(40) ? " by " + std::string(number()) : "");
      case 6: return fmt::format("stage {} in {} at {}{}", tensor(), random_.pick({"shared", "shared", "registers"}), place(), random_.pick({"", " pad 1", " swizzle 128", " transposed"}));
      case 7: return fmt::format("vectorize {}", random_.pick({"2", "4", "8", "3"}));
      case 8: return random_.pick({"mma wgmma over " + loop(), std::string("mma mma.sync"), std::string("mma hmma")});
      case 9: return pipeline_line(place());
      case 10: return fmt::format("pipeline {} in flight 1", place());
      case 11: return "roles producer 1 warpgroup, consumer 1 warpgroup";
      case 12: return fmt::format("cluster {} {}{}", place(), random_.pick({"2", "4", "16", "1"}), random_.chance(30) ? " multicast " + tensor() : "");
      case 13: return fmt::format("epilogue {} via shared tma, tile {} {} buffers 2", kernel_.name, loop(), number());
      case 14: return persist_line();
      case 15: return fmt::format("unroll {} {}", place(), random_.pick({"", "2", "4", "5"}));
      case 16: return fmt::format("peel {}", place());
      case 17: return random_.pick({"contract off", "contract on"});
      case 18: return random_.pick({"math fast", "math slow"});
      case 19: return "overlap " + (random_.chance(80) ? kernel_.name : tensor());
      case 20: return fmt::format("split {} {}{}", place(), random_.pick({"block ", ""}), random_.pick({"16", "32 thread.x", "64 thread.x by 2", "32 lane", "32 thread.x by 100", "8 thread.y"}));
      default: return random_.pick({"tiel block i 4", "split d 4", "stage", "bind", "tile block", "split", "persist order", "vectorize vectorize", "coarsen i", "unroll"});
    }
  }

  Random& random_;
  Plan plan_;
  Tally& tally_;
  DrawnSchedule& drawn_;
  std::vector<KernelView> views_;
  KernelView kernel_;
  bool has_target_ = false;
};

}  // namespace

std::vector<std::string> draw_facts(Random& random, const std::vector<std::string>& dims, bool for_tensor_cores) {
  std::vector<std::string> facts;
  if (!for_tensor_cores && random.chance(45)) return facts;
  for (const std::string& dim : dims)
    if (random.chance(for_tensor_cores ? 90 : 60)) facts.push_back(fmt::format("{} % {} == 0", dim, for_tensor_cores ? "8" : random.pick({"4", "4", "2", "8", "3"})));
  if (random.chance(for_tensor_cores ? 92 : 60)) facts.push_back("aligned 16");
  if (random.chance(10)) facts.push_back("contiguous");
  return facts;
}

Plan draw_schedule(Random& random, const Plan& plan, bool for_tensor_cores, Tally& tally, DrawnSchedule& drawn) { return ScheduleDraw(random, plan, tally, drawn).run(for_tensor_cores); }

}  // namespace tilewright::fuzz
