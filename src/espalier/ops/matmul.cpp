#include "espalier/ir/graph.h"
#include "espalier/ops/contraction.h"

namespace espalier::ops::matmul {
namespace {

FactorRule rule(const OpSignature& signature) {
  const std::string& factors = signature.attrs.text("factors");
  parse_contraction(factors, signature.where);
  return parse_rule(factors, signature.shapes(), signature.where);
}

// The operands and the result change roles: what was summed over is free, and the other way round.
std::vector<ValueId> gradient(Builder& b, const Op& op, const std::vector<ValueId>& d) {
  const Contraction form = parse_contraction(op.attrs.text("factors"), op.scope);
  ValueId da = b.op("matmul", {d[0], op.operands[1]}, {{"factors", form.result + "," + form.b + "->" + form.a}});
  ValueId db = b.op("matmul", {op.operands[0], d[0]}, {{"factors", form.a + "," + form.result + "->" + form.b}});
  return {da, db};
}

double flops(const OpSignature& signature) { return product_flops(rule(signature)); }

Kernel cpu(const LocalOp& op) {
  MatmulPrimitive product = local_product(op, 0, ProductMode::kWrite);
  return {.run =
              [product](const KernelCall& call) {
                product.run({call.operands[0], call.operands[1], call.results[0], call.scratch});
              },
          .scratch_bytes = product.scratch_bytes};
}

OpSample sample(const char* factors, Dims a, Dims b) { return {{a, b}, {{"factors", std::string(factors)}}}; }

}  // namespace

extern const OpDef def{
    .name = "matmul",
    .doc = "product of two operands, as an einsum",
    .rule = rule,
    .linearity = Linearity::kEach,
    .operand_count = 2,
    .attributes = {{"factors", AttrKind::kText}},
    .grad = gradient,
    .flops = flops,
    .cpu = cpu,
    .with_epilogue = "matmul_epilogue",
    .samples = {sample("mk,kn->mn", {7, 6}, {6, 13}), sample("mk,nk->mn", {4, 7}, {5, 7}), sample("km,kn->mn", {7, 3}, {7, 5}),
                sample("mk,kn->nm", {3, 4}, {4, 5}), sample("bmk,bkn->bmn", {3, 4, 5}, {3, 5, 2}), sample("btd,de->bte", {2, 3, 7}, {7, 4}),
                sample("btd,bte->de", {2, 3, 4}, {2, 3, 5}), sample("bthd,bshd->bhts", {2, 3, 2, 4}, {2, 5, 2, 4}),
                sample("bk,bk->b", {3, 7}, {3, 7}), sample("mk,k->m", {5, 7}, {7}), sample("k,k->", {13}, {13}),
                sample("m,n->mn", {3}, {4}), sample("mk,kn->mn", {1, 1}, {1, 1}), sample("mk,kn->mn", {3, 0}, {0, 2}),
                sample("mk,kn->mn", {0, 3}, {3, 2})},
};

}  // namespace espalier::ops::matmul
