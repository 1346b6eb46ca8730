// The schedule passes: one function a word of a line, one file each.
#pragma once

#include "passes/pass.h"

namespace tilewright {

Plan tile(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan bind(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan warps(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan coarsen(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan stage(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan vectorize(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan split(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan unroll(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan peel(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan inline_tensor(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan fuse(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan pipeline(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan mma(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan roles(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan cluster(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan epilogue(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan persist(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan overlap(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan contract(const Plan& plan, const ScheduleLine& line, const Target& target);
Plan math(const Plan& plan, const ScheduleLine& line, const Target& target);

}  // namespace tilewright
