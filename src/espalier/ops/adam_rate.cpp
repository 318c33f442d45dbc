#include <cmath>

#include "espalier/ir/op_def.h"

namespace espalier::ops::adam_rate {
namespace {

// In double: beta_2^t is within 1e-3 of 1 in the first steps, and 1 minus it would lose most of a float's digits.
void rate(const Attrs& attrs, const float* const* in, float* const* out, int n) {
  for (int i = 0; i < n; ++i) {
    const double step = static_cast<double>(in[1][i]);
    const double correction = std::sqrt(1 - std::pow(attrs.number("beta_2"), step)) / (1 - std::pow(attrs.number("beta_1"), step));
    out[0][i] = static_cast<float>(static_cast<double>(in[0][i]) * correction);
  }
}

}  // namespace

extern const OpDef def{
    .name = "adam_rate",
    .doc = "learning_rate, step -> learning_rate sqrt(1 - beta_2^step) / (1 - beta_1^step); step counts from 1",
    .operand_count = 2,
    .attributes = {{"beta_1", AttrKind::kNumber}, {"beta_2", AttrKind::kNumber}},
    .tile = rate,
    .samples = {{{{}, {}}, {{"beta_1", 0.9}, {"beta_2", 0.999}}, 1, 20}},
};

}  // namespace espalier::ops::adam_rate
