// Warps and roles of a kernel.
#include "passes/schedule/kernel_threads.h"

#include <algorithm>
#include <string>

#include "passes/finish/deal.h"

namespace tilewright {

namespace {
constexpr std::int64_t lanes = 32;
}

std::vector<Role> roles_of(const Kernel& kernel) {
  std::vector<Role> roles;
  for (const Stmt& stmt : kernel.body)
    if (const Role* role = as<Role>(stmt)) roles.push_back(*role);
  return roles;
}

int computing_warps(const Kernel& kernel) {
  for (const Role& role : roles_of(kernel))
    if (role.name == "consumer") return role.last_warp - role.first_warp;
  return kernel.warps;
}

std::int64_t threads_of(const Kernel& kernel) {
  std::int64_t warps = 0;
  for (const Role& role : roles_of(kernel)) warps += role.last_warp - role.first_warp;
  if (warps) return warps * lanes;
  auto shape = stated_block_shape(kernel);
  return shape ? shape->total() : 1;
}

ComputingThreads computing_threads(const Kernel& kernel, const Target& target) {
  constexpr std::int64_t most = 255;  // that an instruction names
  std::int64_t all = threads_of(kernel);
  for (const Role& role : roles_of(kernel))
    if (role.name == "consumer")
      return {(role.last_warp - role.first_warp) * lanes,
              role.registers ? role.registers : std::min(most, register_pool(target, all) / all)};
  return {all, std::min(most, target.registers_per_block / all)};
}

int capability(const Target& target) { return std::stoi(target.arch.substr(target.arch.find('_') + 1)); }

std::int64_t register_pool(const Target& target, std::int64_t threads) {
  constexpr std::int64_t step = 8;
  return target.registers_per_block / threads / step * step * threads;
}

}  // namespace tilewright
