#pragma once
// How far a sharded run is from the reference. A difference is relative to the tensor, since float32 rounds relative to the terms of a sum
// and not to its result: an element near zero next to large ones says nothing about the run.
#include <cstdint>
#include <span>

namespace espalier::cli {

struct Difference {
  double relative = 0;  // infinite where one of the two is not finite, or the sizes differ
  int64_t index = 0;    // row-major, of the element that differs most
};

// max |a - b| / max(max |b|, floor): every element counts. For losses and gradients.
Difference largest_difference(std::span<const float> sharded, std::span<const float> reference, double floor = 0);

// ||a - b|| / ||b||. For weights: an optimizer that divides by the root of a second moment turns the rounding of a gradient near zero into
// a visible part of one weight's step, while a wrong weight still shows at a hundredth of the tensor's root mean square.
Difference norm_difference(std::span<const float> sharded, std::span<const float> reference);

double largest_magnitude(std::span<const float> values);

}  // namespace espalier::cli
