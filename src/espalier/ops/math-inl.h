// Vector math for the tile functions: Highway's, with the ends of the range put right (its functions promise nothing for NaN, infinities
// and, in log, numbers below 0). Included once an instruction set, as tile-inl.h.
#if defined(ESPALIER_OPS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESPALIER_OPS_MATH_INL_H_
#undef ESPALIER_OPS_MATH_INL_H_
#else
#define ESPALIER_OPS_MATH_INL_H_
#endif

#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace espalier::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y, but x where x is NaN. (Ne(x, x) would not do: on x86 it is an ordered comparison.)
template <class V>
HWY_INLINE V keep_nan(V x, V y) {
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D, class V>
HWY_INLINE V sign(D d, V x) {
  const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  const V y = hn::Sub(hn::IfThenElseZero(hn::Gt(x, zero), one), hn::IfThenElseZero(hn::Lt(x, zero), one));
  return keep_nan(x, y);
}

// Highway's exp and expm1 hold up to 104; the largest float is exp(88.72).
template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  return keep_nan(x, hn::Exp(d, hn::Min(x, hn::Set(d, 104.0f))));
}

template <class D, class V>
HWY_INLINE V expm1(D d, V x) {
  return keep_nan(x, hn::Expm1(d, hn::Min(x, hn::Set(d, 104.0f))));
}

// log of 0 is -inf, of inf inf, below 0 NaN.
template <class D, class V>
HWY_INLINE V log_ends(D d, V x, V y) {
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity()), nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  V result = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), result);
  result = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), nan, result);
  return keep_nan(x, result);
}

template <class D, class V>
HWY_INLINE V log(D d, V x) {
  return log_ends(d, x, hn::Log(d, x));
}

template <class D, class V>
HWY_INLINE V log1p(D d, V x) {
  return log_ends(d, hn::Add(x, hn::Set(d, 1.0f)), hn::Log1p(d, x));
}

template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const V limit = hn::Set(d, 20.0f);  // tanh is 1 to the last bit from 9.1 on
  return keep_nan(x, hn::Tanh(d, hn::Max(hn::Neg(limit), hn::Min(x, limit))));
}

// Two minimax polynomials after N. Juffa's erff: x + x p(x^2) below 475/512, 1 - exp(-q(|x|)) above.
template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  const auto c = [d](float value) HWY_ATTR { return hn::Set(d, value); };
  const V t = hn::Min(hn::Abs(x), c(4.0f)), s = hn::Mul(t, t);  // erf(4) is 1 in float32
  V r = hn::MulAdd(c(-1.72853470e-5f), t, c(3.83197126e-4f));
  const V u = hn::MulAdd(c(-3.88396438e-3f), t, c(2.42546219e-2f));
  r = hn::MulAdd(r, s, u);
  r = hn::MulAdd(r, t, c(-1.06777877e-1f));
  r = hn::MulAdd(r, t, c(-6.34846687e-1f));
  r = hn::MulAdd(r, t, c(-1.28717512e-1f));
  r = hn::MulAdd(r, t, hn::Neg(t));
  const V outer = hn::CopySign(hn::Sub(c(1.0f), hn::Exp(d, r)), x);
  V p = c(-5.96761703e-4f);
  p = hn::MulAdd(p, s, c(4.99119423e-3f));
  p = hn::MulAdd(p, s, c(-2.67681349e-2f));
  p = hn::MulAdd(p, s, c(1.12819925e-1f));
  p = hn::MulAdd(p, s, c(-3.76125336e-1f));
  p = hn::MulAdd(p, s, c(1.28379166e-1f));
  const V inner = hn::MulAdd(p, x, x);
  return keep_nan(x, hn::IfThenElse(hn::Gt(t, c(0.927734375f)), outer, inner));
}

}  // namespace espalier::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
