// The architectures that passes know: shared memory a block may have, from the CUDA C++ Programming Guide 13.0,
// table "Technical Specifications per Compute Capability".
#include <fmt/format.h>

#include <array>

#include "passes/pass.h"

namespace tilewright {

namespace {

struct ArchRow {
  std::string_view name;
  std::int64_t shared_kib;  // most a block may have
};
constexpr std::array<ArchRow, 9> rows = {{{"sm_75", 64}, {"sm_80", 163}, {"sm_86", 99}, {"sm_87", 163}, {"sm_89", 99},
                                          {"sm_90", 227}, {"sm_90a", 227}, {"sm_100a", 227}, {"sm_120a", 99}}};

constexpr auto names = [] {
  std::array<std::string_view, rows.size()> list{};
  for (std::size_t n = 0; n < rows.size(); ++n) list[n] = rows[n].name;
  return list;
}();

}  // namespace

std::span<const std::string_view> known_architectures() { return names; }

Target target_for(const std::string& arch) {
  for (const ArchRow& row : rows)
    if (row.name == arch) {
      Target target;
      target.arch = arch;
      target.shared_bytes = row.shared_kib * 1024;
      return target;
    }
  std::string known;
  for (std::string_view name : names) known += (known.empty() ? "" : ", ") + std::string(name);
  throw UserError({}, fmt::format("unknown architecture `{}`", arch), "known are " + known);
}

}  // namespace tilewright
