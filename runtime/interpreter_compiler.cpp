// Statements of the tile stage as a flat program: loops, buffers, stores.
#include "runtime/interpreter_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

InterpreterMachine& of(Machine& machine) { return static_cast<InterpreterMachine&>(machine); }
const CheckedSite& site_of(const Ins& ins) { return *static_cast<const CheckedSite*>(ins.object); }

void report_outside(const Ins& ins, InterpreterMachine& machine, const CheckedSite& site, std::int64_t outside) {
  if (site.rule == Rule::Kind::Check) return machine.offend(site.check_id, outside);
  std::vector<std::int64_t> index;
  for (const Slot slot : site.index) index.push_back(machine.slots[slot].i);
  machine.fault(&ins, 3, fmt::format("`{}[{}]` is outside `{}` of [{}]", site.memory->name, fmt::join(index, ", "), site.memory->name,
                                     fmt::join(site.memory->extents, ", ")));
}

template <Dtype D>
struct InterpreterLoad {
  static const Ins* run(const Ins& ins, Machine& machine) {
    const CheckedSite& site = site_of(ins);
    std::int64_t outside = 0;
    const std::int64_t element = locate(site, machine.slots, outside);
    if (element < 0) {
      if (site.rule == Rule::Kind::Fill) return &ins + ins.jump;
      report_outside(ins, of(machine), site, outside);
      machine.slots[ins.dst] = Scalar{};
      return &ins + 1;
    }
    CheckedMemory& memory = *site.memory;
    if (!memory.is_written.empty() || !memory.writers.empty()) of(machine).check_read(&ins, memory, element);
    machine.slots[ins.dst] = load_typed<D>(memory.base + element * bytes_of(D));
    return &ins + 1;
  }
};

template <Dtype D>
struct InterpreterStore {
  static const Ins* run(const Ins& ins, Machine& machine) {
    const CheckedSite& site = site_of(ins);
    std::int64_t outside = 0;
    const std::int64_t element = locate(site, machine.slots, outside);
    if (element < 0) {
      if (site.rule != Rule::Kind::Skip) report_outside(ins, of(machine), site, outside);
      return &ins + 1;
    }
    CheckedMemory& memory = *site.memory;
    of(machine).check_write(&ins, memory, element, false);
    store_scalar(D, memory.base + element * bytes_of(D), machine.slots[ins.a]);
    return &ins + 1;
  }
};

// c: the operator.
const Ins* run_atomic(const Ins& ins, Machine& machine) {
  const CheckedSite& site = site_of(ins);
  std::int64_t outside = 0;
  const std::int64_t element = locate(site, machine.slots, outside);
  if (element < 0) {
    if (site.rule != Rule::Kind::Skip) report_outside(ins, of(machine), site, outside);
    return &ins + 1;
  }
  CheckedMemory& memory = *site.memory;
  of(machine).check_write(&ins, memory, element, true);
  std::byte* place = memory.base + element * bytes_of(memory.dtype);
  const Scalar old = load_scalar(memory.dtype, place);
  store_scalar(memory.dtype, place, apply(static_cast<BinaryOp>(ins.c), memory.dtype, old, machine.slots[ins.a]));
  return &ins + 1;
}

const Ins* run_check_scalar(const Ins& ins, Machine& machine) {
  if (machine.slots[ins.a].i == 0)
    of(machine).fault(&ins, 0, fmt::format("`{}` is read before it is written", *static_cast<const std::string*>(ins.object)));
  return &ins + 1;
}
const Ins* run_scalar_store(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = machine.slots[ins.a];
  machine.slots[ins.b].i = 1;
  return &ins + 1;
}
const Ins* run_scalar_declare(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst].i = 0;
  return &ins + 1;
}
const Ins* run_declare(const Ins& ins, Machine&) {
  auto& memory = *static_cast<CheckedMemory*>(const_cast<void*>(ins.object));
  std::fill(memory.is_written.begin(), memory.is_written.end(), std::uint8_t{0});
  std::fill(memory.writers.begin(), memory.writers.end(), Stamp{0});
  std::fill(memory.readers.begin(), memory.readers.end(), Stamp{0});
  return &ins + 1;
}
const Ins* run_count(const Ins& ins, Machine& machine) {
  of(machine).count_step();
  return &ins + 1;
}

