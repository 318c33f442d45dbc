#pragma once
// Layers of several inputs: Add, Subtract, Multiply, Average, Maximum, Minimum (broadcasting dims of size 1 and missing leading dims of a
// sample), Concatenate.
#include "espalier/nn/layer.h"

namespace espalier::nn {

struct MergeConfig {
  std::string name = {};
};

// Errors, at the call: shapes that do not broadcast; not exactly two inputs of Subtract.
struct Add : Layer {
  explicit Add(MergeConfig config = {});
};
struct Subtract : Layer {
  explicit Subtract(MergeConfig config = {});
};
struct Multiply : Layer {
  explicit Multiply(MergeConfig config = {});
};
struct Average : Layer {
  explicit Average(MergeConfig config = {});
};
struct Maximum : Layer {
  explicit Maximum(MergeConfig config = {});
};
struct Minimum : Layer {
  explicit Minimum(MergeConfig config = {});
};

struct ConcatenateConfig {
  int64_t axis = -1;
  std::string name = {};
};
struct Concatenate : Layer {  // Errors, at the call: shapes that differ elsewhere than in the axis
  explicit Concatenate(ConcatenateConfig config = {});
};

}  // namespace espalier::nn
