// Two texts line beside line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/library/ladder/ladder.h"

namespace tilewright {

std::vector<std::string> lines_of_text(const std::string& text);

// Numbers of lines from 1 on that are equal and in the same order in both (longest common subsequence); 0 where the other text has
// no such line.
std::vector<std::pair<std::size_t, std::size_t>> pair_lines(const std::vector<std::string>& left, const std::vector<std::string>& right);

// The SASS of the first row that has some beside that of each other row, in two columns: `|` between like operations, `/` between
// others, `<` and `>` where only one has a line.
std::string sass_columns(const Ladder& ladder);

}  // namespace tilewright
