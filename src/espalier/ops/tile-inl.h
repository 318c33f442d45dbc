// Walks a tile in vectors. Included once an instruction set (no #pragma once), by sources that use Highway's foreach_target.h.
#if defined(ESPALIER_OPS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESPALIER_OPS_TILE_INL_H_
#undef ESPALIER_OPS_TILE_INL_H_
#else
#define ESPALIER_OPS_TILE_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace espalier::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using TileTag = hn::ScalableTag<float>;

// Calls body(tag, inputs, outputs) for every vector of n elements; the pointers stand at the vector's first element. The rest that fills no
// vector goes through a buffer, so that every element sees the same instructions wherever its tile begins: sharded equals unsharded.
template <int kIn, int kOut, class Body>
HWY_INLINE void map_tile(const float* const* in, float* const* out, int n, const Body& body) {
  const TileTag d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const float* from[kIn > 0 ? kIn : 1];
  float* to[kOut];
  int i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int k = 0; k < kIn; ++k) from[k] = in[k] + i;
    for (int k = 0; k < kOut; ++k) to[k] = out[k] + i;
    body(d, from, to);
  }
  const int rest = n - i;
  if (rest <= 0) return;
  constexpr size_t kLanes = hn::MaxLanes(TileTag());
  HWY_ALIGN float buffer[(kIn + kOut) * kLanes] = {};
  const size_t bytes = static_cast<size_t>(rest) * sizeof(float);
  for (int k = 0; k < kIn; ++k)
    from[k] = static_cast<const float*>(std::memcpy(buffer + static_cast<size_t>(k) * kLanes, in[k] + i, bytes));
  for (int k = 0; k < kOut; ++k) to[k] = buffer + static_cast<size_t>(kIn + k) * kLanes;
  body(d, from, to);
  for (int k = 0; k < kOut; ++k) std::memcpy(out[k] + i, to[k], bytes);
}

}  // namespace espalier::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
