#include "espalier/ops/product_update.h"
#include "espalier/ops/update_math.h"

namespace espalier::ops::matmul_adam_update {
namespace {

constexpr size_t kState = 3;

FactorRule rule(const OpSignature& signature) { return product_update_rule(signature, kState); }
double flops(const OpSignature& signature) { return product_update_flops(signature, kState); }
Kernel cpu(const LocalOp& op) { return product_update_kernel(op, kState, tile::adam_update); }

OpSample sample(const std::string& factors, const Dims& w, const Dims& a, const Dims& b, double weight_decay) {
  return {.operands = {w, w, w, a, b, {}, {}},
          .attrs = {{"beta_1", 0.9}, {"beta_2", 0.99}, {"epsilon", 1e-3}, {"weight_decay", weight_decay}, {"factors", factors}},
          .prepare = make_second_moment_positive};
}

std::vector<OpSample> samples() {
  return {sample("mk,mn->kn", {5, 7}, {3, 5}, {3, 7}, 0.004), sample("mk,kn->mn", {4, 13}, {4, 6}, {6, 13}, 0),
          sample("mk,mn->kn", {3, 2}, {0, 3}, {0, 2}, 0), sample("mk,mn->kn", {70, 90}, {33, 70}, {33, 90}, 0)};
}

}  // namespace

extern const OpDef def{
    .name = "matmul_adam_update",
    .doc = "w, m, v, a, b, rate, learning_rate -> w, m, v after a step of Adam whose gradient is a b; made by fusion",
    .rule = rule,
    .result_count = 3,
    .operand_count = 7,
    .attributes = {{"beta_1", AttrKind::kNumber},
                   {"beta_2", AttrKind::kNumber},
                   {"epsilon", AttrKind::kNumber},
                   {"factors", AttrKind::kText},
                   {"weight_decay", AttrKind::kNumber}},
    .flops = flops,
    .cpu = cpu,
    .updates = kState,
    .more_samples = samples,
};

}  // namespace espalier::ops::matmul_adam_update
