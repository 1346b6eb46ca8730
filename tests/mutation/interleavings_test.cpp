#include "tests/mutation/interleavings.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "ir/instructions.h"
#include "ir/scalar.h"
#include "tests/mutation/mutants.h"
#include "tests/sim/sim.h"

namespace tilewright {

namespace {

// Runs the text for one thread, integers only.
class EventReader {
 public:
  EventReader(const Kernel& kernel, const std::map<std::string, std::int64_t>& dims, std::int64_t warp) : values_(dims), leads_warpgroup_(warp % 4 == 0) {
    const std::vector<std::int64_t>& block = kernel.launch.block;
    const std::int64_t thread = warp * 32;
    values_["thread"] = thread;
    values_["thread.x"] = thread % block[0];
    values_["thread.y"] = block.size() > 1 ? thread / block[0] % block[1] : 0;
    values_["lane"] = 0;
    values_["warp"] = warp;
    for (const char* name : {"block", "block.x", "block.y", "block.z", "cluster.rank"}) values_[name] = 0;
    walk(kernel.body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt)) (buffer->space == Space::Shared ? shared_ : registers_)[buffer->name] = *buffer;
      return true;
    });
  }

  std::vector<SyncEvent> take(const Block& body) {
    run(body);
    return std::move(events_);
  }

 private:
  using Value = std::optional<std::int64_t>;

  Value value_of(const Expr& expr) const {
    if (const Const* node = as<Const>(expr)) return is_float(expr->dtype) ? Value{} : Value{node->bits};
    if (const Var* node = as<Var>(expr)) return find(node->name);
    if (const Load* node = as<Load>(expr)) return node->access.index.empty() ? find(node->access.buffer) : Value{};
    if (const Cast* node = as<Cast>(expr)) return is_float(expr->dtype) || is_float(node->operand->dtype) ? Value{} : value_of(node->operand);
    if (const Unary* node = as<Unary>(expr)) {
      const Value operand = value_of(node->operand);
      return operand ? Value{apply(node->op, expr->dtype, integer_scalar(*operand)).i} : Value{};
    }
    if (const Select* node = as<Select>(expr)) {
      const Value condition = value_of(node->condition);
      return condition ? value_of(*condition != 0 ? node->if_true : node->if_false) : Value{};
    }
    if (const Call* node = as<Call>(expr)) {
      if (node->function == "elect") return 1;
      if (node->function == "uniform") return value_of(node->arguments[0]);
      if (node->function != "ceildiv") return {};
      const Value a = value_of(node->arguments[0]), b = value_of(node->arguments[1]);
      return a && b && *b > 0 ? Value{(*a + *b - 1) / *b} : Value{};
    }
    const Binary* node = as<Binary>(expr);
    if (node == nullptr) return {};
    const Value a = value_of(node->lhs);
    if (node->op == BinaryOp::And && a && *a == 0) return 0;
    if (node->op == BinaryOp::Or && a && *a != 0) return 1;
    const Value b = value_of(node->rhs);
    return a && b ? Value{apply(node->op, node->lhs->dtype, integer_scalar(*a), integer_scalar(*b)).i} : Value{};
  }

  Value find(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? Value{} : Value{found->second};
  }

  std::int64_t known(const Expr& expr, const char* what) const {
    const Value value = value_of(expr);
    if (!value) throw std::runtime_error(fmt::format("{} `{}` is not known", what, print(expr)));
    return *value;
  }

  // `As[2]`: the slot of a buffer, or the whole buffer.
  std::string place(const Access& access, const char* what) const {
    const Buffer& buffer = shared_.at(access.buffer);
    const bool has_slots = buffer.dtype == Dtype::Mbarrier || access.index.size() > 1;
    return fmt::format("{}[{}]", access.buffer, has_slots ? known(access.index.front(), what) : 0);
  }

  bool matters(const Block& body) const {
    bool found = false;
    walk(body, [&](const Stmt& stmt) {
      if (as<Instr>(stmt)) found = true;
      if (const Store* store = as<Store>(stmt)) {
        found |= store->target.index.empty() && !is_float(store->value->dtype);
        map_expressions(stmt, [&](const Expr& top) {
          walk(top, [&](const Expr& node) {
            if (const Load* load = as<Load>(node)) found |= shared_.contains(load->access.buffer);
            return !found;
          });
          return top;
        });
      }
      return !found;
    });
    return found;
  }

  void add(SyncEvent event) {
    if (events_.size() > 20000) throw std::runtime_error("too many events");
    if (events_.empty() || !(events_.back() == event) || event.kind == SyncEvent::Kind::Barrier || event.kind == SyncEvent::Kind::Arrive) events_.push_back(std::move(event));
  }

  void run(const Block& body) {
    for (const Stmt& stmt : body) {
      if (const Let* let = as<Let>(stmt)) {
        if (const Value value = value_of(let->value)) values_[let->name] = *value;
      } else if (const If* branch = as<If>(stmt)) {
        if (!matters(branch->then_body) && !matters(branch->else_body)) continue;
        run(known(branch->condition, "the condition") != 0 ? branch->then_body : branch->else_body);
      } else if (const Loop* loop = as<Loop>(stmt)) {
        if (matters(loop->body)) run_loop(*loop, 0);
      } else if (const Store* store = as<Store>(stmt)) {
        read_of(stmt);
        if (store->target.index.empty() && registers_.contains(store->target.buffer) && !is_float(store->value->dtype))
          values_[store->target.buffer] = known(store->value, "the value");
      } else if (const Instr* instr = as<Instr>(stmt)) {
        instruction(*instr, stmt);
      }
    }
  }

  void run_loop(const Loop& loop, std::size_t axis) {
    if (axis == loop.axes.size()) return run(loop.body);
    const Axis& bounds = loop.axes[axis];
    const std::int64_t step = bounds.step ? known(bounds.step, "the step") : 1;
    for (std::int64_t value = bounds.lo ? known(bounds.lo, "the bound") : 0; value < known(bounds.hi, "the bound"); value += step) {
      values_[bounds.name] = value;
      run_loop(loop, axis + 1);
    }
  }

  void read_of(const Stmt& stmt) {
    map_expressions(stmt, [&](const Expr& top) {
      walk(top, [&](const Expr& node) {
        if (const Load* load = as<Load>(node); load && shared_.contains(load->access.buffer)) add({SyncEvent::Kind::Read, place(load->access, "the slot"), "", 0});
        return true;
      });
      return top;
    });
  }

  void instruction(const Instr& instr, const Stmt& stmt) {
    const auto place_of = [&](std::size_t operand) { return place(as<Load>(instr.operands.at(operand))->access, "the slot"); };
    if (instr.op == "mbarrier.wait") return add({SyncEvent::Kind::Wait, place_of(0), "", known(instr.operands[1], "the parity") & 1});
    if (instr.op == "mbarrier.arrive") return add({SyncEvent::Kind::Arrive, place_of(0), "", 0});
    if (instr.op == "mbarrier.arrive.cluster") {
      if (known(instr.operands[1], "the block") == 0) add({SyncEvent::Kind::Arrive, place_of(0), "", 0});
      return;
    }
    if (instr.op == "mbarrier.arrive.expect_tx") return add({SyncEvent::Kind::Arrive, place_of(0), "", -1});
    if (instr.op.starts_with("tma.load")) return add({SyncEvent::Kind::Copy, place_of(0), place_of(instr.operands.size() - (instr.op.ends_with("multicast") ? 2 : 1)), 0});
    if (instr.op == "barrier.block") return add({SyncEvent::Kind::Barrier, "block", "", 0});
    if (instr.op == "cluster.wait") return add({SyncEvent::Kind::Barrier, "cluster", "", 0});
    if (instr.op == "barrier.named") return add({SyncEvent::Kind::Barrier, fmt::format("{}", known(instr.operands[0], "the barrier")), "", 0});
    if (instr.op == "wgmma.commit") return add({SyncEvent::Kind::StartRead, "", "", 0});
    if (instr.op == "wgmma.wait") return add({SyncEvent::Kind::EndReads, "", "", known(instr.operands[0], "the groups")});
    if (wgmma_form(instr.op)) {  // of the whole warpgroup: its first warp stands for all
      if (!leads_warpgroup_) return;
      for (const std::size_t side : {std::size_t{1}, std::size_t{2}})
        if (const Call* descriptor = as<Call>(instr.operands[side])) add({SyncEvent::Kind::StartRead, place(as<Load>(descriptor->arguments[0])->access, "the slot"), "", 0});
      return;
    }
    if (!instr.op.starts_with("mbarrier.")) read_of(stmt);
  }

  std::map<std::string, std::int64_t> values_;
  bool leads_warpgroup_;
  std::map<std::string, Buffer> shared_, registers_;
  std::vector<SyncEvent> events_;
};

