#include "espalier/ops/tile_program.h"

namespace espalier::ops::fused {
namespace {

FactorRule rule(const OpSignature& signature) {
  const Graph& body = signature.attrs.graph("body");
  check_body(body, signature.operands.size(), signature.where);
  return elementwise_rule(signature.shapes(), static_cast<int>(body.outputs.size()), signature.where);
}

Kernel cpu(const LocalOp& op) {
  std::vector<Dims> shapes;
  for (const LocalTensor& operand : op.operands) shapes.push_back(operand.shape);
  return tile_kernel(tile_program(op.attrs->graph("body")), shapes, op.results[0].shape, op.threads);
}

double flops(const OpSignature& signature) {
  Dims shape = rule(signature).result_shape(0);
  return static_cast<double>(shape.volume()) * static_cast<double>(signature.attrs.graph("body").ops.size());
}

// Two results, a value used twice, a constant, and an operand handed through.
std::vector<OpSample> samples() {
  std::vector<OpSample> samples;
  for (const std::vector<Dims>& operands : std::vector<std::vector<Dims>>{{{7, 13}, {13}, {}}, {{5, 1}, {5, 7}, {5, 7}}, {{3}, {3}, {1}}}) {
    auto body = std::make_shared<Graph>();
    Builder b(*body);
    std::vector<ValueId> in;
    for (const Dims& shape : operands) in.push_back(body->add_input(Role::kData, "", {DType::kF32, shape}));
    ValueId sum = b.op("add", {in[0], in[1]});
    ValueId scaled = b.op("multiply", {sum, b.op("exp", {b.op("add", {in[2], b.op("constant", {}, {{"value", 0.5}})})})});
    ValueId all = b.op("add", {b.op("tanh", {scaled}), sum});
    for (ValueId out : {all, sum}) body->add_output(Role::kResult, "", out);
    samples.push_back({operands, {{"body", std::shared_ptr<const Graph>(body)}}});
  }
  return samples;
}

}  // namespace

extern const OpDef def{
    .name = "fused",
    .doc = "a body of elementwise ops run tile by tile; made by fusion, after gradients",
    .rule = rule,
    .operand_count = -1,
    .attributes = {{"body", AttrKind::kGraph}},
    .flops = flops,
    .cpu = cpu,
    .elementwise_body = true,
    .more_samples = samples,
};

}  // namespace espalier::ops::fused