// dst: the variable, a: lo, b: hi, c: step.
const Ins* enter_iteration(const Ins& ins, InterpreterMachine& machine, const LoopState& loop) {
  std::int64_t position = loop.position;
  if (!loop.is_ordered && machine.options->order == LoopOrder::Backwards) position = loop.count - 1 - position;
  if (!loop.order.empty()) position = loop.order[static_cast<std::size_t>(position)];
  machine.slots[ins.dst].i = machine.slots[ins.a].i + position * machine.slots[ins.c].i;
  machine.levels.back().current = ++machine.counter;
  return nullptr;
}

const Ins* run_parallel_begin(const Ins& ins, Machine& base) {
  InterpreterMachine& machine = of(base);
  auto& loop = *static_cast<LoopState*>(const_cast<void*>(ins.object));
  const std::int64_t lo = machine.slots[ins.a].i, hi = machine.slots[ins.b].i, step = machine.slots[ins.c].i;
  if (step <= 0) machine.fault(&ins, 4, fmt::format("a loop has a step of {}", step));
  if (hi <= lo || step <= 0) return &ins + ins.jump;
  loop.count = (hi - lo + step - 1) / step;
  loop.position = 0;
  if (!loop.is_ordered && machine.options->order == LoopOrder::Shuffled) {
    loop.order.resize(static_cast<std::size_t>(loop.count));
    std::iota(loop.order.begin(), loop.order.end(), std::int64_t{0});
    std::shuffle(loop.order.begin(), loop.order.end(), machine.random);
  }
  machine.levels.push_back({machine.counter + 1, machine.counter + 1});
  enter_iteration(ins, machine, loop);
  return &ins + 1;
}

const Ins* run_parallel_next(const Ins& ins, Machine& base) {
  InterpreterMachine& machine = of(base);
  auto& loop = *static_cast<LoopState*>(const_cast<void*>(ins.object));
  if (++loop.position == loop.count) {
    machine.levels.pop_back();
    return &ins + 1;
  }
  enter_iteration(ins, machine, loop);
  return &ins + ins.jump;
}

// dst = within(a, b, id)
const Ins* run_within(const Ins& ins, Machine& machine) {
  const std::int64_t bound = machine.slots[ins.a].i;
  const std::int64_t most = machine.slots[ins.b].i;
  const bool is_inside = bound >= 0 && bound <= most;
  if (!is_inside) of(machine).offend(static_cast<int>(machine.slots[ins.c].i), bound);
  machine.slots[ins.dst] = integer_scalar(bound < 0 ? 0 : is_inside ? bound : most);
  return &ins + 1;
}

const Ins* run_check_range(const Ins& ins, Machine& machine) {
  const std::int64_t value = machine.slots[ins.a].i;
  if (value < machine.slots[ins.b].i || value >= machine.slots[ins.c].i)
    of(machine).fault(&ins, 5, fmt::format("`{}` is {}, outside its promised range {} .. {}", *static_cast<const std::string*>(ins.object), value,
                                           machine.slots[ins.b].i, machine.slots[ins.c].i));
  return &ins + 1;
}

bool is_parallel_kind(LoopKind kind) {
  switch (kind) {
    case LoopKind::Parallel: case LoopKind::Grid: case LoopKind::Cluster: case LoopKind::Ordered: case LoopKind::Each: return true;
    case LoopKind::Serial: case LoopKind::Unroll: case LoopKind::Vector: break;
  }
  return false;
}

}  // namespace

void collect_accesses(const Block& body, std::set<std::string>& written, std::set<std::string>& read) {
  walk(body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) {
      written.insert(store->target.buffer);
    } else if (const Copy* copy = as<Copy>(stmt)) {
      written.insert(copy->target.buffer);
      read.insert(copy->source.buffer);
    } else if (const Fill* fill = as<Fill>(stmt)) {
      written.insert(fill->buffer);
    } else if (const Mma* mma = as<Mma>(stmt)) {
      written.insert(mma->target.buffer);
      read.insert({mma->target.buffer, mma->a.buffer, mma->b.buffer});
    } else if (const Fold* fold = as<Fold>(stmt)) {
      written.insert(fold->target.buffer);
      read.insert(fold->source.buffer);
    }
    return true;
  });
  walk_expressions(body, [&](const Expr& top) {
    walk(top, [&](const Expr& expr) {
      if (const Load* access = as<Load>(expr)) read.insert(access->access.buffer);
      return true;
    });
  });
}