struct ObjectState {
  int pending = 0;
  int copies = 0;  // announced and not landed
  int phase = 0;
  auto operator<=>(const ObjectState&) const = default;
};

struct State {
  std::array<std::size_t, 2> next{};    // event of each warp
  std::array<std::size_t, 2> landed{};  // copies of each
  std::map<std::string, ObjectState> objects;
  std::map<std::string, std::pair<int, int>> content;  // of a slot: the last copy
  auto operator<=>(const State&) const = default;
};

class Explorer {
 public:
  Explorer(const std::vector<SyncEvent>& first, const std::vector<SyncEvent>& second, const std::map<std::string, int>& arrivals) : events_{&first, &second}, arrivals_(arrivals) {
    for (std::size_t who = 0; who < 2; ++who) prepare(who);
  }

  Interleavings run() {
    State start;
    for (const auto& [object, count] : arrivals_) start.objects[object].pending = count;
    std::set<State> known{start};
    std::deque<State> open{start};
    while (!open.empty() && result_.fault.empty()) {
      const State state = std::move(open.front());
      open.pop_front();
      std::vector<State> further;
      step(state, further);
      for (State& next : further)
        if (known.insert(next).second) open.push_back(std::move(next));
      if (known.size() > 400000) throw std::runtime_error("too many interleavings");
    }
    result_.states = known.size();
    return std::move(result_);
  }

