#include "espalier/cli/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier::cli {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Sums {
  double largest_gap = 0, largest_reference = 0, gap_squares = 0, reference_squares = 0;
  int64_t index = 0;
  bool comparable = true;
};

Sums compare(std::span<const float> sharded, std::span<const float> reference) {
  Sums sums;
  sums.comparable = sharded.size() == reference.size();
  for (size_t i = 0; sums.comparable && i < reference.size(); ++i) {
    const double a = sharded[i], b = reference[i];
    if (a == b) {
      sums.largest_reference = std::max(sums.largest_reference, std::abs(b));
      sums.reference_squares += b * b;
      continue;
    }
    const double gap = std::abs(a - b);
    if (!std::isfinite(gap)) {
      // The same not-a-number on both sides is no difference.
      if (std::isnan(a) && std::isnan(b)) continue;
      sums.comparable = false;
      sums.index = static_cast<int64_t>(i);
      return sums;
    }
    if (gap > sums.largest_gap) sums.largest_gap = gap, sums.index = static_cast<int64_t>(i);
    sums.largest_reference = std::max(sums.largest_reference, std::abs(b));
    sums.gap_squares += gap * gap;
    sums.reference_squares += b * b;
  }
  return sums;
}

Difference relative(double gap, double reference, const Sums& sums) {
  if (!sums.comparable) return {kInfinite, sums.index};
  return {gap == 0 ? 0 : reference == 0 ? kInfinite : gap / reference, sums.index};
}

}  // namespace

Difference largest_difference(std::span<const float> sharded, std::span<const float> reference, double floor) {
  const Sums sums = compare(sharded, reference);
  return relative(sums.largest_gap, std::max(sums.largest_reference, floor), sums);
}

double largest_magnitude(std::span<const float> values) {
  double largest = 0;
  for (float value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

Difference norm_difference(std::span<const float> sharded, std::span<const float> reference) {
  const Sums sums = compare(sharded, reference);
  return relative(std::sqrt(sums.gap_squares), std::sqrt(sums.reference_squares), sums);
}

}  // namespace espalier::cli
