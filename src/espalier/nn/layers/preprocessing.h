#pragma once
// Rescaling and Normalization: what a model does to raw samples before its first trained layer.
#include <optional>
#include <vector>

#include "espalier/nn/layer.h"

namespace espalier::nn {

struct RescalingConfig {
  double offset = 0;
  std::string name = {};
};
struct Rescaling : Layer {  // x * scale + offset
  explicit Rescaling(double scale, RescalingConfig config = {});
};

// Values of a mean or variance: one number, or one for each index of the kept axes in row-major order.
struct NormalizationConfig {
  std::optional<std::vector<int64_t>> axis = std::vector<int64_t>{-1};  // axes with statistics of their own; none: one mean for all
  std::optional<std::vector<double>> mean = {}, variance = {};          // both or neither
  bool invert = false;
  std::string name = {};
};
// (x - mean) / max(sqrt(variance), 1e-7). Without given statistics they are the non-trainable weights mean, variance and count (i32, ()),
// which a weights file fills. Errors: one of mean and variance without the other; a count that does not fit the axes; a bad axis.
struct Normalization : Layer {
  explicit Normalization(NormalizationConfig config = {});
};

}  // namespace espalier::nn
