#include "espalier/ir/op_def.h"
#include "espalier/ops/update_math.h"

namespace espalier::ops::sgd_update {

extern const OpDef def{
    .name = "sgd_update",
    .doc = "w, g, learning_rate -> w - learning_rate g",
    .operand_count = 3,
    .tile = tile::sgd_update,
    .updates = 1,
    .absorbed_operand = 1,
    .absorbed_op = "matmul",
    .absorbing = "matmul_update",
    .samples = {{{{7, 13}, {7, 13}, {}}}, {{{5}, {5}, {}}}, {{{0, 2}, {0, 2}, {}}}},
};

}  // namespace espalier::ops::sgd_update
