#pragma once
// Elementwise ops on integers. Tiles are floats by type and 32 bits by content: the loops move bits, and these functions read them as
// integers.
#include <bit>

#include "espalier/ops/tile_program.h"

namespace espalier::ops {

inline int32_t as_integer(float bits) { return std::bit_cast<int32_t>(bits); }
inline float as_bits(int32_t value) { return std::bit_cast<float>(value); }

// The kernel of an elementwise op that is not fused, since its operands or results are not f32.
Kernel integer_kernel(const LocalOp& op, TileFunction run);

}  // namespace espalier::ops
