#pragma once
// Flatten and Reshape: the same numbers of a sample under another shape.
#include "espalier/nn/layer.h"

namespace espalier::nn {

enum class DataFormat { kChannelsLast, kChannelsFirst };

struct FlattenConfig {
  DataFormat data_format = DataFormat::kChannelsLast;  // channels_first: the channels (dim 1) are moved to the end first, as in Keras
  std::string name = {};
};
struct Flatten : Layer {
  explicit Flatten(FlattenConfig config = {});
};

struct ReshapeConfig {
  std::string name = {};
};
// One dim may be -1. Errors: two of them, a dim of 0 or below -1; at the call, another number of elements.
struct Reshape : Layer {
  explicit Reshape(const Dims& target_shape, ReshapeConfig config = {});
};

}  // namespace espalier::nn
