#pragma once
// A rectangular part of a row-major array, as the fewest contiguous runs of elements.
#include <cstdint>

#include "espalier/base/dims.h"

namespace espalier {

// Calls run(at_whole, at_part, count) for each run of the part at `offset` of `shape` in an array of shape `whole`: `count` elements that
// begin at element `at_whole` of the array and at element `at_part` of the part. Dims that the part covers whole at the end are merged,
// so a part made of entire rows is one run, as is rank 0. An empty part has no runs.
// Example: columns 2 and 3 of a (3, 8) array are the runs (2, 0, 2), (10, 2, 2), (18, 4, 2).
template <class Run>
void for_each_run(const Dims& whole, const Dims& offset, const Dims& shape, Run run) {
  int rank = whole.rank(), last = rank - 1;  // dims behind `last` are merged into it
  ESPALIER_ASSERT(offset.rank() == rank && shape.rank() == rank);
  for (int d = 0; d < rank; ++d) {
    ESPALIER_ASSERT(offset[d] >= 0 && shape[d] >= 0 && offset[d] <= whole[d] - shape[d]);
    if (shape[d] == 0) return;
  }
  while (last > 0 && shape[last] == whole[last]) --last;
  Dims strides = row_major_strides(whole);
  int64_t count = rank == 0 ? 1 : shape[last] * strides[last], at_whole = 0, at_part = 0;
  for (int d = 0; d < rank; ++d) at_whole += offset[d] * strides[d];
  Dims at(rank, 0);
  for (;;) {
    run(at_whole, at_part, count);
    at_part += count;
    int d = last - 1;
    for (; d >= 0; --d) {
      at_whole += strides[d];
      if (++at[d] < shape[d]) break;
      at_whole -= shape[d] * strides[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace espalier
