// Text of statements and plans: one statement and one brace a line, two blanks a level.
#include "ir/printer.h"

#include <fmt/format.h>

#include "ir/operators.h"
#include "ir/plan.h"

namespace tilewright {

namespace {

std::string_view word_of(LoopKind kind) {
  switch (kind) {
    case LoopKind::Parallel: return "parallel";
    case LoopKind::Grid: return "grid";
    case LoopKind::Cluster: return "cluster";
    case LoopKind::Ordered: return "ordered";
    case LoopKind::Each: return "each";
    case LoopKind::Serial: return "serial";
    case LoopKind::Unroll: return "unroll";
    case LoopKind::Vector: return "vector";
  }
  return "";
}

std::string_view word_of(VerbKind kind) {
  switch (kind) {
    case VerbKind::Acquire: return "acquire";
    case VerbKind::Commit: return "commit";
    case VerbKind::Wait: return "wait";
    case VerbKind::Release: return "release";
  }
  return "";
}

std::string_view word_of(ParamKind kind) {
  switch (kind) {
    case ParamKind::In: return "in";
    case ParamKind::Out: return "out";
    case ParamKind::InOut: return "inout";
  }
  return "";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string list_of(const std::vector<Expr>& list) {
  std::string text;
  for (const Expr& item : list) text += (text.empty() ? "" : ", ") + print_expr(item);
  return text;
}

// A value whose place says its dtype: a literal there needs none.
std::string print_value(const Expr& value) { return print_expr(value, value->dtype); }

class Printer {
 public:
  explicit Printer(std::vector<PrintedLine>* lines) : lines_(lines) {}

  std::string take() { return std::move(out_); }

  void plan(const Plan& plan) {
    std::string header = "plan " + plan.name;
    if (!plan.schedule.empty()) header += " " + quoted(plan.schedule);
    if (!plan.arch.empty()) header += " for " + plan.arch;
    open(header);
    dims(plan.dims);
    for (const Param& param : plan.params) line(fmt::format("{} {}: {}", word_of(param.kind), param.name, print_type(param.dtype, param.shape)));
    if (!plan.facts.empty()) facts(plan.facts);
    if (plan.index_bits != 32) line(fmt::format("class index {}", plan.index_bits));
    for (const Temp& temp : plan.temps) line(fmt::format("temp {}: {}", temp.name, print_type(temp.dtype, temp.shape)));
    if (!plan.error_name.empty() || !plan.errors.empty()) errors(plan);
    for (const Step& item : plan.steps)
      match_variant(
          item, [&](const Clear& clear) { line(fmt::format("clear {} {}", clear.tensor, print_expr(clear.value, clear.value->dtype, 1))); },
          [&](const Table& table) {
            line(fmt::format("table {}: {} = {}", table.name, print_type(table.dtype, table.shape), print_value(table.value)));
          },
          [&](const Kernel& node) { kernel(node); });
    close();
  }

  void kernel(const Kernel& kernel) {
    open(header_of(kernel));
    block(kernel.body);
    close();
  }

  void statement(const Stmt& stmt, std::string label = "") {
    if (!as<Labelled>(stmt) && lines_) lines_->push_back({line_, stmt->span});
    auto plain = [&](const std::string& text) { line(label + text); };
    match(
        stmt,
        [&](const Loop& node) {
          std::string text = fmt::format("{}{} ", label, word_of(node.kind));
          for (std::size_t n = 0; n < node.axes.size(); ++n) text += (n ? ", " : "") + print_axis(node.axes[n]);
          if (node.deal) text += " on " + print(*node.deal);
          open(text);
          block(node.body);
          close();
        },
        [&](const If& node) {
          open(fmt::format("{}if {}", label, print_expr(node.condition, {}, 1)));
          block(node.then_body);
          if (!node.else_body.empty()) {
            --depth_;
            open("} else");
            block(node.else_body);
          }
          close();
        },
        [&](const Buffer& node) { plain(buffer(node)); },
        [&](const Let& node) {
          std::string range;
          if (node.lo || node.hi)
            range = fmt::format(" in {}..{}", node.lo ? print_expr(node.lo) + " " : "", node.hi ? " " + print_expr(node.hi) : "");
          plain(fmt::format("let {} = {}{}", node.name, print_expr(node.value), range));
        },
        [&](const Store& node) {
          const std::string op = node.atomic ? fmt::format("{}=", info(*node.atomic).spelling) : "=";
          plain(fmt::format("{}{} {} {}{}", node.atomic ? "atomic " : "", print_access(node.target), op, print_value(node.value),
                            print_where(node.where)));
        },
        [&](const Copy& node) {
          plain(fmt::format("copy {} <- {}{}{}{}", print_access(node.target), print_access(node.source),
                            node.multicast.empty() ? "" : " multicast " + node.multicast, print_where(node.where),
                            node.deal ? " on " + print(*node.deal) : ""));
        },
        [&](const Fill& node) { plain(fmt::format("fill {} <- {}", node.buffer, print_value(node.value))); },
        [&](const Mma& node) {
          plain(fmt::format("mma {} += {} * {} by {}", print_access(node.target), print_access(node.a), print_access(node.b), node.instruction));
        },
        [&](const Fold& node) {
          plain(fmt::format("{} {} <- {} {}{}", node.is_scan ? "scan" : "reduce", print_access(node.target), info(node.op).spelling,
                            print_access(node.source), node.total.empty() ? "" : " total " + node.total));
        },
        [&](const Pipe& node) {
          plain(fmt::format("pipe {}: {} slots {} via {}{} scope {}", node.name, fmt::join(node.buffers, ", "), node.slots, node.mechanism,
                            node.in_flight ? fmt::format(" in flight {}", node.in_flight) : "",
                            node.scope == PipeScope::Cta ? "block" : "cluster"));
        },
        [&](const Verb& node) { plain(fmt::format("{} {}", word_of(node.kind), node.pipe)); },
        [&](const Role& node) {
          plain(fmt::format("role {} warps {} .. {}{}", node.name, node.first_warp, node.last_warp,
                            node.registers ? fmt::format(" registers {}", node.registers) : ""));
        },
        [&](const Labelled& node) { statement(node.statement, fmt::format("{}@{} ", label, node.role)); },
        [&](const Chain& node) {
          plain(fmt::format("chain {}: {} by {} from {}", node.name, info(node.dtype).name, info(node.op).spelling, print_expr(node.start, node.dtype)));
        },
        [&](const Publish& node) { plain(fmt::format("publish {} <- {}", node.chain, print_value(node.value))); },
        [&](const Lookback& node) { plain(fmt::format("lookback {} <- {}", print_access(node.target), node.chain)); },
        [&](const Instr& node) { plain(fmt::format("{}({})", node.op, list_of(node.operands))); });
  }

 private:
  void line(const std::string& text) {
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    out_ += text + "\n";
    ++line_;
  }
  void open(const std::string& text) {
    line(text + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  void block(const Block& body) {
    for (const Stmt& stmt : body) statement(stmt);
  }

  static std::string buffer(const Buffer& node) {
    std::string text = fmt::format("{} {}: {}", node.space == Space::Register ? "reg" : "shared", node.name, info(node.dtype).name);
    for (std::size_t n = 0; n < node.axes.size(); ++n) {
      const BufferAxis& axis = node.axes[n];
      text += fmt::format("{}{}{}{}", n ? ", " : "[", axis.name, axis.name.empty() ? "" : " ", axis.extent);
    }
    if (!node.axes.empty()) text += "]";
    if (node.layout) text += " " + print(*node.layout);
    if (node.offset) text += fmt::format(" at {}", *node.offset);
    return text;
  }

  void dims(const std::vector<Dim>& list) {
    std::string names;
    for (const Dim& dim : list) {
      if (!dim.value) {
        names += (names.empty() ? "dim " : ", ") + dim.name;
        continue;
      }
      if (!names.empty()) line(names);
      names.clear();
      line(fmt::format("dim {} = {}", dim.name, print_expr(dim.value)));
    }
    if (!names.empty()) line(names);
  }

  void facts(const std::vector<Fact>& list) {
    std::string text;
    for (const Fact& fact : list) {
      text += text.empty() ? "when " : ", ";
      switch (fact.kind) {
        case Fact::Kind::Condition: text += print_expr(fact.condition); break;
        case Fact::Kind::Aligned: text += fmt::format("aligned {}", fact.alignment); break;
        case Fact::Kind::Contiguous: text += "contiguous"; break;
      }
    }
    line(text);
  }

  void errors(const Plan& plan) {
    std::string text;
    for (const ErrorSite& site : plan.errors) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", site.id, print_expr(site.access));
    const std::string space = plan.error_name.empty() ? "" : " ";
    line(fmt::format("error{}{} {{ {}{}}}", space, plan.error_name, text, text.empty() ? "" : " "));
  }

  static std::string header_of(const Kernel& kernel) {
    std::string text = "kernel " + kernel.name;
    if (kernel.stage == Stage::Thread) text += " thread";
    if (!kernel.launch.arch.empty()) text += " for " + kernel.launch.arch;
    if (kernel.warps) text += fmt::format(" warps {}", kernel.warps);
    if (!kernel.block_shape.empty()) text += fmt::format(" threads ({})", fmt::join(kernel.block_shape, ", "));
    const LaunchHeader& launch = kernel.launch;
    if (!launch.grid.empty()) text += fmt::format(" grid ({})", list_of(launch.grid));
    if (!launch.block.empty()) text += fmt::format(" block ({})", fmt::join(launch.block, ", "));
    if (!launch.cluster.empty()) text += fmt::format(" cluster ({})", fmt::join(launch.cluster, ", "));
    if (launch.shared_bytes) text += fmt::format(" shared {}", launch.shared_bytes);
    if (launch.align) text += fmt::format(" align {}", launch.align);
    if (launch.min_blocks) text += fmt::format(" min_blocks {}", launch.min_blocks);
    if (!launch.arguments.empty()) text += fmt::format(" args ({})", fmt::join(launch.arguments, ", "));
    std::string maps;
    for (const TensorMap& map : launch.maps)
      maps += fmt::format("{}{} = tiled({}, {}){}", maps.empty() ? "" : ", ", map.name, map.tensor, fmt::join(map.box, ", "),
                          map.xor_bytes ? fmt::format(" xor {}", map.xor_bytes) : "");
    if (!maps.empty()) text += " maps (" + maps + ")";
    return text;
  }

  std::vector<PrintedLine>* lines_;
  std::string out_;
  int depth_ = 0;
  int line_ = 1;
};

}  // namespace

std::string print(const Plan& plan) {
  Printer printer(nullptr);
  printer.plan(plan);
  return printer.take();
}

std::string print(const Plan& plan, std::vector<PrintedLine>& lines) {
  Printer printer(&lines);
  printer.plan(plan);
  return printer.take();
}

std::string print(const Kernel& kernel) {
  Printer printer(nullptr);
  printer.kernel(kernel);
  return printer.take();
}

std::string print(const Stmt& stmt) {
  Printer printer(nullptr);
  printer.statement(stmt);
  return printer.take();
}

}  // namespace tilewright
