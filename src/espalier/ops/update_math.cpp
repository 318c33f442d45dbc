#include "espalier/ops/update_math.h"

#include "espalier/ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "espalier/ops/update_math.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "espalier/ops/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace espalier::ops::HWY_NAMESPACE {
namespace {

struct Sgd {
  template <class D>
  HWY_INLINE void operator()(D d, const float* const* from, float* const* to) const {
    const auto w = hn::LoadU(d, from[0]), g = hn::LoadU(d, from[1]), rate = hn::LoadU(d, from[2]);
    hn::StoreU(hn::NegMulAdd(rate, g, w), d, to[0]);
  }
};

struct Momentum {
  float momentum;
  bool nesterov;
  template <class D>
  HWY_INLINE void operator()(D d, const float* const* from, float* const* to) const {
    const auto w = hn::LoadU(d, from[0]), g = hn::LoadU(d, from[2]), rate = hn::LoadU(d, from[3]);
    const auto decay = hn::Set(d, momentum), step = hn::Mul(rate, g);
    const auto m = hn::MulSub(decay, hn::LoadU(d, from[1]), step);
    const auto move = nesterov ? hn::MulSub(decay, m, step) : m;
    hn::StoreU(hn::Add(w, move), d, to[0]);
    hn::StoreU(m, d, to[1]);
  }
};

struct Adam {
  float keep_1, keep_2, epsilon, weight_decay;  // keep: 1 - beta
  template <class D>
  HWY_INLINE void operator()(D d, const float* const* from, float* const* to) const {
    auto w = hn::LoadU(d, from[0]), m = hn::LoadU(d, from[1]), v = hn::LoadU(d, from[2]);
    const auto g = hn::LoadU(d, from[3]), rate = hn::LoadU(d, from[4]), learning_rate = hn::LoadU(d, from[5]);
    w = hn::NegMulAdd(hn::Mul(w, hn::Set(d, weight_decay)), learning_rate, w);
    m = hn::MulAdd(hn::Sub(g, m), hn::Set(d, keep_1), m);
    v = hn::MulAdd(hn::Sub(hn::Mul(g, g), v), hn::Set(d, keep_2), v);
    w = hn::Sub(w, hn::Div(hn::Mul(m, rate), hn::Add(hn::Sqrt(v), hn::Set(d, epsilon))));
    hn::StoreU(w, d, to[0]);
    hn::StoreU(m, d, to[1]);
    hn::StoreU(v, d, to[2]);
  }
};

void sgd(const Attrs&, const float* const* in, float* const* out, int n) { map_tile<3, 1>(in, out, n, Sgd()); }

void momentum(const Attrs& attrs, const float* const* in, float* const* out, int n) {
  map_tile<4, 2>(in, out, n, Momentum{static_cast<float>(attrs.number("momentum")), attrs.integer("nesterov") != 0});
}

void adam(const Attrs& attrs, const float* const* in, float* const* out, int n) {
  auto number = [&](const char* name) { return attrs.number(name); };
  map_tile<6, 3>(in, out, n,
                 Adam{static_cast<float>(1 - number("beta_1")), static_cast<float>(1 - number("beta_2")),
                      static_cast<float>(number("epsilon")), static_cast<float>(number("weight_decay"))});
}

}  // namespace
}  // namespace espalier::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include <cmath>

namespace espalier::ops {

void require_nesterov_flag(const OpSignature& signature) {
  if (int64_t nesterov = signature.attrs.integer("nesterov"); nesterov != 0 && nesterov != 1)
    usage_error(fmt::format("'nesterov' is {}", nesterov), signature.where, "give 0 or 1");
}

void make_second_moment_positive(const OpSample& sample, const std::vector<void*>& operands) {
  auto* v = static_cast<float*>(operands[2]);
  for (int64_t i = 0; i < sample.operands[2].volume(); ++i) v[i] = std::fabs(v[i]);
}

HWY_EXPORT(sgd);
HWY_EXPORT(momentum);
HWY_EXPORT(adam);

void tile::sgd_update(const Attrs& attrs, const float* const* in, float* const* out, int n) {
  HWY_DYNAMIC_DISPATCH(sgd)(attrs, in, out, n);
}
void tile::momentum_update(const Attrs& attrs, const float* const* in, float* const* out, int n) {
  HWY_DYNAMIC_DISPATCH(momentum)(attrs, in, out, n);
}
void tile::adam_update(const Attrs& attrs, const float* const* in, float* const* out, int n) {
  HWY_DYNAMIC_DISPATCH(adam)(attrs, in, out, n);
}

}  // namespace espalier::ops
#endif
