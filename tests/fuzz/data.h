// The inputs of a run.
#pragma once

#include <map>
#include <string>

#include "runtime/instruments.h"

namespace tilewright::fuzz {

// The three instruments, and Extreme: floats special in many places, integers at the ends of their ranges, indices that
// leave their tensors.
enum class Data : std::uint8_t { Exact, Random, Special, Extreme };
const char* name_of(Data data);
Instrument instrument_of(Data data);

std::map<std::string, HostTensor> make_data(Data data, const TensorFn& fn, const std::map<std::string, std::int64_t>& dims, std::uint64_t seed);

}  // namespace tilewright::fuzz
