#include "espalier/ops/elementwise.h"

namespace espalier::ops {

ValueId number(Builder& builder, double value) { return builder.op("constant", {}, {{"value", value}}); }

ValueId reshaped(Builder& builder, ValueId x, Dims shape) {
  return builder.shape(x) == shape ? x : builder.op("reshape", {x}, {{"shape", shape.vector()}});
}

ValueId unbroadcast(Builder& builder, ValueId gradient, Dims shape) {
  const Dims whole = builder.shape(gradient);
  std::vector<int64_t> dims;
  for (int d = 0; d < whole.rank(); ++d) {
    int own = d - (whole.rank() - shape.rank());
    if (own < 0 || (shape[own] == 1 && whole[d] != 1)) dims.push_back(d);
  }
  if (!dims.empty()) gradient = builder.op("reduce_sum", {gradient}, {{"dims", dims}, {"keep", int64_t{0}}});
  return reshaped(builder, gradient, shape);
}

std::vector<OpSample> unary_samples(double low, double high) {
  std::vector<OpSample> samples;
  for (const Dims& shape : std::vector<Dims>{{7, 13}, {}, {1}, {0, 3}, {2, 3, 5}}) samples.push_back({{shape}, {}, low, high});
  return samples;
}

std::vector<OpSample> binary_samples(double low, double high) {
  const std::vector<std::vector<Dims>> shapes = {{{7, 13}, {7, 13}}, {{7, 13}, {13}},        {{7, 1}, {7, 13}},
                                                 {{}, {6}},          {{2, 3, 5}, {2, 1, 5}}, {{4, 1}, {1, 6}},
                                                 {{1}, {1}},         {{0, 3}, {3}},          {{3, 1, 4}, {2, 1}}};
  std::vector<OpSample> samples;
  for (const auto& operands : shapes) samples.push_back({operands, {}, low, high});
  return samples;
}

}  // namespace espalier::ops
