#include "espalier/ir/op_def.h"
#include "espalier/ops/update_math.h"

namespace espalier::ops::adam_update {

// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019) as Keras has them; `rate` is adam_rate's result.
// w -= weight_decay w learning_rate; m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2); w -= m rate / (sqrt(v) + epsilon).
extern const OpDef def{
    .name = "adam_update",
    .doc = "w, m, v, g, rate, learning_rate -> w, m, v after a step of Adam",
    .result_count = 3,
    .operand_count = 6,
    .attributes = {{"beta_1", AttrKind::kNumber},
                   {"beta_2", AttrKind::kNumber},
                   {"epsilon", AttrKind::kNumber},
                   {"weight_decay", AttrKind::kNumber}},
    .tile = tile::adam_update,
    .updates = 3,
    .absorbed_operand = 3,
    .absorbed_op = "matmul",
    .absorbing = "matmul_adam_update",
    .samples = {{.operands = {{7, 13}, {7, 13}, {7, 13}, {7, 13}, {}, {}},
                 .attrs = {{"beta_1", 0.9}, {"beta_2", 0.999}, {"epsilon", 1e-7}, {"weight_decay", 0.0}},
                 .prepare = make_second_moment_positive},
                {.operands = {{5}, {5}, {5}, {5}, {}, {}},
                 .attrs = {{"beta_1", 0.8}, {"beta_2", 0.99}, {"epsilon", 1e-3}, {"weight_decay", 0.004}},
                 .prepare = make_second_moment_positive}},
};

}  // namespace espalier::ops::adam_update
