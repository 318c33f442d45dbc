#include "espalier/ops/tile_math.h"

#include "espalier/ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "espalier/ops/tile_math.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "espalier/ops/math-inl.h"
#include "espalier/ops/tile-inl.h"

// One tile function from an expression over x (and y, z), the current vectors of the operands.
#define ESPALIER_TILE(NAME, OPERANDS, EXPRESSION)                                       \
  struct Body_##NAME {                                                                  \
    template <class D>                                                                  \
    HWY_INLINE void operator()(D d, const float* const* from, float* const* to) const { \
      const auto x = hn::LoadU(d, from[0]);                                             \
      const auto y = hn::LoadU(d, from[OPERANDS > 1 ? 1 : 0]);                          \
      const auto z = hn::LoadU(d, from[OPERANDS > 2 ? 2 : 0]);                          \
      (void)y, (void)z;                                                                 \
      hn::StoreU(EXPRESSION, d, to[0]);                                                 \
    }                                                                                   \
  };                                                                                    \
  void tile_##NAME(const Attrs&, const float* const* in, float* const* out, int n) { map_tile<OPERANDS, 1>(in, out, n, Body_##NAME()); }

HWY_BEFORE_NAMESPACE();
namespace espalier::ops::HWY_NAMESPACE {
namespace {

ESPALIER_TILE(add, 2, hn::Add(x, y))
ESPALIER_TILE(subtract, 2, hn::Sub(x, y))
ESPALIER_TILE(multiply, 2, hn::Mul(x, y))
ESPALIER_TILE(divide, 2, hn::Div(x, y))
// A NaN in either operand wins: the comparison is false for it, so it is kept by the second clause or taken by the first.
ESPALIER_TILE(maximum, 2, hn::IfThenElse(hn::Or(hn::Gt(y, x), hn::IsNaN(y)), y, x))
ESPALIER_TILE(minimum, 2, hn::IfThenElse(hn::Or(hn::Lt(y, x), hn::IsNaN(y)), y, x))
ESPALIER_TILE(greater, 2, hn::IfThenElseZero(hn::Gt(x, y), hn::Set(d, 1.0f)))
ESPALIER_TILE(greater_equal, 2, hn::IfThenElseZero(hn::Ge(x, y), hn::Set(d, 1.0f)))
ESPALIER_TILE(equal, 2, hn::IfThenElseZero(hn::Eq(x, y), hn::Set(d, 1.0f)))
ESPALIER_TILE(select, 3, hn::IfThenElse(hn::Eq(x, hn::Zero(d)), z, y))
ESPALIER_TILE(negate, 1, hn::Neg(x))
ESPALIER_TILE(abs, 1, hn::Abs(x))
ESPALIER_TILE(sign, 1, sign(d, x))
ESPALIER_TILE(square, 1, hn::Mul(x, x))
ESPALIER_TILE(sqrt, 1, hn::Sqrt(x))
ESPALIER_TILE(rsqrt, 1, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)))
ESPALIER_TILE(exp, 1, exp(d, x))
ESPALIER_TILE(expm1, 1, expm1(d, x))
ESPALIER_TILE(log, 1, log(d, x))
ESPALIER_TILE(log1p, 1, log1p(d, x))
ESPALIER_TILE(tanh, 1, tanh(d, x))
ESPALIER_TILE(sigmoid, 1, hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), exp(d, hn::Neg(x)))))
ESPALIER_TILE(relu, 1, hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x))
ESPALIER_TILE(erf, 1, erf(d, x))

}  // namespace
}  // namespace espalier::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace espalier::ops {

#define ESPALIER_DISPATCH(NAME)                                                           \
  HWY_EXPORT(tile_##NAME);                                                                \
  void tile::NAME(const Attrs& attrs, const float* const* in, float* const* out, int n) { \
    HWY_DYNAMIC_DISPATCH(tile_##NAME)(attrs, in, out, n);                                 \
  }

ESPALIER_DISPATCH(add)
ESPALIER_DISPATCH(subtract)
ESPALIER_DISPATCH(multiply)
ESPALIER_DISPATCH(divide)
ESPALIER_DISPATCH(maximum)
ESPALIER_DISPATCH(minimum)
ESPALIER_DISPATCH(greater)
ESPALIER_DISPATCH(greater_equal)
ESPALIER_DISPATCH(equal)
ESPALIER_DISPATCH(select)
ESPALIER_DISPATCH(negate)
ESPALIER_DISPATCH(abs)
ESPALIER_DISPATCH(sign)
ESPALIER_DISPATCH(square)
ESPALIER_DISPATCH(sqrt)
ESPALIER_DISPATCH(rsqrt)
ESPALIER_DISPATCH(exp)
ESPALIER_DISPATCH(expm1)
ESPALIER_DISPATCH(log)
ESPALIER_DISPATCH(log1p)
ESPALIER_DISPATCH(tanh)
ESPALIER_DISPATCH(sigmoid)
ESPALIER_DISPATCH(relu)
ESPALIER_DISPATCH(erf)

}  // namespace espalier::ops
#endif
