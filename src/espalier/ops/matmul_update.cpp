#include <fmt/format.h>

#include <cstring>

#include "espalier/ops/contraction.h"

namespace espalier::ops {
namespace {

// As the product's, but what is summed over has to be whole: a variable is no pending sum.
FactorRule rule(const OpSignature& signature) {
  const std::string& factors = signature.attrs.text("factors");
  parse_contraction(factors, signature.where);
  const std::vector<Dims> shapes = signature.shapes();
  FactorRule rule = with_whole_sums(parse_rule(factors, {shapes[1], shapes[2]}, signature.where));
  if (!(shapes[0] == rule.result_shape(0)) || shapes[3].rank() != 0)
    usage_error(fmt::format("a variable of shape {} and a rate of shape {} do not fit a product of shape {}", to_string(shapes[0]),
                            to_string(shapes[3]), to_string(rule.result_shape(0))),
                signature.where);
  rule.operands.insert(rule.operands.begin(), rule.results[0]);
  rule.operands.emplace_back();
  return rule;
}

double flops(const OpSignature& signature) { return product_flops(rule(signature)); }

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

extern const OpDef matmul_update{
    .name = "matmul_update",
    .doc = "w, a, b, rate -> w - rate a b, in place: the gradient never exists; made by fusion",
    .rule = rule,
    .operand_count = 4,
    .attributes = {{"factors", AttrKind::kText}},
    .flops = flops,
    .cpu = cpu,
    .in_place = {0},
    .samples = {{{{5, 7}, {3, 5}, {3, 7}, {}}, {{"factors", std::string("mk,mn->kn")}}},
                {{{4, 13}, {4, 6}, {6, 13}, {}}, {{"factors", std::string("mk,kn->mn")}}},
                {{{3, 2}, {0, 3}, {0, 2}, {}}, {{"factors", std::string("mk,mn->kn")}}},
                {{{2, 3, 4}, {2, 3, 5}, {2, 5, 4}, {}}, {{"factors", std::string("bmk,bkn->bmn")}}}},
};

}  // namespace espalier::ops
