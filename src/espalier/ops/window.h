#pragma once
// Slices and their opposite, padding: element i of the small tensor is element begin + i step of the large one, dim by dim.
#include <vector>

#include "espalier/ir/op_def.h"
#include "espalier/ops/strided.h"

namespace espalier::ops {

struct Window {
  std::vector<int64_t> begin, step;  // one entry a dim
};

// {begin, step} of a slice, {before, step} of a pad; a missing step is 1 everywhere. Errors: another number of entries than `rank`, a
// negative begin, a step below 1.
Window read_window(const Attrs& attrs, const char* begin, int rank, const std::string& where);

// Dims where both shapes are one and nothing is skipped pass; the others are whole on both sides.
FactorRule window_rule(const Window& window, const Dims& from, const Dims& to);

// Between the small tensor and its window in the large one.
StridedCopy window_copy(const Window& window, const Dims& small, const Dims& large, bool from_large);

}  // namespace espalier::ops
