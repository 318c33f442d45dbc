#include <cstring>

#include "espalier/ops/contraction.h"
#include "espalier/ops/product_update.h"

namespace espalier::ops::matmul_update {
namespace {

FactorRule rule(const OpSignature& signature) { return product_update_rule(signature, 1); }
double flops(const OpSignature& signature) { return product_update_flops(signature, 1); }

// Added straight into the variable.
Kernel cpu(const LocalOp& op) {
  MatmulPrimitive product = local_product(op, 1, ProductMode::kAdd);
  return {.run =
              [product, bytes = static_cast<size_t>(op.results[0].shape.volume()) * sizeof(float)](const KernelCall& call) {
                if (bytes > 0 && call.results[0] != call.operands[0]) std::memcpy(call.results[0], call.operands[0], bytes);
                product.run({call.operands[1], call.operands[2], call.results[0], call.scratch, -*call.operand<float>(3)});
              },
          .scratch_bytes = product.scratch_bytes};
}

}  // namespace

extern const OpDef def{
    .name = "matmul_update",
    .doc = "w, a, b, rate -> w - rate a b, in place: the gradient never exists; made by fusion",
    .rule = rule,
    .operand_count = 4,
    .attributes = {{"factors", AttrKind::kText}},
    .flops = flops,
    .cpu = cpu,
    .updates = 1,
    .samples = {{{{5, 7}, {3, 5}, {3, 7}, {}}, {{"factors", std::string("mk,mn->kn")}}},
                {{{4, 13}, {4, 6}, {6, 13}, {}}, {{"factors", std::string("mk,kn->mn")}}},
                {{{3, 2}, {0, 3}, {0, 2}, {}}, {{"factors", std::string("mk,mn->kn")}}},
                {{{2, 3, 4}, {2, 3, 5}, {2, 5, 4}, {}}, {{"factors", std::string("bmk,bkn->bmn")}}}},
};

}  // namespace espalier::ops::matmul_update
