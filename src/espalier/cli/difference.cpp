#include "espalier/cli/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier::cli {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// `scale_of(i)` is what the difference of element i is measured by.
template <class Scale>
Difference compare(std::span<const float> sharded, std::span<const float> reference, Scale scale_of) {
  if (sharded.size() != reference.size()) return {kInfinite, 0};
  Difference worst;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double a = sharded[i], b = reference[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double gap = std::abs(a - b), scale = scale_of(i);
    const double relative = std::isfinite(gap) && scale > 0 ? gap / scale : kInfinite;
    if (relative > worst.relative) worst = {relative, static_cast<int64_t>(i)};
  }
  return worst;
}

}  // namespace

double largest_magnitude(std::span<const float> values) {
  double largest = 0;
  for (float value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

Difference largest_difference(std::span<const float> sharded, std::span<const float> reference, double floor) {
  const double scale = std::max(largest_magnitude(reference), floor);
  return compare(sharded, reference, [&](size_t) { return scale; });
}

Difference weight_difference(std::span<const float> sharded, std::span<const float> reference, std::span<const float> slack, double floor) {
  const double scale = std::max(largest_magnitude(reference), floor);
  return compare(sharded, reference, [&](size_t i) { return scale + (i < slack.size() ? slack[i] : 0); });
}

void add_slack(const nn::Optimizer& optimizer, std::span<const float> gradient, double scale, double tolerance, std::vector<float>* slack) {
  slack->resize(gradient.size());
  const double rate = optimizer.learning_rate;
  const bool adaptive = optimizer.kind != nn::Optimizer::Kind::kSgd;
  // Momentum repeats a change in all later updates.
  const double passed_on = rate * scale / (1 - std::min(optimizer.momentum, 0.999));
  const double most = tolerance > 0 ? 2 * rate / tolerance : 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double size = std::abs(static_cast<double>(gradient[i])) + optimizer.epsilon;
    (*slack)[i] += static_cast<float>(adaptive ? std::min(rate * scale / size, most) : passed_on);
  }
}

}  // namespace espalier::cli