SlotProgram InterpreterCompiler::compile_kernel(const Kernel& kernel) {
  walk(kernel.body, [&](const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    if (loop == nullptr || loop->kind != LoopKind::Each) return true;
    std::set<std::string> written, read;
    collect_accesses(loop->body, written, read);
    written_in_each_.insert(written.begin(), written.end());
    std::set_intersection(written.begin(), written.end(), read.begin(), read.end(), std::inserter(exchanged_in_each_, exchanged_in_each_.end()));
    return false;
  });
  compile_body(kernel.body);
  emit_pipe_ends();
  return finish();
}

// ---- Names

void InterpreterCompiler::declare(const std::string& name, Symbol symbol) {
  symbol.each_depth = each_depth_;
  symbols_[name].push_back(symbol);
  declared_.push_back(name);
}
const InterpreterCompiler::Symbol* InterpreterCompiler::find(const std::string& name) const {
  const auto entry = symbols_.find(name);
  return entry == symbols_.end() || entry->second.empty() ? nullptr : &entry->second.back();
}
void InterpreterCompiler::leave_names(std::size_t mark) {
  for (; declared_.size() > mark; declared_.pop_back()) symbols_[declared_.back()].pop_back();
}
const InterpreterCompiler::Symbol& InterpreterCompiler::need(const std::string& name, Symbol::Kind kind, Span span) const {
  const Symbol* symbol = find(name);
  if (symbol == nullptr || symbol->kind != kind) throw UserError(span, fmt::format("`{}` is not declared", name));
  return *symbol;
}
CheckedMemory* InterpreterCompiler::find_memory(const std::string& name) const {
  if (const Symbol* symbol = find(name); symbol != nullptr && symbol->kind == Symbol::Kind::Buffer) return symbol->memory;
  const auto tensor = tensors_.find(name);
  return tensor == tensors_.end() ? nullptr : tensor->second;
}
CheckedMemory& InterpreterCompiler::need_memory(const std::string& name, Span span) const {
  CheckedMemory* memory = find_memory(name);
  if (memory == nullptr) throw UserError(span, fmt::format("`{}` is not declared", name));
  return *memory;
}

const std::string* InterpreterCompiler::text(std::string value) {
  objects_.texts.push_back(std::make_unique<std::string>(std::move(value)));
  return objects_.texts.back().get();
}

// ---- Expressions

Slot InterpreterCompiler::variable(const std::string& name, const Expr& expr) {
  if (const Symbol* symbol = find(name); symbol != nullptr && symbol->kind == Symbol::Kind::Value) return symbol->slot;
  if (const auto dim = dims_.find(name); dim != dims_.end()) return constant_slot(integer_scalar(dim->second));
  throw UserError(expr->span, fmt::format("`{}` is not declared (the interpreter runs the tile stage)", name));
}

CheckedSite* InterpreterCompiler::make_site(const Access& access, Span span) {
  auto site = std::make_unique<CheckedSite>();
  site->memory = &need_memory(access.buffer, access.span);
  if (site->memory->extents.size() != access.index.size())
    throw UserError(access.span, fmt::format("`{}` has {} axes and is given {} indices", access.buffer, site->memory->extents.size(), access.index.size()));
  for (const Expr& index : access.index) site->index.push_back(compile(index));
  site->rule = access.rule.kind;
  site->check_id = access.rule.check_id;
  site->span = span;
  objects_.sites.push_back(std::move(site));
  return objects_.sites.back().get();
}

Slot InterpreterCompiler::load(const Load& load, const Expr& expr) {
  if (const Symbol* symbol = find(load.access.buffer); symbol != nullptr && symbol->kind == Symbol::Kind::Scalar) {
    emit({.run = run_check_scalar, .a = symbol->is_written, .object = text(load.access.buffer)});
    return symbol->slot;
  }
  CheckedSite* site = make_site(load.access, expr->span);
  const Slot dst = new_slot();
  const std::size_t at_load = emit({.run = run_for_dtype<InterpreterLoad>(site->memory->dtype), .dst = dst, .object = site});
  if (load.access.rule.kind == Rule::Kind::Fill) {
    const std::size_t over = emit_jump();
    land(at_load);
    enter_scope();
    emit_copy(dst, compile(load.access.rule.fill));
    leave_scope();
    land(over);
  }
  return dst;
}

