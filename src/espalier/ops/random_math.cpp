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

// Philox on kLanes blocks at once, in plain loops of fixed length, which compilers turn into vector code of the instruction set at hand
// (base/philox.h has the same for one block).
constexpr int kLanes = 16;

void sixteen_blocks(RandomKey key, uint64_t first, uint32_t* words) {
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(index);
    c1[i] = static_cast<uint32_t>(index >> 32);
    c2[i] = key.step;
    c3[i] = key.stream;
  }
  auto k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[i], p1 = uint64_t{0xCD9E8D57} * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(p1);
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kLanes; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

// `words` has room for a multiple of 4 kLanes words.
void blocks(RandomKey key, uint64_t first, int count, uint32_t* words) {
  for (int b = 0; b < count; b += kLanes) sixteen_blocks(key, first + static_cast<uint64_t>(b), words + 4 * b);
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
  uint32_t drawn[kRandomBlock + 64 + 4];  // blocks come sixteen at a time; the first may begin up to three words early
  const auto skipped = static_cast<int>(index % 4);
  HWY_DYNAMIC_DISPATCH(blocks)(key, index / 4, (skipped + n + 3) / 4, drawn);
  std::memcpy(words, drawn + skipped, static_cast<size_t>(n) * sizeof(uint32_t));
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
