#include "espalier/ir/op_def.h"
#include "espalier/ops/update_math.h"

namespace espalier::ops::momentum_update {
namespace {

FactorRule rule(const OpSignature& signature) {
  require_nesterov_flag(signature);
  return elementwise_rule(signature.shapes(), 2, signature.where);
}

}  // namespace

// m = momentum m - learning_rate g; w += m, or with Nesterov's momentum w += momentum m - learning_rate g (Sutskever et al., ICML 2013, as
// Keras).
extern const OpDef def{
    .name = "momentum_update",
    .doc = "w, m, g, learning_rate -> w, m after a step of gradient descent with momentum",
    .rule = rule,
    .result_count = 2,
    .operand_count = 4,
    .attributes = {{"momentum", AttrKind::kNumber}, {"nesterov", AttrKind::kInteger}},
    .tile = tile::momentum_update,
    .updates = 2,
    .absorbed_operand = 2,
    .absorbed_op = "matmul",
    .absorbing = "matmul_momentum_update",
    .samples = {{{{7, 13}, {7, 13}, {7, 13}, {}}, {{"momentum", 0.9}, {"nesterov", int64_t{0}}}},
                {{{5}, {5}, {5}, {}}, {{"momentum", 0.9}, {"nesterov", int64_t{1}}}}},
};

}  // namespace espalier::ops::momentum_update
