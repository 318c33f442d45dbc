#pragma once
// Placing buffers with known lifetimes: offline dynamic storage allocation. Best fit on decreasing size, then a few repairs that place
// first what stuck out. Exact lower bound: the most bytes live at one instant. The problem is NP-hard (Garey and Johnson, SR2).
#include <cstdint>
#include <vector>

namespace espalier {

// `bytes` are live from instant `birth` to instant `death`, both included.
struct Buffer {
  int64_t bytes = 0;
  int32_t birth = 0, death = 0;
  int64_t offset = -1;  // what place_buffers finds
};

// Gives every buffer an offset of `base` or more; live bytes of no two buffers overlap. Sizes and `base` are multiples of the alignment
// that offsets are to have. Returns the end of the last one (`base` when there is none).
int64_t place_buffers(std::vector<Buffer>& buffers, int64_t base);

// The most bytes live at one instant (the first such), and which.
struct LiveBytes {
  int64_t bytes = 0;
  int32_t instant = 0;
};
LiveBytes most_live(const std::vector<Buffer>& buffers);

}  // namespace espalier
