#include "espalier/ops/product_update.h"
#include "espalier/ops/update_math.h"

namespace espalier::ops::matmul_momentum_update {
namespace {

constexpr size_t kState = 2;

FactorRule rule(const OpSignature& signature) {
  require_nesterov_flag(signature);
  return product_update_rule(signature, kState);
}
double flops(const OpSignature& signature) { return product_update_flops(signature, kState); }
Kernel cpu(const LocalOp& op) { return product_update_kernel(op, kState, tile::momentum_update); }

}  // namespace

extern const OpDef def{
    .name = "matmul_momentum_update",
    .doc = "w, m, a, b, learning_rate -> w, m after a step of descent with momentum whose gradient is a b; made by fusion",
    .rule = rule,
    .result_count = 2,
    .operand_count = 5,
    .attributes = {{"factors", AttrKind::kText}, {"momentum", AttrKind::kNumber}, {"nesterov", AttrKind::kInteger}},
    .flops = flops,
    .cpu = cpu,
    .updates = kState,
    .samples = {{{{5, 7}, {5, 7}, {3, 5}, {3, 7}, {}},
                 {{"factors", std::string("mk,mn->kn")}, {"momentum", 0.9}, {"nesterov", int64_t{0}}}},
                {{{70, 90}, {70, 90}, {33, 70}, {33, 90}, {}},
                 {{"factors", std::string("mk,mn->kn")}, {"momentum", 0.9}, {"nesterov", int64_t{1}}}},
                {{{3, 2}, {3, 2}, {0, 3}, {0, 2}, {}},
                 {{"factors", std::string("mk,mn->kn")}, {"momentum", 0.9}, {"nesterov", int64_t{0}}}}},
};

}  // namespace espalier::ops::matmul_momentum_update
