#pragma once
// How far a sharded run is from the reference. Differences are relative to the tensor, since float32 rounds relative to the terms of a sum
// and not to its result: an element near zero next to large ones says nothing about the run.
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/nn/optimizers.h"

namespace espalier::cli {

struct Difference {
  double relative = 0;  // infinite where one of the two is not finite, or the sizes differ
  int64_t index = 0;    // row-major, of the element that differs most
};

// max over i of |a - b| / max(max |b|, floor). For losses and gradients.
Difference largest_difference(std::span<const float> sharded, std::span<const float> reference, double floor = 0);

// max over i of |a - b| / (max(max |b|, floor) + slack[i]). For weights; of a piece of a tensor with the tensor's largest as floor.
Difference weight_difference(std::span<const float> sharded, std::span<const float> reference, std::span<const float> slack,
                             double floor = 0);

double largest_magnitude(std::span<const float> values);

// A weight may differ by what an optimizer makes of gradients that differ by the tolerance: adds to slack[i] the change of one update for a
// change of `scale` in gradient[i]. SGD passes it on times the learning rate. Adam divides by the gradient's own size plus epsilon, so that
// the rounding of a gradient near zero shows in that weight, by at most two learning rates.
void add_slack(const nn::Optimizer& optimizer, std::span<const float> gradient, double scale, double tolerance, std::vector<float>* slack);

}  // namespace espalier::cli
