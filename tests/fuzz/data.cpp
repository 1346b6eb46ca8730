// Inputs of the instruments, made worse.
#include "tests/fuzz/data.h"

#include <limits>
#include <set>

#include "tests/fuzz/random.h"

namespace tilewright::fuzz {

namespace {

// Tensors that stand in the bounds of a range: an extreme there is a loop without end.
std::set<std::string> tensors_in_bounds(const TensorFn& fn) {
  std::set<std::string> names;
  const auto note = [&](const Expr& bound) {
    if (bound)
      walk(bound, [&](const Expr& node) {
        if (const Load* load = as<Load>(node)) names.insert(load->access.buffer);
        return true;
      });
  };
  for (const TensorStmt& stmt : fn.statements) {
    std::vector<Expr> values = {stmt.value};
    values.insert(values.end(), stmt.where.begin(), stmt.where.end());
    for (const Axis& axis : stmt.axes) note(axis.lo), note(axis.hi);
    for (const Expr& value : values)
      walk(value, [&](const Expr& node) {
        if (const Reduce* reduce = as<Reduce>(node))
          for (const Axis& axis : reduce->axes) note(axis.lo), note(axis.hi);
        return true;
      });
  }
  return names;
}

std::int64_t extreme_integer(Dtype dtype, Random& random) {
  const int bits = info(dtype).bits;
  const std::int64_t most = bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (is_signed(dtype) ? bits - 1 : bits)) - 1;
  const std::int64_t least = is_signed(dtype) ? (bits == 64 ? std::numeric_limits<std::int64_t>::min() : -(std::int64_t{1} << (bits - 1))) : 0;
  return random.pick<std::int64_t>({least, most, most - 1, least + 1, 0, 1, -1, 31, 32, 255, 65536});
}

double extreme_real(Dtype dtype, Random& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double largest = dtype == Dtype::F64 ? std::numeric_limits<double>::max() : dtype == Dtype::F16 ? 65504.0 : dtype == Dtype::BF16 ? 0x1.fep127 : dtype == Dtype::E4M3 ? 448.0 : dtype == Dtype::E5M2 ? 57344.0 : 0x1.fffffep127;
  const double tiny = dtype == Dtype::F64 ? 0x1p-1074 : dtype == Dtype::F16 ? 0x1p-24 : dtype == Dtype::BF16 ? 0x1p-133 : dtype == Dtype::E4M3 ? 0x1p-9 : dtype == Dtype::E5M2 ? 0x1p-16 : 0x1p-149;
  return random.pick<double>({std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 0.0, -0.0, largest, -largest, tiny, -tiny, 0.5, 1.5, -2.5, 2147483648.0, -32768.0, 1e10});
}

}  // namespace

const char* name_of(Data data) {
  switch (data) {
    case Data::Exact: return "exact";
    case Data::Random: return "random";
    case Data::Special: return "special";
    case Data::Extreme: return "extreme";
  }
  return "";
}

Instrument instrument_of(Data data) { return data == Data::Exact ? Instrument::Exact : data == Data::Random ? Instrument::Random : Instrument::Special; }

std::map<std::string, HostTensor> make_data(Data data, const TensorFn& fn, const std::map<std::string, std::int64_t>& dims, std::uint64_t seed) {
  std::map<std::string, HostTensor> inputs = instrument_inputs(instrument_of(data), fn, dims, seed);
  const std::set<std::string> bounds = tensors_in_bounds(fn);
  for (auto& [name, tensor] : inputs) {
    Random random(seed_of(seed, name.size() + static_cast<unsigned char>(name[0]) * 7U));
    const bool is_integer_bound = bounds.count(name) > 0;
    if (is_integer_bound && tensor.shape.empty()) write_integer(tensor, 0, random.between(0, 3));
    if (data != Data::Extreme || is_integer_bound) continue;
    for (std::int64_t n = 0; n < tensor.elements(); ++n) {
      if (!random.chance(30)) continue;
      if (is_float(tensor.dtype)) write_real(tensor, n, extreme_real(tensor.dtype, random));
      else if (tensor.dtype != Dtype::Bool) write_integer(tensor, n, extreme_integer(tensor.dtype, random));
    }
  }
  return inputs;
}

}  // namespace tilewright::fuzz
