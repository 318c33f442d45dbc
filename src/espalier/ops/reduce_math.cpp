#include "espalier/ops/reduce_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "espalier/ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "espalier/ops/reduce_math.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "espalier/ops/math-inl.h"
#include "espalier/ops/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace espalier::ops::HWY_NAMESPACE {
namespace {

using DoubleTag = hn::ScalableTag<double>;
using HalfTag = hn::Rebind<float, DoubleTag>;  // as many floats as a vector has doubles

double sum_run(const float* x, int64_t n) {
  const DoubleTag d;
  const HalfTag h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a;  // two chains, so that the next addition need not wait for the last
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, hn::PromoteTo(d, hn::LoadU(h, x + i)));
    b = hn::Add(b, hn::PromoteTo(d, hn::LoadU(h, x + i + lanes)));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, hn::PromoteTo(d, hn::LoadU(h, x + i)));
  if (i < n) {
    const auto rest = hn::PromoteTo(d, load_first(h, x + i, n - i));
    b = hn::Add(b, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), rest));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

void sum_row(const float* x, double* sums, int64_t n) {
  const DoubleTag d;
  const HalfTag h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::PromoteTo(d, hn::LoadU(h, x + i))), d, sums + i);
  for (; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

// Four rows at a time, so that the sums are read and written a quarter as often; added in the order of the rows all the same.
void sum_rows(const float* x, int64_t stride, int64_t rows, double* sums, int64_t n) {
  const DoubleTag d;
  const HalfTag h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4, x += 4 * stride) {
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      auto sum = hn::LoadU(d, sums + i);
      sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(h, x + i)));
      sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(h, x + stride + i)));
      sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(h, x + 2 * stride + i)));
      sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(h, x + 3 * stride + i)));
      hn::StoreU(sum, d, sums + i);
    }
    for (; i < n; ++i)
      for (int64_t r = 0; r < 4; ++r) sums[i] += static_cast<double>(x[r * stride + i]);
  }
  for (; row < rows; ++row, x += stride) sum_row(x, sums, n);
}

// y where it is larger or NaN, else x; so a NaN in x stays.
template <class V>
HWY_INLINE V larger(V x, V y) {
  return hn::IfThenElse(hn::Or(hn::Gt(y, x), hn::IsNaN(y)), y, x);
}

float larger_of(float x, float y) { return y > x || std::isnan(y) ? y : x; }

float max_run(const float* x, float largest, int64_t n) {
  const TileTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto top = hn::Set(d, largest);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) top = larger(top, hn::LoadU(d, x + i));
  if (i < n) top = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n - i)), larger(top, load_first(d, x + i, n - i)), top);
  if (!hn::AllFalse(d, hn::IsNaN(top))) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

void max_row(const float* x, float* largest, int64_t n) {
  const TileTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(larger(hn::LoadU(d, largest + i), hn::LoadU(d, x + i)), d, largest + i);
  for (; i < n; ++i) largest[i] = larger_of(largest[i], x[i]);
}

// exp(x - shift) of up to kBlock elements, so that sums can be taken from the first-level cache.
constexpr int64_t kBlock = 1024;

struct ShiftedExp {
  template <class D>
  HWY_INLINE void operator()(D d, const float* const* from, float* const* to) const {
    hn::StoreU(exp(d, hn::Sub(hn::LoadU(d, from[0]), hn::LoadU(d, from[1]))), d, to[0]);
  }
};

struct ShiftedExpBy {
  float shift;
  template <class D>
  HWY_INLINE void operator()(D d, const float* const* from, float* const* to) const {
    hn::StoreU(exp(d, hn::Sub(hn::LoadU(d, from[0]), hn::Set(d, shift))), d, to[0]);
  }
};

void shifted_exp(const float* x, float shift, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i += kBlock) {
    const float* in = x + i;
    float* to = out + i;
    map_tile<1, 1>(&in, &to, static_cast<int>(std::min(kBlock, n - i)), ShiftedExpBy{shift});
  }
}

double exp_run(const float* x, float shift, float* out, int64_t n) {
  HWY_ALIGN float block[kBlock];
  double sum = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = std::min(kBlock, n - i);
    float* to = out != nullptr ? out + i : block;
    shifted_exp(x + i, shift, to, size);
    sum += sum_run(to, size);
  }
  return sum;
}

void exp_row(const float* x, const float* shift, float* out, double* sums, int64_t n) {
  HWY_ALIGN float block[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = std::min(kBlock, n - i);
    const float* in[2] = {x + i, shift + i};
    float* to = out != nullptr ? out + i : block;
    map_tile<2, 1>(in, &to, static_cast<int>(size), ShiftedExp());
    sum_row(to, sums + i, size);
  }
}

struct Scale {
  float factor;
  template <class D>
  HWY_INLINE void operator()(D d, const float* const* from, float* const* to) const {
    hn::StoreU(hn::Mul(hn::LoadU(d, from[0]), hn::Set(d, factor)), d, to[0]);
  }
};

void scale_run(float* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; i += kBlock) {
    float* to = x + i;
    const float* in = to;
    map_tile<1, 1>(&in, &to, static_cast<int>(std::min(kBlock, n - i)), Scale{factor});
  }
}

}  // namespace
}  // namespace espalier::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace espalier::ops {

HWY_EXPORT(sum_run);
HWY_EXPORT(sum_row);
HWY_EXPORT(sum_rows);
HWY_EXPORT(max_run);
HWY_EXPORT(max_row);
HWY_EXPORT(exp_run);
HWY_EXPORT(exp_row);
HWY_EXPORT(shifted_exp);
HWY_EXPORT(scale_run);

double sum_run(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_run)(x, n); }
void sum_row(const float* x, double* sums, int64_t n) { HWY_DYNAMIC_DISPATCH(sum_row)(x, sums, n); }
void sum_rows(const float* x, int64_t stride, int64_t rows, double* sums, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sum_rows)(x, stride, rows, sums, n);
}
float max_run(const float* x, float largest, int64_t n) { return HWY_DYNAMIC_DISPATCH(max_run)(x, largest, n); }
void max_row(const float* x, float* largest, int64_t n) { HWY_DYNAMIC_DISPATCH(max_row)(x, largest, n); }
double exp_run(const float* x, float shift, float* out, int64_t n) { return HWY_DYNAMIC_DISPATCH(exp_run)(x, shift, out, n); }
void exp_row(const float* x, const float* shift, float* out, double* sums, int64_t n) {
  HWY_DYNAMIC_DISPATCH(exp_row)(x, shift, out, sums, n);
}
void shifted_exp(const float* x, float shift, float* out, int64_t n) { HWY_DYNAMIC_DISPATCH(shifted_exp)(x, shift, out, n); }
void scale_run(float* x, float factor, int64_t n) { HWY_DYNAMIC_DISPATCH(scale_run)(x, factor, n); }

}  // namespace espalier::ops
#endif
