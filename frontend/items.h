// From items as written to items that are meant: schedules with their `from`, hand items, benches.
#pragma once

#include "frontend/fn_builder.h"
#include "frontend/program.h"

namespace tilewright {

// In order of the text, parameters not replaced.
std::vector<Schedule> resolve_schedules(const std::vector<AstSchedule>& items, FnTable& table, Sink& sink);
Schedule with_parameters(const Schedule& generic, const std::map<std::string, std::int64_t>& values);

std::vector<Fact> resolve_facts(const std::vector<AstFact>& facts, const TensorFn& signature, Sink& sink);

std::optional<HandItem> resolve_hand(const AstHand& item, const TensorFn& signature, Sink& sink);
std::vector<HandItem> resolve_hands(const std::vector<AstHand>& items, FnTable& table, Sink& sink);
std::vector<BenchItem> resolve_benches(const std::vector<AstBench>& items, FnTable& table, Sink& sink);

// The signature of the fn that an item names; null, and reported, where there is none.
const TensorFn* named_fn(const AstWord& word, const FnTable& table, Sink& sink);

}  // namespace tilewright
