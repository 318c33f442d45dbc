#include "espalier/ops/random.h"

#include <fmt/format.h>

namespace espalier::ops {

FactorRule shape_rule(const OpSignature& signature) {
  const std::vector<int64_t>& shape = signature.attrs.integers("shape");
  if (shape.size() > static_cast<size_t>(kMaxRank))
    usage_error(fmt::format("a shape of rank {} is too long", shape.size()), signature.where, fmt::format("at most {} dims", kMaxRank));
  checked_volume(Dims(shape), signature.where);
  FactorRule rule{.factors = {}, .operands = {}, .results = {{}}};
  for (size_t d = 0; d < shape.size(); ++d) {
    rule.factors.push_back({static_cast<char>('a' + d), FactorKind::kPass, shape[d]});
    rule.results[0].push_back({static_cast<int8_t>(d)});
  }
  return rule;
}

RandomKey random_key(const Attrs& attrs) {
  return {static_cast<uint64_t>(attrs.integer("seed")), static_cast<uint32_t>(attrs.integer("stream")), 0};
}

}  // namespace espalier::ops