Slot InterpreterCompiler::reduce(const Reduce&, const Expr& expr) {
  throw UserError(expr->span, "a reduction stands in tensor IR only");
}

Slot InterpreterCompiler::special_call(const Call& call, const Expr& expr) {
  if (call.function != "within")
    throw UserError(expr->span, fmt::format("the interpreter cannot evaluate `{}`: it runs the tile stage", call.function));
  const Slot bound = compile(call.arguments.at(0)), most = compile(call.arguments.at(1)), id = compile(call.arguments.at(2));
  const Slot dst = new_slot();
  emit({.run = run_within, .dst = dst, .a = bound, .b = most, .c = id});
  return dst;
}

// ---- Statements

void InterpreterCompiler::compile_body(const Block& body) {
  const std::size_t mark = declared_.size();
  for (std::size_t n = 0; n < body.size();)
    if (!compile_roles(body, n)) compile_statement(body[n++]);
  leave_names(mark);
}

void InterpreterCompiler::compile_statement(const Stmt& stmt) {
  if (options_.most_steps > 0) emit({.run = run_count});
  const Span span = stmt->span;
  enter_scope();
  match(
      stmt, [&](const Loop& node) { compile_loop(node, 0); },
      [&](const If& node) {
        const std::size_t to_else = emit_jump_if_false(compile(node.condition));
        enter_scope();
        compile_body(node.then_body);
        leave_scope();
        if (node.else_body.empty()) return land(to_else);
        const std::size_t to_end = emit_jump();
        land(to_else);
        enter_scope();
        compile_body(node.else_body);
        leave_scope();
        land(to_end);
      },
      [&](const Buffer& node) { compile_buffer(node, span); }, [&](const Let& node) { compile_let(node, span); },
      [&](const Store& node) { compile_store(node, span); }, [&](const Copy& node) { compile_nest(node); },
      [&](const Fill& node) { compile_nest(node); }, [&](const Mma& node) { compile_nest(node); },
      [&](const Fold& node) { compile_nest(node); }, [&](const Pipe& node) { compile_pipe(node, span); },
      [&](const Verb& node) { compile_verb(node, span); }, [](const Role&) {},
      [&](const Labelled& node) { compile_statement(node.statement); }, [&](const Chain& node) { compile_chain(node); },
      [&](const Publish& node) { compile_publish(node, span); }, [&](const Lookback& node) { compile_lookback(node, span); },
      [&](const Instr& node) {
        throw UserError(span, fmt::format("`{}` stands at thread stage; the interpreter runs the tile stage", node.op), "use --device sim");
      });
  leave_scope();
}

void InterpreterCompiler::compile_loop(const Loop& loop, std::size_t position) {
  if (position == loop.axes.size()) {
    const bool is_each = loop.kind == LoopKind::Each;
    each_depth_ += is_each ? 1 : 0;
    compile_body(loop.body);
    each_depth_ -= is_each ? 1 : 0;
    return;
  }
  const Axis& axis = loop.axes[position];
  // Bounds are values at the start of the loop: a register in them may change inside.
  const auto fixed = [&](const Expr& expr, std::int64_t otherwise) {
    if (!expr) return constant_slot(integer_scalar(otherwise));
    const Slot value = compile(expr);
    if (as<Const>(expr) || as<Var>(expr)) return value;
    const Slot copy = new_slot();
    emit_copy(copy, value);
    return copy;
  };
  const Slot lo = fixed(axis.lo, 0), hi = fixed(axis.hi, 0), step = fixed(axis.step, 1);
  const Slot variable = new_slot();
  const std::size_t mark = declared_.size();
  // What was loaded for the bounds must not be taken for known behind stores of the body.
  const auto body = [&] {
    declare(axis.name, {.kind = Symbol::Kind::Value, .slot = variable});
    forget_all();
    compile_loop(loop, position + 1);
  };
  if (!is_parallel_kind(loop.kind)) {
    emit_loop(variable, lo, hi, step, body);
  } else {
    objects_.loops.push_back(std::make_unique<LoopState>());
    LoopState* state = objects_.loops.back().get();
    state->is_ordered = loop.kind == LoopKind::Ordered;
    enter_scope();
    const std::size_t begin = emit({.run = run_parallel_begin, .dst = variable, .a = lo, .b = hi, .c = step, .object = state});
    body();
    const std::size_t next = emit({.run = run_parallel_next, .dst = variable, .a = lo, .c = step, .object = state});
    jump_back(next, begin + 1);
    land(begin);
    leave_scope();
  }
  leave_names(mark);
  forget_all();
}

