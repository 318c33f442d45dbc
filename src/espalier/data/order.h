#pragma once
// The order in which an epoch sees its samples: a function of seed and epoch, never of the mesh, so a run can be resumed anywhere.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace espalier {

enum class Shuffle { kNo, kYes };

// A permutation of 0 ... n-1; with kNo the numbers in order. Every permutation is equally likely (Fisher-Yates, unbiased draws).
// Takes 8 bytes a sample: an Error when that is more than this machine has.
std::vector<int64_t> epoch_order(int64_t n, uint64_t seed, int64_t epoch, Shuffle shuffle);

}  // namespace espalier
