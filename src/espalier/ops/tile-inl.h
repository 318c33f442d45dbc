// Walks a tile in vectors. Included once an instruction set (no #pragma once), by sources that use Highway's foreach_target.h.
#if defined(ESPALIER_OPS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESPALIER_OPS_TILE_INL_H_
#undef ESPALIER_OPS_TILE_INL_H_
#else
#define ESPALIER_OPS_TILE_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace espalier::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using TileTag = hn::ScalableTag<float>;

// The first n elements of a vector that may end outside the buffer; what the other lanes hold does not matter.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, const hn::TFromD<D>* from, int64_t n) {
  if constexpr (HWY_MEM_OPS_MIGHT_FAULT == 0) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, from);
  } else {
    HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(D())] = {};
    for (int64_t i = 0; i < n; ++i) buffer[i] = from[i];
    return hn::Load(d, buffer);
  }
}

// Calls body(tag, inputs, outputs) for every vector of n elements; the pointers stand at the vector's first element. The rest that fills no
// vector goes through a buffer, so that every element sees the same instructions wherever its tile begins: sharded equals unsharded.
template <size_t kIn, size_t kOut, class Body>
HWY_INLINE void map_tile(const float* const* in, float* const* out, int n, const Body& body) {
  const TileTag d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const float* from[kIn > 0 ? kIn : 1];
  float* to[kOut];
  int i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (size_t k = 0; k < kIn; ++k) from[k] = in[k] + i;
    for (size_t k = 0; k < kOut; ++k) to[k] = out[k] + i;
    body(d, from, to);
  }
  const int rest = n - i;
  if (rest <= 0) return;
  constexpr size_t kLanes = hn::MaxLanes(TileTag());
  HWY_ALIGN float buffer[(kIn + kOut) * kLanes];
  for (size_t k = 0; k < kIn; ++k) {
    hn::Store(load_first(d, in[k] + i, rest), d, buffer + k * kLanes);
    from[k] = buffer + k * kLanes;
  }
  for (size_t k = 0; k < kOut; ++k) to[k] = buffer + (kIn + k) * kLanes;
  body(d, from, to);
  for (size_t k = 0; k < kOut; ++k) hn::SafeCopyN(static_cast<size_t>(rest), d, to[k], out[k] + i);
}

}  // namespace espalier::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