void InterpreterCompiler::compile_buffer(const Buffer& buffer, Span span) {
  if (buffer.space == Space::Register && buffer.axes.empty()) {
    const Symbol symbol{.kind = Symbol::Kind::Scalar, .slot = new_slot(), .is_written = new_slot(), .dtype = buffer.dtype};
    emit({.run = run_scalar_declare, .dst = symbol.is_written});
    return declare(buffer.name, symbol);
  }
  auto memory = std::make_unique<CheckedMemory>();
  memory->name = buffer.name;
  memory->dtype = buffer.dtype;
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  for (const BufferAxis& axis : buffer.axes) {
    extents.push_back(axis.extent);
    if (axis.extent < 0 || __builtin_mul_overflow(elements, axis.extent, &elements) || elements > (std::int64_t{1} << 30))
      throw UserError(span, fmt::format("the buffer `{}` is too large to be interpreted", buffer.name));
  }
  memory->set_extents(std::move(extents));
  const auto count = static_cast<std::size_t>(elements);
  memory->storage.resize(count * static_cast<std::size_t>(bytes_of(buffer.dtype)));
  memory->base = memory->storage.data();
  memory->is_written.resize(count);
  if (each_depth_ == 0 && written_in_each_.contains(buffer.name)) memory->writers.resize(count);
  if (each_depth_ == 0 && exchanged_in_each_.contains(buffer.name)) memory->readers.resize(2 * count);
  emit({.run = run_declare, .object = memory.get()});
  declare(buffer.name, {.kind = Symbol::Kind::Buffer, .memory = memory.get(), .dtype = buffer.dtype, .layout = buffer.layout ? std::make_shared<Layout>(*buffer.layout) : nullptr});
  objects_.buffers.push_back(std::move(memory));
}

void InterpreterCompiler::compile_let(const Let& let, Span) {
  const Slot value = compile(let.value);
  const Slot slot = new_slot();
  emit_copy(slot, value);
  if (let.hi) {
    const Slot lo = let.lo ? compile(let.lo) : constant_slot({});
    emit({.run = run_check_range, .a = slot, .b = lo, .c = compile(let.hi), .object = text(let.name)});
  }
  declare(let.name, {.kind = Symbol::Kind::Value, .slot = slot, .dtype = let.value->dtype});
}

std::vector<std::size_t> InterpreterCompiler::emit_conditions(const std::vector<Expr>& conditions) {
  std::vector<std::size_t> jumps;
  for (const Expr& condition : conditions) jumps.push_back(emit_jump_if_false(compile(condition)));
  return jumps;
}

void InterpreterCompiler::compile_store(const Store& store, Span span) {
  const std::vector<std::size_t> jumps = emit_conditions(store.where);
  emit_store(store.target, compile(store.value), store.value->dtype, store.atomic, span);
  for (const std::size_t jump : jumps) land(jump);
}

void InterpreterCompiler::emit_store(const Access& target, Slot value, Dtype dtype, const std::optional<CombineOp>& atomic, Span span) {
  if (const Symbol* symbol = find(target.buffer); symbol != nullptr && symbol->kind == Symbol::Kind::Scalar) {
    if (symbol->each_depth != each_depth_)
      throw UserError(span, fmt::format("`{}` belongs to the block and is written by the iterations of an `each`", target.buffer));
    if (atomic) throw UserError(span, fmt::format("`atomic` into the scalar register `{}`", target.buffer));
    emit({.run = run_scalar_store, .dst = symbol->slot, .a = value, .b = symbol->is_written});
    return;
  }
  const CheckedSite* site = make_site(target, span);
  if (atomic) emit({.run = run_atomic, .a = value, .c = static_cast<Slot>(binary_of(*atomic, dtype)), .object = site});
  else emit({.run = run_for_dtype<InterpreterStore>(site->memory->dtype), .a = value, .object = site});
}

}  // namespace tilewright
