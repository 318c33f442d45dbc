#include "espalier/ops/random_math.h"

#include <cmath>
#include <cstring>

#include "espalier/base/philox.h"
#include "espalier/ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "espalier/ops/random_math.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "espalier/ops/math-inl.h"
#include "espalier/ops/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace espalier::ops::HWY_NAMESPACE {
namespace {

// The full product of the low halves of 64-bit lanes with a 32-bit factor.
template <class D, class V>
HWY_INLINE V multiply(D d, V x, uint32_t factor) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::Mul(hn::And(x, hn::Set(d, uint64_t{0xFFFFFFFF})), hn::Set(d, uint64_t{factor}));
  } else {
    const hn::Repartition<uint32_t, D> halves;
    return hn::MulEven(hn::BitCast(halves, x), hn::Set(halves, factor));
  }
}

// Philox with one block a 64-bit lane (base/philox.h has the same for one block). Each of a block's words is the low half of a lane; what
// stands above it is of no meaning.
template <class D, class V>
HWY_INLINE void start(D d, RandomKey key, uint64_t first, V& c0, V& c1, V& c2, V& c3) {
  c0 = hn::Iota(d, first);
  c1 = hn::ShiftRight<32>(c0);
  c2 = hn::Set(d, uint64_t{key.step});
  c3 = hn::Set(d, uint64_t{key.stream});
}

template <class D, class V>
HWY_INLINE void go_round(D d, uint32_t k0, uint32_t k1, V& c0, V& c1, V& c2, V& c3) {
  const V p0 = multiply(d, c0, 0xD2511F53u), p1 = multiply(d, c2, 0xCD9E8D57u);
  c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, uint64_t{k0}));
  c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, uint64_t{k1}));
  c1 = p1;
  c3 = p0;
}

template <class D, class V>
HWY_INLINE void store(D d, V c0, V c1, V c2, V c3, uint64_t* words) {
  const auto low = hn::Set(d, uint64_t{0xFFFFFFFF});
  hn::StoreInterleaved2(hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1)), hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3)), d, words);
}

// Two words in each of `words`. Three vectors of blocks at a time, since one waits for its own products; there is room for the last three.
void blocks(RandomKey key, uint64_t first, int count, uint64_t* words) {
  const hn::CappedTag<uint64_t, kRandomLanes> d;
  const uint64_t lanes = hn::Lanes(d);
  for (const uint64_t end = first + static_cast<uint64_t>(count); first < end; first += 3 * lanes, words += 6 * lanes) {
    auto x0 = hn::Zero(d), x1 = x0, x2 = x0, x3 = x0, y0 = x0, y1 = x0, y2 = x0, y3 = x0, z0 = x0, z1 = x0, z2 = x0, z3 = x0;
    start(d, key, first, x0, x1, x2, x3);
    start(d, key, first + lanes, y0, y1, y2, y3);
    start(d, key, first + 2 * lanes, z0, z1, z2, z3);
    auto k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      go_round(d, k0, k1, x0, x1, x2, x3);
      go_round(d, k0, k1, y0, y1, y2, y3);
      go_round(d, k0, k1, z0, z1, z2, z3);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    store(d, x0, x1, x2, x3, words);
    store(d, y0, y1, y2, y3, words + 2 * lanes);
    store(d, z0, z1, z2, z3, words + 4 * lanes);
  }
}

template <class D, class V>
HWY_INLINE V erf_inverse(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V w = hn::Neg(log(d, hn::Mul(hn::Sub(one, x), hn::Add(one, x))));
  constexpr float kCentre[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                               -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
  constexpr float kTail[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                             -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  const V centre_at = hn::Sub(w, hn::Set(d, 2.5f)), tail_at = hn::Sub(hn::Sqrt(w), hn::Set(d, 3.0f));
  V centre = hn::Set(d, kCentre[0]), tail = hn::Set(d, kTail[0]);
  for (int i = 1; i < 9; ++i) {
    centre = hn::MulAdd(centre, centre_at, hn::Set(d, kCentre[i]));
    tail = hn::MulAdd(tail, tail_at, hn::Set(d, kTail[i]));
  }
  return hn::Mul(hn::IfThenElse(hn::Lt(w, hn::Set(d, 5.0f)), centre, tail), x);
}

struct Normal {
  float mean, deviation, range, bound;  // x is uniform in (-range, range)
  template <class D>
  HWY_INLINE void operator()(D d, const float* const* from, float* const* to) const {
    auto z = hn::Mul(erf_inverse(d, hn::Mul(hn::LoadU(d, from[0]), hn::Set(d, range))), hn::Set(d, 1.41421356f));
    z = hn::Max(hn::Set(d, -bound), hn::Min(z, hn::Set(d, bound)));
    hn::StoreU(hn::MulAdd(z, hn::Set(d, deviation), hn::Set(d, mean)), d, to[0]);
  }
};

void normal(const float* uniform, float mean, float deviation, float range, float bound, float* out, int n) {
  map_tile<1, 1>(&uniform, &out, n, Normal{mean, deviation, range, bound});
}

}  // namespace
}  // namespace espalier::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace espalier::ops {

HWY_EXPORT(blocks);
HWY_EXPORT(normal);

void random_words(RandomKey key, uint64_t index, int n, uint32_t* words) {
  uint64_t drawn[(kRandomBlock + 4) / 2 + 2 * 3 * kRandomLanes];  // up to three words before, and the rest of three vectors behind
  const auto skipped = static_cast<int>(index % 4);
  HWY_DYNAMIC_DISPATCH(blocks)(key, index / 4, (skipped + n + 3) / 4, drawn);
  std::memcpy(words, reinterpret_cast<const uint32_t*>(drawn) + skipped, static_cast<size_t>(n) * sizeof(uint32_t));
}

void normal_of(const uint32_t* words, float mean, float deviation, double bound, float* out, int n) {
  float uniform[kRandomBlock];
  // Odd multiples of 2^-24 in (-1, 1): symmetric, and never an end, where the inverse is infinite.
  for (int i = 0; i < n; ++i) uniform[i] = static_cast<float>(static_cast<int32_t>(words[i] >> 8) * 2 + 1 - (1 << 24)) * 0x1.0p-24f;
  const bool bounded = bound > 0;
  HWY_DYNAMIC_DISPATCH(normal)
  (uniform, mean, deviation, bounded ? static_cast<float>(std::erf(bound / std::sqrt(2.0))) : 1.0f,
   bounded ? static_cast<float>(bound) : 8.0f, out, n);
}

}  // namespace espalier::ops
#endif