 private:
  using Kind = SyncEvent::Kind;

  // What is known of a warp at each of its events: copies issued, reads so far, slots that wgmma may be reading.
  void prepare(std::size_t who) {
    std::vector<std::set<std::string>> groups;  // that were committed, the oldest first
    std::set<std::string> current;
    int reads = 0;
    for (const SyncEvent& event : *events_[who]) {
      issued_[who].push_back(copies_[who].size());
      reads_[who].push_back(reads);
      std::set<std::string> all = current;
      for (const auto& group : groups) all.insert(group.begin(), group.end());
      open_[who].push_back(all);
      if (event.kind == Kind::Copy) copies_[who].push_back(&event);
      if (event.kind == Kind::Read || (event.kind == Kind::StartRead && !event.place.empty())) ++reads;
      if (event.kind == Kind::StartRead && !event.place.empty()) current.insert(event.place);
      if (event.kind == Kind::StartRead && event.place.empty()) groups.push_back(std::exchange(current, {}));
      if (event.kind == Kind::EndReads)
        while (groups.size() > static_cast<std::size_t>(event.value)) groups.erase(groups.begin());
    }
    issued_[who].push_back(copies_[who].size());
    reads_[who].push_back(reads);
    open_[who].push_back({});
  }

  // Copies that an arrival announces: those up to the warp's next arrival of the kind.
  int announced(std::size_t who, std::size_t at) const {
    int count = 0;
    for (std::size_t n = at + 1; n < events_[who]->size(); ++n) {
      const SyncEvent& event = (*events_[who])[n];
      if (event.kind == Kind::Arrive && event.value < 0) break;
      count += event.kind == Kind::Copy ? 1 : 0;
    }
    return count;
  }

  void complete(ObjectState& object, const std::string& name) const {
    if (object.pending != 0 || object.copies != 0) return;
    ++object.phase;
    object.pending = arrivals_.at(name);
  }

  void step(const State& state, std::vector<State>& further) {
    bool all_done = true;
    for (std::size_t who = 0; who < 2; ++who) {
      if (state.landed[who] < issued_[who][state.next[who]]) {
        all_done = false;
        land(state, who, further);
      }
      if (state.next[who] == events_[who]->size()) continue;
      all_done = false;
      advance(state, who, further);
    }
    if (!all_done && further.empty() && result_.fault.empty()) result_.fault = fmt::format("deadlock at events {} and {}", state.next[0], state.next[1]);
  }

