// Statements of the thread stage as steps of a warp, the header as the shape of the launch.
#include "runtime/sim/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "ir/printer.h"
#include "runtime/sim/access.h"
#include "runtime/sim/arithmetic.h"
#include "runtime/sim/control.h"
#include "runtime/sim/instructions.h"
#include "runtime/sim/shadow.h"
#include "runtime/sim/wgmma.h"

namespace tilewright {

namespace {

constexpr std::uint32_t cell_alignment = 32;

std::uint32_t aligned(std::uint32_t cell, std::uint32_t bytes) {
  const std::uint32_t alignment = std::min(bytes, cell_alignment);
  return (cell + alignment - 1) / alignment * alignment;
}

// Whether a statement in it hands memory on to other threads.
bool orders_memory(const Block& body) {
  bool orders = false;
  walk(body, [&](const Stmt& stmt) {
    if (const Instr* instr = as<Instr>(stmt)) {
      const InstrInfo* row = find_instruction(instr->op);
      orders |= row != nullptr && row->effect == Effect::Orders;
    }
    return !orders;
  });
  return orders;
}

}  // namespace

KernelCompiler::KernelCompiler(const Plan& plan, const Kernel& kernel, const SimEnvironment& environment)
    : plan_(plan), kernel_(kernel), environment_(environment) {}

void KernelCompiler::unsupported(const std::string& what, Span span) const {
  throw UserError(span, fmt::format("unsupported: the simulator does not execute {} yet", what), "run it on a GPU: --device cuda");
}
void KernelCompiler::unsupported(const std::string& what) const { unsupported(what, span_); }
void KernelCompiler::refuse(const std::string& what) const { throw UserError(span_, what); }

KernelProgram KernelCompiler::compile() {
  header();
  // Each expression makes one constant at most, folding included, and a few are the compiler's own.
  std::size_t nodes = 64;
  walk_expressions(kernel_.body, [&](const Expr& top) {
    tilewright::walk(top, [&](const Expr&) {
      nodes += 2;
      return true;
    });
  });
  next_cell_ = static_cast<std::uint32_t>(nodes * 8);
  program_.image.resize(next_cell_);
  find_names();
  program_.cell_bytes = next_cell_;
  body(kernel_.body);
  emit(run_end);
  program_.image.resize(constant_end_);
  program_.cell_bytes = aligned(program_.cell_bytes, cell_alignment) + 256;
  return std::move(program_);
}

void KernelCompiler::header() {
  const LaunchHeader& launch = kernel_.launch;
  program_.name = kernel_.name;
  program_.checks = environment_.checks;
  if (kernel_.stage != Stage::Thread)
    throw UserError({}, fmt::format("kernel `{}` is at the tile stage; the simulator runs the thread stage", kernel_.name),
                    "finish it first (dump --after all), or take --device cpu");
  program_.block_rank = static_cast<int>(launch.block.size());
  program_.grid_rank = static_cast<int>(launch.grid.size());
  for (std::size_t n = 0; n < launch.block.size() && n < 3; ++n) program_.block[n] = launch.block[n];
  for (std::size_t n = 0; n < launch.grid.size() && n < 3; ++n) program_.grid[n] = evaluate_index(launch.grid[n], environment_.dims);
  for (std::size_t n = 0; n < launch.cluster.size() && n < 3; ++n) program_.cluster[n] = launch.cluster[n];
  for (std::size_t n = 0; n < 3; ++n)
    if (program_.cluster[n] < 1 || program_.grid[n] % program_.cluster[n] != 0)
      throw UserError({}, fmt::format("kernel `{}` has a grid of {} blocks on an axis where a cluster has {}", kernel_.name, program_.grid[n], program_.cluster[n]));
  if (program_.cluster_size() > 16) throw UserError({}, fmt::format("kernel `{}` has clusters of {} blocks, and 16 are possible", kernel_.name, program_.cluster_size()));
  for (const std::int64_t extent : program_.grid)
    if (extent < 0) throw UserError({}, fmt::format("kernel `{}` has a grid of {} blocks on an axis", kernel_.name, extent));
  const std::int64_t threads = program_.threads();
  if (threads < 1 || threads > 1024) throw UserError({}, fmt::format("kernel `{}` has {} threads a block, and 1 to 1024 are possible", kernel_.name, threads));
  program_.shared_bytes = launch.shared_bytes;
  tensor_maps();
}

// What the driver asks of a tensor map.
void KernelCompiler::tensor_maps() {
  for (const TensorMap& map : kernel_.launch.maps) {
    const auto wrong = [&](const std::string& what) { throw UserError({}, fmt::format("map `{}` of `{}`: {}", map.name, map.tensor, what)); };
    const auto found = environment_.tensors.find(map.tensor);
    if (found == environment_.tensors.end()) internal_error(fmt::format("the map `{}` of no tensor", map.name));
    GlobalTensor& tensor = *found->second;
    const std::int64_t bytes = bytes_of(tensor.dtype);
    MapInfo info;
    info.name = map.name;
    info.tensor = &tensor;
    info.rank = static_cast<int>(map.box.size());
    info.xor_bytes = map.xor_bytes;
    if (info.rank < 1 || info.rank > 5 || map.box.size() != tensor.shape.size()) wrong(fmt::format("a box of {} axes for a tensor of {}", map.box.size(), tensor.shape.size()));
    std::int64_t stride = bytes;
    for (std::size_t axis = 0; axis < map.box.size(); ++axis) {
      info.box[axis] = map.box[axis];
      info.extent[axis] = tensor.shape[tensor.shape.size() - 1 - axis];
      if (info.box[axis] < 1 || info.box[axis] > 256) wrong(fmt::format("a box of {} elements on an axis, and 1 to 256 are possible", info.box[axis]));
      if (axis > 0 && stride % 16 != 0) wrong(fmt::format("a stride of {} bytes, which is no multiple of 16", stride));
      stride *= info.extent[axis];
    }
    if (info.xor_bytes != 0 && info.xor_bytes != 32 && info.xor_bytes != 64 && info.xor_bytes != 128) wrong(fmt::format("a swizzle of {} bytes", info.xor_bytes));
    if (info.row_bytes() % 16 != 0) wrong(fmt::format("a box with rows of {} bytes, which is no multiple of 16", info.row_bytes()));
    if (info.xor_bytes != 0 && info.row_bytes() > info.xor_bytes) wrong(fmt::format("a box with rows of {} bytes, more than the swizzle's {}", info.row_bytes(), info.xor_bytes));
    program_.maps.push_back(info);
  }
}

// Dims, and the names of the thread, each in a cell of its own.
void KernelCompiler::find_names() {
  for (const auto& [name, dim] : environment_.dims) declare(name, constant(integer_scalar(dim), Dtype::Index));
  const auto thread_name = [&](const char* name, bool is_uniform) {
    LaneValue cell{new_operand(Dtype::Index, is_uniform), false, std::nullopt};
    declare(name, cell);
    return cell.at.cell;
  };
  ThreadCells& cells = program_.cells;
  const char* axes[] = {"x", "y", "z"};
  for (std::size_t n = 0; n < 3; ++n) {
    cells.thread[n] = thread_name(fmt::format("thread.{}", axes[n]).c_str(), false);
    cells.block[n] = thread_name(fmt::format("block.{}", axes[n]).c_str(), true);
  }
  declare("block", *std::get_if<LaneValue>(find("block.x")));
  cells.linear_thread = thread_name("thread", false);
  cells.lane = thread_name("lane", false);
  cells.warp = thread_name("warp", true);
  cells.cluster_rank = thread_name("cluster.rank", true);

  // What the block's statements may see of each other's work decides whether blocks may run in any order.
  std::set<std::string> written;
  std::set<std::string> copied;  // by the copy engine
  walk(kernel_.body, [&](const Stmt& stmt) {
    if (const Store* node = as<Store>(stmt)) {
      if (environment_.tensors.contains(node->target.buffer)) written.insert(node->target.buffer);
      if (node->atomic && environment_.tensors.contains(node->target.buffer)) program_.is_independent = false;
    }
    if (const Instr* instr = as<Instr>(stmt); instr && instr->op.starts_with("store"))
      if (const Load* place = as<Load>(instr->operands.at(0)); place && environment_.tensors.contains(place->access.buffer)) written.insert(place->access.buffer);
    if (const Instr* instr = as<Instr>(stmt); instr && instr->op.starts_with("tma."))
      for (const TensorMap& map : kernel_.launch.maps) {
        const bool is_named = std::any_of(instr->operands.begin(), instr->operands.end(), [&](const Expr& operand) { return as<Var>(operand) && as<Var>(operand)->name == map.name; });
        if (is_named) (instr->op.starts_with("tma.store") ? written : copied).insert(map.tensor);
      }
    return true;
  });
  walk_expressions(kernel_.body, [&](const Expr& top) {
    tilewright::walk(top, [&](const Expr& expr) {
      if (const Load* node = as<Load>(expr); node && written.contains(node->access.buffer)) program_.is_independent = false;
      return true;
    });
  });

  for (const std::string& name : copied)
    if (written.contains(name)) program_.is_independent = false;
  find_asynchronous();
  if (environment_.checks)
    for (const std::string& name : written) {
      GlobalTensor& tensor = *environment_.tensors.at(name);
      tensor.marks = std::make_shared<GlobalMarks>(tensor.elements);
    }

  // Buffers without an offset stand behind those with one.
  std::int64_t offset = program_.shared_bytes;
  walk(kernel_.body, [&](const Stmt& stmt) {
    if (const Buffer* node = as<Buffer>(stmt); node && node->space == Space::Shared) {
      span_ = stmt->span;
      place_shared(*node, offset);
      note_shared(*node);
      if (node->dtype == Dtype::Mbarrier) {
        first_objects_[node] = program_.mbarriers;
        std::int64_t objects = 1;
        for (const BufferAxis& axis : node->axes) objects *= axis.extent;
        program_.object_buffers.push_back({node->name, program_.mbarriers, objects});
        program_.mbarriers += objects;
      }
    }
    return true;
  });
  program_.shared_bytes = offset;
}

// For reports, and for the unit of the race check's marks.
void KernelCompiler::note_shared(const Buffer& buffer) {
  if (buffer.dtype == Dtype::Mbarrier) return;
  SharedBufferInfo info{buffer.name, buffer.dtype, buffer.offset ? *buffer.offset : shared_offsets_.at(&buffer), bytes_of(buffer.dtype), {}};
  for (const BufferAxis& axis : buffer.axes) {
    info.extents.push_back(axis.extent);
    info.bytes *= axis.extent;
  }
  program_.granule_shift = std::min(program_.granule_shift, __builtin_ctz(static_cast<unsigned>(bytes_of(buffer.dtype))));
  program_.shared_buffers.push_back(std::move(info));
}

void KernelCompiler::find_asynchronous() {
  walk(kernel_.body, [&](const Stmt& stmt) {
    const Instr* instr = as<Instr>(stmt);
    if (instr == nullptr) return true;
    const auto is_of = [&](std::string_view family) { return instr->op.starts_with(family); };
    program_.has_element_copies |= is_of("cp.async");
    program_.has_bulk_groups |= is_of("bulk.") || is_of("tma.store");
    program_.has_wgmma |= is_of("wgmma.");
    if (const Load* array = wgmma_form(instr->op) ? as<Load>(instr->operands.at(0)) : nullptr)
      if (accumulators_.emplace(array->access.buffer, static_cast<int>(accumulators_.size()) + 1).second && accumulators_.size() >= most_accumulators)
        unsupported(fmt::format("{} accumulators of wgmma", most_accumulators), stmt->span);
    program_.has_async_proxy |= is_of("wgmma.") || is_of("tma.");
    return true;
  });
  program_.has_async_copies = program_.has_element_copies || program_.has_bulk_groups;
}

void KernelCompiler::place_shared(const Buffer& buffer, std::int64_t& offset) {
  std::int64_t bytes = bytes_of(buffer.dtype);
  for (const BufferAxis& axis : buffer.axes) bytes *= axis.extent;
  if (!buffer.offset) {
    offset = (offset + 127) / 128 * 128;
    shared_offsets_[&buffer] = offset;
    offset += bytes;
    return;
  }
  if (*buffer.offset < 0 || *buffer.offset + bytes > kernel_.launch.shared_bytes)
    throw UserError(span_, fmt::format("`{}` takes bytes {} to {} of shared memory, and the kernel asks for {}", buffer.name, *buffer.offset,
                                       *buffer.offset + bytes, kernel_.launch.shared_bytes));
  if (*buffer.offset % bytes_of(buffer.dtype) != 0)
    throw UserError(span_, fmt::format("`{}` of {} stands at byte {}, which is no multiple of {}", buffer.name, info(buffer.dtype).name, *buffer.offset, bytes_of(buffer.dtype)));
}

WarpOp& KernelCompiler::emit(WarpOp::Run run) {
  if (run == nullptr) internal_error("the simulator has no step for an operation");
  WarpOp op;
  op.run = run;
  op.statement = statement_number();
  program_.code.push_back(op);
  return program_.code.back();
}

std::uint32_t KernelCompiler::statement_number() {
  std::vector<StatementInfo>& known = program_.statements;
  const auto is_this = [&](const StatementInfo& info) {
    return info.span.line == span_.line && info.span.column == span_.column && info.span.file == span_.file && info.ir_line == ir_line_ && info.text == text_;
  };
  if (known.empty() || !is_this(known.back())) known.push_back({span_, ir_line_, text_, loops_});
  return static_cast<std::uint32_t>(known.size() - 1);
}

void KernelCompiler::count_as(std::string kind) {
  if (environment_.counts) program_.instructions.push_back({position() - 1, std::move(kind)});
}

void KernelCompiler::count_access(AccessKind kind, const Access& access, const MemorySite& memory, int width, const MapInfo* map) {
  if (environment_.counts) program_.accesses.push_back({position() - 1, kind, &memory, map, width, access.span});
}

void KernelCompiler::count_branch(std::string text) {
  if (environment_.counts) program_.branches.push_back({position() - 1, std::move(text)});
}

Operand KernelCompiler::new_operand(Dtype dtype, bool is_uniform) {
  const std::uint32_t bytes = bytes_of_cell(dtype, is_uniform);
  const std::uint32_t cell = aligned(next_cell_, bytes);
  next_cell_ = cell + bytes;
  program_.cell_bytes = std::max(program_.cell_bytes, next_cell_);
  return {cell, dtype, is_uniform};
}

void KernelCompiler::leave(const Scope& scope) {
  symbols_.resize(scope.symbols, {std::string(), LaneValue{}});
  next_cell_ = scope.cells;
}

const KernelCompiler::Symbol* KernelCompiler::find(const std::string& name) const {
  for (auto symbol = symbols_.rbegin(); symbol != symbols_.rend(); ++symbol)
    if (symbol->first == name) return &symbol->second;
  return nullptr;
}

bool KernelCompiler::is_register_buffer(const std::string& name) const {
  const Symbol* symbol = find(name);
  return symbol != nullptr && std::holds_alternative<RegisterBuffer>(*symbol);
}

// ---- Statements.
void KernelCompiler::body(const Block& statements) {
  const Scope scope = enter();
  for (const Stmt& stmt : statements) statement(stmt);
  leave(scope);
}

void KernelCompiler::statement(const Stmt& stmt) {
  const Span outer_span = span_;
  const std::string outer_text = text_;
  const int outer_line = ir_line_;
  if (stmt->span.is_known()) span_ = stmt->span;
  if (!environment_.ir_lines.empty()) ir_line_ = environment_.ir_lines.at(next_statement_++);
  text_.clear();
  const auto tile_stage = [&](const char* what) { internal_error(fmt::format("the simulator met {} at the thread stage", what)); };
  match(
      stmt, [&](const Loop& node) { loop(node, 0); }, [&](const If& node) { branch(node); }, [&](const Buffer& node) { buffer(node); },
      [&](const Let& node) { let(node); }, [&](const Store& node) { store(node); }, [&](const Copy&) { tile_stage("`copy`"); },
      [&](const Fill&) { tile_stage("`fill`"); }, [&](const Mma&) { tile_stage("`mma`"); }, [&](const Fold&) { tile_stage("`reduce`"); },
      [&](const Pipe&) { tile_stage("`pipe`"); }, [&](const Verb&) { tile_stage("a verb"); }, [&](const Role&) { tile_stage("`role`"); },
      [&](const Labelled&) { tile_stage("a label"); }, [&](const Chain&) { tile_stage("`chain`"); }, [&](const Publish&) { tile_stage("`publish`"); },
      [&](const Lookback&) { tile_stage("`lookback`"); },
      [&](const Instr& node) {
        const Scope scope = enter();
        text_ = node.op;
        compile_instruction(*this, node);
        count_as(node.op);
        leave(scope);
      });
  span_ = outer_span;
  text_ = outer_text;
  ir_line_ = outer_line;
}

// Statements that are printed and not compiled.
void KernelCompiler::skip(const Block& statements) {
  walk(statements, [&](const Stmt&) {
    ++next_statement_;
    return true;
  });
}

void KernelCompiler::loop(const Loop& node, std::size_t axis) {
  if (axis == node.axes.size()) return body(node.body);
  const Scope scope = enter();
  const Axis& bounds = node.axes[axis];
  const LaneValue lo = settled(bounds.lo ? value(bounds.lo) : constant(Scalar{}, Dtype::Index));
  const LaneValue hi = settled(value(bounds.hi));
  const LaneValue step = settled(bounds.step ? value(bounds.step) : constant(integer_scalar(1), Dtype::Index));
  const bool all_uniform = lo.is_uniform() && hi.is_uniform() && step.is_uniform();
  const Operand counter = new_operand(Dtype::Index, all_uniform);
  const auto bound = [&](WarpOp& op) {
    op.dst = counter.cell;
    op.a = lo.at.cell;
    op.b = hi.at.cell;
    op.c = step.at.cell;
    op.uniform = static_cast<std::uint8_t>((lo.is_uniform() ? 1 : 0) | (hi.is_uniform() ? 2 : 0) | (step.is_uniform() ? 4 : 0));
  };
  const Operand entered = new_operand(Dtype::Bool, false);
  if (!all_uniform) emit(run_keep).dst = entered.cell;
  const std::size_t entry = position();
  bound(emit(all_uniform ? run_uniform_entry : run_lane_entry));
  const std::size_t first = position();
  declare(bounds.name, LaneValue{counter, false, std::nullopt});
  const bool is_timed = environment_.checks && node.kind == LoopKind::Serial && loops_.size() < most_loops && orders_memory(node.body);
  if (is_timed) {
    loops_.push_back({bounds.name, loops_.size()});
    WarpOp& op = emit(run_moment);
    op.a = counter.cell;
    op.jump = static_cast<std::int32_t>(loops_.size()) - 1;
    op.uniform = all_uniform ? 1 : 0;
  }
  loop(node, axis + 1);
  if (is_timed) loops_.pop_back();
  const std::size_t next = position();
  bound(emit(all_uniform ? run_uniform_next : run_lane_next));
  if (node.kind == LoopKind::Serial) count_as("branch");
  if (!all_uniform) count_branch(print_axis(bounds));
  land_at(next, first);
  land(entry);
  if (!all_uniform) emit(run_rejoin).dst = entered.cell;
  leave(scope);
}

void KernelCompiler::branch(const If& node) {
  const Scope scope = enter();
  const LaneValue condition = settled(value(node.condition));
  if (condition.constant) {
    if (condition.constant->i == 0) skip(node.then_body);
    body(condition.constant->i != 0 ? node.then_body : node.else_body);
    if (condition.constant->i != 0) skip(node.else_body);
    leave(scope);
    return;
  }
  const Operand kept = new_operand(Dtype::Bool, false);
  const auto steer = [&](WarpOp::Run run) {
    const std::size_t at = position();
    WarpOp& op = emit(run);
    op.dst = kept.cell;
    op.a = condition.at.cell;
    return at;
  };
  const std::size_t start = steer(run_branch);
  count_as("branch");
  count_branch("if " + print(node.condition));
  body(node.then_body);
  land(start);
  if (!node.else_body.empty()) {
    const std::size_t otherwise = steer(run_otherwise);
    body(node.else_body);
    land(otherwise);
  }
  emit(run_rejoin).dst = kept.cell;
  leave(scope);
}

void KernelCompiler::buffer(const Buffer& node) {
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  for (const BufferAxis& axis : node.axes) {
    extents.push_back(axis.extent);
    elements *= axis.extent;
  }
  if (node.space == Space::Shared) {
    const auto placed = shared_offsets_.find(&node);
    const std::int64_t first_object = node.dtype == Dtype::Mbarrier ? first_objects_.at(&node) : 0;
    declare(node.name, SharedBuffer{node.dtype, node.offset ? *node.offset : placed->second, first_object, std::move(extents)});
    return;
  }
  RegisterSite site;
  site.name = node.name;
  site.dtype = node.dtype;
  site.elements = elements;
  site.is_checked = program_.checks;
  site.row_bytes = bytes_of_cell(node.dtype, false);
  if (const auto accumulator = accumulators_.find(node.name); accumulator != accumulators_.end()) site.accumulator = accumulator->second;
  if (elements * site.row_bytes > (std::int64_t{1} << 26)) throw UserError(span_, fmt::format("register buffer `{}` of {} elements is too large", node.name, elements));
  site.first = new_operand(node.dtype, false).cell;
  next_cell_ = site.first + static_cast<std::uint32_t>(elements) * site.row_bytes;
  if (site.is_checked) {
    site.written = next_cell_ = aligned(next_cell_, 8);
    next_cell_ += static_cast<std::uint32_t>((elements * 4 + 7) / 8 * 8);
  }
  program_.cell_bytes = std::max(program_.cell_bytes, next_cell_);
  if (site.is_checked) {
    program_.register_sites.push_back(site);
    emit(run_register_declaration).object = &program_.register_sites.back();
  }
  declare(node.name, RegisterBuffer{std::move(site), std::move(extents)});
}

// The value's cells stay taken until the body ends.
void KernelCompiler::let(const Let& node) {
  const LaneValue result = settled(value(node.value));
  declare(node.name, result);
}

void KernelCompiler::store(const Store& node) {
  if (node.target.rule.kind != Rule::Kind::None || !node.where.empty())
    internal_error(fmt::format("the simulator met the rule or predicate of `{}`", print_access(node.target)));
  const Scope scope = enter();
  store_value(node);
  leave(scope);
}

void KernelCompiler::store_value(const Store& node) {
  const LaneValue stored = value(node.value);
  if (is_register_buffer(node.target.buffer)) {
    const RegisterBuffer& known = std::get<RegisterBuffer>(*find(node.target.buffer));
    if (known.extents.empty()) {
      const RegisterSite site = known.site;
      move({site.first, site.dtype, false}, stored);
      if (site.is_checked) {
        program_.register_sites.push_back(site);
        emit(run_register_written).object = &program_.register_sites.back();
      }
      return;
    }
    Operand element;
    RegisterSite& site = register_site(node.target, element);
    WarpOp& op = emit(run_register_store);
    op.object = &site;
    op.a = element.cell;
    op.b = stored.at.cell;
    op.uniform = static_cast<std::uint8_t>((element.is_uniform ? 1 : 0) | (stored.is_uniform() ? 2 : 0));
    return;
  }
  Operand element;
  MemorySite& site = memory_site(node.target, element);
  WarpOp& op = emit(node.atomic ? run_atomic : run_of_store(site));
  if (node.atomic) op.code = static_cast<std::uint8_t>(tilewright::binary_of(*node.atomic, site.dtype));
  count_access(node.atomic ? AccessKind::Atomic : AccessKind::Store, node.target, site);
  count_as(fmt::format("{} {}", node.atomic ? "atomic" : "store", site.is_shared ? "shared" : "global"));
  op.object = &site;
  op.a = element.cell;
  op.b = stored.at.cell;
  op.uniform = static_cast<std::uint8_t>((element.is_uniform ? 1 : 0) | (stored.is_uniform() ? 2 : 0));
}

KernelProgram compile_for_simulator(const Plan& plan, const Kernel& kernel, const SimEnvironment& environment) {
  return KernelCompiler(plan, kernel, environment).compile();
}

}  // namespace tilewright
