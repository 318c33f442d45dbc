#pragma once
// Time, and what a list of times says.
#include <algorithm>
#include <chrono>
#include <vector>

namespace espalier::bench {

inline double now_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class Action>
double seconds_of(Action action) {
  const double start = now_seconds();
  action();
  return now_seconds() - start;
}

// The upper one of an even count; 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}
inline double smallest(const std::vector<double>& values) { return values.empty() ? 0 : *std::min_element(values.begin(), values.end()); }
inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace espalier::bench
