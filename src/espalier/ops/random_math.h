#pragma once
// Random numbers by the global index of their element: word (index mod 4) of Philox block (index / 4). On Highway.
#include <cstdint>

#include "espalier/ir/kernel.h"

namespace espalier::ops {

struct RandomKey {
  uint64_t seed = 0;
  uint32_t stream = 0, step = 0;
};

inline constexpr int kRandomBlock = 1024;  // elements drawn at once: 4 KiB
inline constexpr int kRandomLanes = 8;     // blocks that one vector holds, at most

// The words of elements [index, index + n), n at most kRandomBlock.
void random_words(RandomKey key, uint64_t index, int n, uint32_t* words);

// mean + deviation z, z standard normal by the inverse error function (Giles, "Approximating the erfinv function", 2010), which is within
// 1e-6 relative; with `bound` > 0 redrawn until |z| <= bound, by scaling the uniform number to that range.
void normal_of(const uint32_t* words, float mean, float deviation, double bound, float* out, int n);

// The parts of a local tensor that lie together in the logical one: visit(local offset, global index, size), at most kRandomBlock elements
// each.
template <class Visit>
void visit_global_runs(const LocalTensor& tensor, int64_t begin, int64_t end, const Visit& visit) {
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  const Dims strides = row_major_strides(tensor.logical);
  while (begin < end) {
    int64_t rest = begin, global = 0;
    for (int d = tensor.shape.rank() - 1; d >= 0; --d) {
      global += (tensor.offset[d] + rest % tensor.shape[d]) * strides[d];
      rest /= tensor.shape[d];
    }
    int64_t size = row - begin % row;
    size = size < end - begin ? size : end - begin;
    size = size < kRandomBlock ? size : kRandomBlock;
    visit(begin, static_cast<uint64_t>(global), static_cast<int>(size));
    begin += size;
  }
}

}  // namespace espalier::ops