  // The oldest copy that is under way lands.
  void land(const State& state, std::size_t who, std::vector<State>& further) {
    const SyncEvent& copy = *copies_[who][state.landed[who]];
    for (std::size_t reader = 0; reader < 2; ++reader)
      for (std::size_t under_way = state.landed[who]; under_way < issued_[who][state.next[who]]; ++under_way)
        if (open_[reader][state.next[reader]].contains(copies_[who][under_way]->place)) result_.fault = fmt::format("a copy comes into {} while it is read", copies_[who][under_way]->place);
    State next = state;
    next.content[copy.place] = {static_cast<int>(who), static_cast<int>(state.landed[who])};
    ++next.landed[who];
    if (const auto object = next.objects.find(copy.object); object != next.objects.end()) {
      --object->second.copies;
      complete(object->second, copy.object);
    }
    further.push_back(std::move(next));
  }

  void advance(const State& state, std::size_t who, std::vector<State>& further) {
    const SyncEvent& event = (*events_[who])[state.next[who]];
    State next = state;
    ++next.next[who];
    switch (event.kind) {
      case Kind::Wait: {
        const auto object = state.objects.find(event.place);
        if (object != state.objects.end() && (object->second.phase & 1) == event.value) return;
        break;
      }
      case Kind::Arrive: {
        const auto object = next.objects.find(event.place);
        if (object == next.objects.end()) break;
        if (object->second.pending == 0) result_.fault = fmt::format("an arrival too many at {}", event.place);
        --object->second.pending;
        if (event.value < 0) object->second.copies += announced(who, state.next[who]);
        complete(object->second, event.place);
        break;
      }
      case Kind::Barrier: {
        const std::size_t other = 1 - who;
        const bool takes_part = std::any_of(events_[other]->begin() + static_cast<std::ptrdiff_t>(state.next[other]), events_[other]->end(),
                                            [&](const SyncEvent& later) { return later.kind == Kind::Barrier && later.place == event.place; });
        if (!takes_part) break;
        const SyncEvent& theirs = (*events_[other])[state.next[other]];
        if (theirs.kind != Kind::Barrier || theirs.place != event.place) return;
        ++next.next[other];
        break;
      }
      case Kind::Read:
      case Kind::StartRead: {
        if (event.place.empty()) break;
        for (std::size_t by = 0; by < 2; ++by)
          for (std::size_t n = state.landed[by]; n < issued_[by][state.next[by]]; ++n)
            if (copies_[by][n]->place == event.place) result_.fault = fmt::format("{} is read while a copy into it is under way", event.place);
        const auto content = state.content.find(event.place);
        auto& seen = result_.seen[{static_cast<int>(who), reads_[who][state.next[who]]}];
        const std::pair<int, int> copy = content == state.content.end() ? std::pair{-1, -1} : content->second;
        if (std::find(seen.begin(), seen.end(), copy) == seen.end()) seen.push_back(copy);
        break;
      }
      case Kind::Copy:
        for (std::size_t reader = 0; reader < 2; ++reader)
          if (open_[reader][state.next[reader]].contains(event.place)) result_.fault = fmt::format("a copy into {} starts while it is read", event.place);
        break;
      case Kind::EndReads: break;
    }
    further.push_back(std::move(next));
  }

  std::array<const std::vector<SyncEvent>*, 2> events_;
  const std::map<std::string, int>& arrivals_;
  std::array<std::vector<std::size_t>, 2> issued_;
  std::array<std::vector<int>, 2> reads_;
  std::array<std::vector<std::set<std::string>>, 2> open_;
  std::array<std::vector<const SyncEvent*>, 2> copies_;
  Interleavings result_;
};

}  // namespace

std::vector<SyncEvent> events_of(const Kernel& kernel, const std::map<std::string, std::int64_t>& dims, std::int64_t warp) { return EventReader(kernel, dims, warp).take(kernel.body); }

std::map<std::string, int> arrivals_of(const std::vector<SyncEvent>& first, const std::vector<SyncEvent>& second) {
  std::map<std::string, int> arrivals;
  for (const auto* events : {&first, &second}) {
    std::set<std::string> own;
    for (const SyncEvent& event : *events)
      if (event.kind == SyncEvent::Kind::Arrive) own.insert(event.place);
    for (const std::string& object : own) ++arrivals[object];
  }
  return arrivals;
}

Interleavings all_interleavings(const std::vector<SyncEvent>& first, const std::vector<SyncEvent>& second, const std::map<std::string, int>& arrivals) {
  return Explorer(first, second, arrivals).run();
}

