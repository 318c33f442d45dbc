#include "espalier/base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace espalier {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  int best_distance = std::max(2, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(word, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string suggest(std::string_view word, const std::vector<std::string>& candidates) {
  if (std::string near = nearest(word, candidates); !near.empty()) return fmt::format("did you mean '{}'?", near);
  constexpr size_t kShown = 12;
  if (candidates.size() <= kShown) return fmt::format("known: {}", fmt::join(candidates, ", "));
  return fmt::format("known: {}, ... ({} in all)", fmt::join(candidates.begin(), candidates.begin() + kShown, ", "), candidates.size());
}

}  // namespace espalier
