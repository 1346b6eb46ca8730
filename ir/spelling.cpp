// The nearest known word; see spelling.h.
#include "ir/spelling.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  // One slip in a short word, two in a longer one; a word of one letter is never a slip of another.
  std::size_t best_distance = word.size() <= 1 ? 0 : word.size() <= 4 ? 1 : 2;
  bool found = false;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > word.size() + 2 || word.size() > candidate.size() + 2) continue;
    // Edit distance, a row at a time; a swap of neighbours counts as one.
    std::vector<std::vector<std::size_t>> rows(word.size() + 1, std::vector<std::size_t>(candidate.size() + 1));
    for (std::size_t i = 0; i <= word.size(); ++i)
      for (std::size_t j = 0; j <= candidate.size(); ++j) {
        if (i == 0 || j == 0) {
          rows[i][j] = i + j;
          continue;
        }
        rows[i][j] = std::min(
            {rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (word[i - 1] == candidate[j - 1] ? 0U : 1U)});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1])
          rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    const std::size_t distance = rows[word.size()][candidate.size()];
    if (distance == 0) continue;
    if (distance < best_distance || (distance == best_distance && !found)) {
      best = candidate;
      best_distance = distance;
      found = true;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? std::string() : fmt::format("did you mean `{}`?", best);
}

}  // namespace tilewright