Compared compare_interleavings(const Kernel& kernel, const Kernel& changed, const std::vector<std::map<std::string, std::int64_t>>& dims) {
  std::int64_t threads = 1;
  for (const std::int64_t extent : kernel.launch.block) threads *= extent;
  using Events = std::vector<SyncEvent>;
  const auto is_less = [](const SyncEvent& a, const SyncEvent& b) { return std::tie(a.kind, a.place, a.object, a.value) < std::tie(b.kind, b.place, b.object, b.value); };
  const auto list_less = [&](const Events& a, const Events& b) { return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), is_less); };
  std::set<Events, decltype(list_less)> known(list_less);  // of the plan and the mutant, one behind the other
  std::size_t compared = 0;
  for (const auto& sizes : dims) {
    std::vector<std::pair<Events, Events>> warps;  // that differ from each other
    for (std::int64_t warp = 0; warp < (threads + 31) / 32; ++warp) {
      std::pair<Events, Events> events{events_of(kernel, sizes, warp), events_of(changed, sizes, warp)};
      if (std::find(warps.begin(), warps.end(), events) == warps.end()) warps.push_back(std::move(events));
    }
    for (std::size_t a = 0; a < warps.size(); ++a)
      for (std::size_t b = a + 1; b < warps.size(); ++b) {
        const auto& [first, first_changed] = warps[a];
        const auto& [second, second_changed] = warps[b];
        const auto has_copies = [](const Events& events) { return std::any_of(events.begin(), events.end(), [](const SyncEvent& event) { return event.kind == SyncEvent::Kind::Copy; }); };
        if (!has_copies(first) && !has_copies(second)) continue;
        Events key;
        for (const Events* part : {&first, &second, &first_changed, &second_changed}) key.insert(key.end(), part->begin(), part->end());
        if (!known.insert(std::move(key)).second) continue;
        const std::map<std::string, int> arrivals = arrivals_of(first, second);
        const Interleavings right = all_interleavings(first, second, arrivals);
        const Interleavings mutant = all_interleavings(first_changed, second_changed, arrivals);
        const bool is_clean = right.fault.empty() && std::all_of(right.seen.begin(), right.seen.end(), [](const auto& read) { return read.second.size() == 1; });
        if (!is_clean) return Compared::Unknown;
        if (!mutant.fault.empty() || right.seen != mutant.seen) return Compared::Differs;
        ++compared;
      }
  }
  return compared > 0 ? Compared::Same : Compared::Unknown;
}

TEST_SUITE("mutation") {
  TEST_CASE("interleavings of a ring of two slots: right, and with each of its waits gone") {
    using Kind = SyncEvent::Kind;
    std::vector<SyncEvent> producer, consumer;
    for (int trip = 0; trip < 5; ++trip) {
      const std::string slot = fmt::format("[{}]", trip % 2);
      producer.push_back({Kind::Wait, "empty" + slot, "", trip / 2 % 2 ^ 1});
      producer.push_back({Kind::Arrive, "full" + slot, "", -1});
      producer.push_back({Kind::Copy, "S" + slot, "full" + slot, 0});
      consumer.push_back({Kind::Wait, "full" + slot, "", trip / 2 % 2});
      consumer.push_back({Kind::Read, "S" + slot, "", 0});
      consumer.push_back({Kind::Arrive, "empty" + slot, "", 0});
    }
    const std::map<std::string, int> arrivals = arrivals_of(producer, consumer);
    const Interleavings right = all_interleavings(producer, consumer, arrivals);
    CHECK(right.fault == "");
    CHECK(right.states > 30);
    REQUIRE(right.seen.size() == 5);
    for (int trip = 0; trip < 5; ++trip) CHECK(right.seen.at({1, trip}) == std::vector<std::pair<int, int>>{{0, trip}});
    const auto without = [](std::vector<SyncEvent> events, Kind kind) {
      std::erase_if(events, [&](const SyncEvent& event) { return event.kind == kind; });
      return events;
    };
    CHECK(all_interleavings(without(producer, Kind::Wait), consumer, arrivals).fault != "");
    CHECK(all_interleavings(producer, without(consumer, Kind::Wait), arrivals).fault != "");
    CHECK(all_interleavings(producer, without(consumer, Kind::Arrive), arrivals).fault.starts_with("deadlock"));
    CHECK(all_interleavings(without(producer, Kind::Arrive), consumer, arrivals).fault.starts_with("deadlock"));
  }
}

}  // namespace tilewright
