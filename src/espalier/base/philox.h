#pragma once
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11): random numbers by counter. A value is a function
// of seed, stream and the *global* index of its element, so it does not depend on the mesh or on the order in which it is drawn.
#include <array>
#include <cstdint>

namespace espalier {

using PhiloxBlock = std::array<uint32_t, 4>;

// Four independent 32-bit words for one 128-bit counter under a 64-bit key.
inline PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key) {
  constexpr uint32_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57, kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{kMul0} * counter[0], p1 = uint64_t{kMul1} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return counter;
}

// The block of the element `index` in `stream` (a variable, a dropout layer, a shuffle) at `step`.
inline PhiloxBlock random_block(uint64_t seed, uint32_t stream, uint32_t step, uint64_t index) {
  return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), step, stream}, seed);
}

// [0, 1), all 24 bits of a float's mantissa used.
inline float to_uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1.0p-24f; }

}  // namespace espalier
