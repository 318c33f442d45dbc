#include "espalier/base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>

namespace espalier {

constexpr size_t kLongest = 256;  // of a word that anyone misspells; the distance of two words of a megabyte would take an hour

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
  std::string best, whole;
  int ends_so = 0;
  for (const std::string& candidate : candidates)
    if (candidate.size() > word.size() && candidate.ends_with(word) && candidate[candidate.size() - word.size() - 1] == '/')
      whole = candidate, ++ends_so;
  if (ends_so == 1 && !word.empty()) return whole;
  if (word.size() > kLongest) return "";
  const int size = static_cast<int>(word.size());
  int best_distance = std::min(std::max(2, size / 3) + 1, size);  // below its size: a word of which nothing is left was not meant
  for (const std::string& candidate : candidates) {
    if (std::abs(std::ssize(candidate) - std::ssize(word)) >= best_distance) continue;  // a distance is at least that
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
