#include <algorithm>

#include "espalier/ir/op_def.h"

namespace espalier::ops::constant {
namespace {

void fill(const Attrs& attrs, const float* const*, float* const* out, int n) {
  std::fill_n(out[0], n, static_cast<float>(attrs.number("value")));
}

}  // namespace

extern const OpDef def{
    .name = "constant",
    .doc = "one value",
    .operand_count = 0,
    .attributes = {{"value", AttrKind::kNumber}},
    .tile = fill,
    .grad = [](Builder&, const Op&, const std::vector<ValueId>&) { return std::vector<ValueId>{}; },
    .samples = {{.operands = {}, .attrs = {{"value", 2.5}}}, {.operands = {}, .attrs = {{"value", int64_t{-3}}}}},
};

}  // namespace espalier::ops::constant
