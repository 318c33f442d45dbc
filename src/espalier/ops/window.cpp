#include "espalier/ops/window.h"

#include <fmt/format.h>

namespace espalier::ops {

Window read_window(const Attrs& attrs, const char* begin, int rank, const std::string& where) {
  Window window{attrs.integers(begin), std::vector<int64_t>(static_cast<size_t>(rank), 1)};
  if (attrs.has("step")) window.step = attrs.integers("step");
  if (window.begin.size() != static_cast<size_t>(rank) || window.step.size() != static_cast<size_t>(rank))
    usage_error(fmt::format("'{}' and 'step' need {} entries", begin, rank), where, "one entry a dim");
  for (int64_t b : window.begin)
    if (b < 0) usage_error(fmt::format("'{}' has {}", begin, b), where, "count from 0");
  for (int64_t s : window.step)
    if (s < 1) usage_error(fmt::format("'step' has {}", s), where, "give 1 or more");
  return window;
}

FactorRule window_rule(const Window& window, const Dims& from, const Dims& to) {
  FactorRule rule{.factors = {}, .operands = {{}}, .results = {{}}};
  auto factor = [&](FactorKind kind, int64_t size) {
    rule.factors.push_back({static_cast<char>('a' + rule.factors.size()), kind, size});
    return FactorDim{static_cast<int8_t>(rule.factors.size() - 1)};
  };
  for (int d = 0; d < from.rank(); ++d) {
    auto i = static_cast<size_t>(d);
    bool passes = from[d] == to[d] && window.begin[i] == 0 && window.step[i] == 1;
    rule.operands[0].push_back(factor(passes ? FactorKind::kPass : FactorKind::kWhole, from[d]));
    rule.results[0].push_back(passes ? rule.operands[0].back() : factor(FactorKind::kWhole, to[d]));
  }
  return rule;
}

StridedCopy window_copy(const Window& window, const Dims& small, const Dims& large, bool from_large) {
  Dims strides = row_major_strides(large);
  int64_t start = 0;
  for (int d = 0; d < small.rank(); ++d) {
    start += window.begin[static_cast<size_t>(d)] * strides[d];
    strides[d] *= window.step[static_cast<size_t>(d)];
  }
  const Dims dense = row_major_strides(small);
  if (from_large) return simplified({.shape = small, .from_strides = strides, .to_strides = dense, .from_start = start});
  return simplified({.shape = small, .from_strides = dense, .to_strides = strides, .to_start = start});
}

}  // namespace espalier::ops
