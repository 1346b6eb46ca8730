// Slips of the pen in names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

// The candidate nearest to `word`, if it is near enough to be meant; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// "did you mean `x`?" or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tilewright
