#pragma once
// Copies between row-major tensors that differ in order, gaps or steps: transpose, slice, pad and concat are one loop.
#include <cstdint>

#include "espalier/ir/kernel.h"

namespace espalier::ops {

// One box: `shape` elements of 32 bits from `from` to `to`, each with its own strides (in elements) and start.
struct StridedCopy {
  Dims shape, from_strides, to_strides;
  int64_t from_start = 0, to_start = 0;
};

// Neighbouring dims that both sides walk in one stride are merged, so that whole runs are copied at once where they lie together.
StridedCopy simplified(const StridedCopy& copy);
void run(const StridedCopy& copy, const uint32_t* from, uint32_t* to, int threads);

}  // namespace espalier::ops
