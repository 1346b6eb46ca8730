// Tile operations, pipes and chains of the tile interpreter.
#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "runtime/interpreter_compiler.h"

namespace tilewright {

namespace {

InterpreterMachine& of(Machine& machine) { return static_cast<InterpreterMachine&>(machine); }
template <class T>
T& object_of(const Ins& ins) {
  return *static_cast<T*>(const_cast<void*>(ins.object));
}

SlotState& slot_of(PipeState& pipe, std::int64_t count) {
  return pipe.slots[static_cast<std::size_t>(count % static_cast<std::int64_t>(pipe.slots.size()))];
}

void check_drained(const Ins& ins, InterpreterMachine& machine, const PipeState& pipe) {
  for (std::size_t slot = 0; slot < pipe.slots.size(); ++slot)
    if (pipe.slots[slot] != SlotState::Free)
      machine.fault(&ins, 6, fmt::format("pipe `{}` ends with slot {} not released", pipe.name, slot));
}

const Ins* run_pipe(const Ins& ins, Machine& machine) {
  auto& pipe = object_of<PipeState>(ins);
  if (pipe.is_declared) check_drained(ins, of(machine), pipe);
  pipe.is_declared = true;
  for (SlotState& slot : pipe.slots) slot = SlotState::Free;
  pipe.acquired = pipe.waited = pipe.released = 0;
  machine.slots[pipe.in].i = machine.slots[pipe.out].i = -1;
  return &ins + 1;
}
const Ins* run_pipe_end(const Ins& ins, Machine& machine) {
  auto& pipe = object_of<PipeState>(ins);
  if (pipe.is_declared) check_drained(ins, of(machine), pipe);
  return &ins + 1;
}

// What a slot held is gone once it is acquired again.
void forget_slot(CheckedMemory& memory, std::int64_t slot) {
  const auto size = static_cast<std::ptrdiff_t>(memory.strides.front());
  const auto first = memory.is_written.begin() + slot * size;
  std::fill(first, first + size, std::uint8_t{0});
}

// ---- Roles

const Ins* run_roles(const Ins& ins, Machine& machine) {
  auto& group = object_of<RoleGroup>(ins);
  for (RoleGroup::Body& body : group.bodies) body.next = &ins + body.start;
  group.current = 0;
  group.waiting = 0;
  group.outer = of(machine).roles;
  of(machine).roles = &group;
  return group.bodies[0].next;
}
const Ins* run_role_end(const Ins& ins, Machine& machine) {
  auto& group = object_of<RoleGroup>(ins);
  group.bodies[group.current].next = nullptr;
  group.waiting = 0;
  if (const Ins* next = group.next_body()) return next;
  of(machine).roles = group.outer;
  return &ins + ins.jump;
}
// Where a verb that has to wait hands over to; null where no role can go on.
const Ins* give_way(const Ins& ins, Machine& machine) {
  RoleGroup* group = of(machine).roles;
  return group ? group->give_way(&ins) : nullptr;
}
void succeed(Machine& machine) {
  if (RoleGroup* group = of(machine).roles) group->waiting = 0;
}

const Ins* run_acquire(const Ins& ins, Machine& machine) {
  auto& pipe = object_of<PipeState>(ins);
  SlotState& state = slot_of(pipe, pipe.acquired);
  if (machine.slots[pipe.in].i >= 0) of(machine).fault(&ins, 7, fmt::format("`acquire {}` before the slot acquired was committed", pipe.name));
  if (state != SlotState::Free) {
    if (const Ins* other = give_way(ins, machine)) return other;
    of(machine).fault(&ins, 8, fmt::format("`acquire {}` waits for ever: all {} slots are in use", pipe.name, pipe.slots.size()));
  }
  succeed(machine);
  state = SlotState::Filling;
  const std::int64_t slot = pipe.acquired % static_cast<std::int64_t>(pipe.slots.size());
  machine.slots[pipe.in].i = slot;
  for (CheckedMemory* memory : pipe.buffers) forget_slot(*memory, slot);
  return &ins + 1;
}
const Ins* run_commit(const Ins& ins, Machine& machine) {
  auto& pipe = object_of<PipeState>(ins);
  SlotState& state = slot_of(pipe, pipe.acquired);
  if (state != SlotState::Filling) of(machine).fault(&ins, 7, fmt::format("`commit {}` without a slot acquired", pipe.name));
  state = SlotState::Full;
  ++pipe.acquired;
  machine.slots[pipe.in].i = -1;
  return &ins + 1;
}
const Ins* run_wait(const Ins& ins, Machine& machine) {
  auto& pipe = object_of<PipeState>(ins);
  SlotState& state = slot_of(pipe, pipe.waited);
  if (state != SlotState::Full) {
    if (const Ins* other = give_way(ins, machine)) return other;
    of(machine).fault(&ins, 8, fmt::format("`wait {}` waits for ever: no slot is full", pipe.name));
  }
  succeed(machine);
  state = SlotState::InUse;
  machine.slots[pipe.out].i = pipe.waited % static_cast<std::int64_t>(pipe.slots.size());
  ++pipe.waited;
  return &ins + 1;
}
const Ins* run_release(const Ins& ins, Machine& machine) {
  auto& pipe = object_of<PipeState>(ins);
  SlotState& state = slot_of(pipe, pipe.released);
  if (state != SlotState::InUse) of(machine).fault(&ins, 7, fmt::format("`release {}` without a slot in use", pipe.name));
  state = SlotState::Free;
  ++pipe.released;
  if (pipe.released == pipe.waited) machine.slots[pipe.out].i = -1;
  return &ins + 1;
}

const Ins* run_chain(const Ins& ins, Machine& machine) {
  auto& chain = object_of<ChainState>(ins);
  chain.start = machine.slots[ins.a];
  chain.total = chain.before = chain.start;
  chain.published_in = 0;
  return &ins + 1;
}
const Ins* run_publish(const Ins& ins, Machine& machine) {
  auto& chain = object_of<ChainState>(ins);
  if (chain.published_in == of(machine).current()) of(machine).fault(&ins, 9, "an iteration publishes twice");
  chain.before = chain.total;
  chain.total = apply(binary_of(chain.op, chain.dtype), chain.dtype, chain.total, machine.slots[ins.a]);
  chain.published_in = of(machine).current();
  return &ins + 1;
}
const Ins* run_lookback(const Ins& ins, Machine& machine) {
  const auto& chain = object_of<ChainState>(ins);
  if (chain.published_in != of(machine).current())
    of(machine).fault(&ins, 9, "`lookback` stands before this iteration's `publish`: all would wait");
  machine.slots[ins.dst] = chain.published_in == of(machine).current() ? chain.before : chain.total;
  return &ins + 1;
}

}  // namespace

const Ins* RoleGroup::next_body() {
  for (std::size_t n = 1; n <= bodies.size(); ++n) {
    const std::size_t candidate = (current + n) % bodies.size();
    if (bodies[candidate].next == nullptr) continue;
    current = candidate;
    return bodies[candidate].next;
  }
  return nullptr;
}

const Ins* RoleGroup::give_way(const Ins* verb) {
  bodies[current].next = verb;
  const auto open = static_cast<std::size_t>(std::count_if(bodies.begin(), bodies.end(), [](const Body& body) { return body.next != nullptr; }));
  if (++waiting >= open) return nullptr;
  return next_body();
}

// Statements of several roles, each role's side by side, as `split_roles` leaves them: their bodies take turns.
bool InterpreterCompiler::compile_roles(const Block& body, std::size_t& at) {
  std::vector<std::pair<std::string, Block>> roles;
  std::size_t end = at;
  for (; end < body.size(); ++end) {
    const Labelled* labelled = as<Labelled>(body[end]);
    if (!labelled) break;
    if (roles.empty() || roles.back().first != labelled->role) {
      for (const auto& [role, statements] : roles)
        if (role == labelled->role) return false;
      roles.emplace_back(labelled->role, Block{});
    }
    roles.back().second.push_back(labelled->statement);
  }
  if (roles.size() < 2) return false;
  at = end;
  objects_.roles.push_back(std::make_unique<RoleGroup>());
  RoleGroup* group = objects_.roles.back().get();
  const std::size_t begin = emit({.run = run_roles, .object = group});
  std::vector<std::size_t> ends;
  for (const auto& [role, statements] : roles) {
    forget_all();
    group->bodies.push_back({static_cast<std::int32_t>(position() - begin), nullptr});
    enter_scope();
    for (const Stmt& stmt : statements) compile_statement(stmt);
    leave_scope();
    ends.push_back(emit({.run = run_role_end, .object = group}));
  }
  for (std::size_t jump : ends) land(jump);
  forget_all();
  return true;
}

NestNames InterpreterCompiler::nest_names() const {
  return {[this](const std::string& name) -> std::optional<TensorInfo> {
            if (const Symbol* symbol = find(name); symbol != nullptr && symbol->kind == Symbol::Kind::Scalar) return TensorInfo{symbol->dtype, {}};
            const CheckedMemory* memory = find_memory(name);
            if (memory == nullptr) return std::nullopt;
            TensorInfo result{memory->dtype, {}};
            for (const std::int64_t extent : memory->extents) result.shape.push_back(integer(extent));
            return result;
          },
          [this](const std::string& name) {
            const Symbol* symbol = find(name);
            return (symbol != nullptr && symbol->kind == Symbol::Kind::Value) || dims_.contains(name);
          },
          [this](const std::string& name) -> const Layout* {
            const Symbol* symbol = find(name);
            return symbol != nullptr ? symbol->layout.get() : nullptr;
          }};
}

template <class Operation>
void InterpreterCompiler::compile_nest(const Operation& operation) {
  compile_body(reference_nest(operation, nest_names()));
}
template void InterpreterCompiler::compile_nest(const Copy&);
template void InterpreterCompiler::compile_nest(const Fill&);
template void InterpreterCompiler::compile_nest(const Mma&);
template void InterpreterCompiler::compile_nest(const Fold&);

void InterpreterCompiler::compile_pipe(const Pipe& pipe, Span span) {
  auto state = std::make_unique<PipeState>();
  state->name = pipe.name;
  if (pipe.slots < 1) throw UserError(span, fmt::format("pipe `{}` has no slots", pipe.name));
  state->slots.resize(static_cast<std::size_t>(pipe.slots));
  state->in = new_slot();
  state->out = new_slot();
  for (const std::string& name : pipe.buffers) {
    CheckedMemory& memory = need_memory(name, span);
    if (memory.extents.empty() || memory.extents.front() != pipe.slots)
      throw UserError(span, fmt::format("`{}` has no axis of the {} slots of pipe `{}`", name, pipe.slots, pipe.name));
    state->buffers.push_back(&memory);
  }
  emit({.run = run_pipe, .object = state.get()});
  declare(pipe.name, {.kind = Symbol::Kind::Pipe, .pipe = state.get()});
  declare(pipe.name + ".in", {.kind = Symbol::Kind::Value, .slot = state->in});
  declare(pipe.name + ".out", {.kind = Symbol::Kind::Value, .slot = state->out});
  objects_.pipes.push_back(std::move(state));
}

void InterpreterCompiler::compile_verb(const Verb& verb, Span span) {
  const PipeState* pipe = need(verb.pipe, Symbol::Kind::Pipe, span).pipe;
  Ins::Run run = nullptr;
  switch (verb.kind) {
    case VerbKind::Acquire: run = run_acquire; break;
    case VerbKind::Commit: run = run_commit; break;
    case VerbKind::Wait: run = run_wait; break;
    case VerbKind::Release: run = run_release; break;
  }
  emit({.run = run, .object = pipe});
}

void InterpreterCompiler::emit_pipe_ends() {
  for (const auto& pipe : objects_.pipes) emit({.run = run_pipe_end, .object = pipe.get()});
}

void InterpreterCompiler::compile_chain(const Chain& chain) {
  auto state = std::make_unique<ChainState>();
  state->dtype = chain.dtype;
  state->op = chain.op;
  emit({.run = run_chain, .a = compile(chain.start), .object = state.get()});
  declare(chain.name, {.kind = Symbol::Kind::Chain, .chain = state.get()});
  objects_.chains.push_back(std::move(state));
}

void InterpreterCompiler::compile_publish(const Publish& publish, Span span) {
  emit({.run = run_publish, .a = compile(publish.value), .object = need(publish.chain, Symbol::Kind::Chain, span).chain});
}

void InterpreterCompiler::compile_lookback(const Lookback& lookback, Span span) {
  const ChainState* chain = need(lookback.chain, Symbol::Kind::Chain, span).chain;
  const Slot value = new_slot();
  emit({.run = run_lookback, .dst = value, .object = chain});
  emit_store(lookback.target, value, chain->dtype, std::nullopt, span);
}

}  // namespace tilewright
