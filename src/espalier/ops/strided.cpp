#include "espalier/ops/strided.h"

#include <algorithm>
#include <cstring>

#include "espalier/ops/parallel.h"

namespace espalier::ops {
namespace {

constexpr int64_t kSide = 32;  // a block of 32 x 32 elements: both sides' cache lines stay until they are used up

// The two inner dims (rows x columns) where the source's columns do not lie together: block by block.
void copy_blocks(int64_t rows, int64_t columns, const uint32_t* from, int64_t from_row, int64_t from_column, uint32_t* to, int64_t to_row,
                 int64_t to_column) {
  for (int64_t r0 = 0; r0 < rows; r0 += kSide)
    for (int64_t c0 = 0; c0 < columns; c0 += kSide)
      for (int64_t r = r0; r < std::min(rows, r0 + kSide); ++r)
        for (int64_t c = c0; c < std::min(columns, c0 + kSide); ++c) to[r * to_row + c * to_column] = from[r * from_row + c * from_column];
}

void copy_part(const StridedCopy& copy, const uint32_t* from, uint32_t* to, int dim) {
  const int left = copy.shape.rank() - dim;
  const int64_t size = copy.shape[dim], from_stride = copy.from_strides[dim], to_stride = copy.to_strides[dim];
  if (left == 1) {
    if (from_stride == 1 && to_stride == 1)
      std::memcpy(to, from, static_cast<size_t>(size) * sizeof(uint32_t));
    else
      copy_blocks(1, size, from, 0, from_stride, to, 0, to_stride);
  } else if (left == 2 && (copy.from_strides[dim + 1] != 1 || copy.to_strides[dim + 1] != 1)) {
    copy_blocks(size, copy.shape[dim + 1], from, from_stride, copy.from_strides[dim + 1], to, to_stride, copy.to_strides[dim + 1]);
  } else {
    for (int64_t i = 0; i < size; ++i) copy_part(copy, from + i * from_stride, to + i * to_stride, dim + 1);
  }
}

}  // namespace

StridedCopy simplified(const StridedCopy& copy) {
  StridedCopy merged{.shape = {}, .from_strides = {}, .to_strides = {}, .from_start = copy.from_start, .to_start = copy.to_start};
  for (int d = 0; d < copy.shape.rank(); ++d) {
    if (copy.shape[d] == 1) continue;
    const int last = merged.shape.rank() - 1;
    if (last >= 0 && merged.from_strides[last] == copy.from_strides[d] * copy.shape[d] &&
        merged.to_strides[last] == copy.to_strides[d] * copy.shape[d]) {
      merged.shape[last] *= copy.shape[d];
      merged.from_strides[last] = copy.from_strides[d];
      merged.to_strides[last] = copy.to_strides[d];
    } else {
      merged.shape.push_back(copy.shape[d]);
      merged.from_strides.push_back(copy.from_strides[d]);
      merged.to_strides.push_back(copy.to_strides[d]);
    }
  }
  if (merged.shape.empty()) merged.shape = merged.from_strides = merged.to_strides = {1};
  return merged;
}

void run(const StridedCopy& copy, const uint32_t* from, uint32_t* to, int threads) {
  const int64_t elements = copy.shape.volume();
  if (elements == 0) return;
  parallel_for(threads, copy.shape[0], elements, [&](int64_t begin, int64_t end) {
    StridedCopy part = copy;
    part.shape[0] = end - begin;
    copy_part(part, from + copy.from_start + begin * copy.from_strides[0], to + copy.to_start + begin * copy.to_strides[0], 0);
  });
}

}  // namespace espalier::ops
