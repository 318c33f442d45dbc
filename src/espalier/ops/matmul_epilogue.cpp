#include <fmt/format.h>

#include "espalier/ops/contraction.h"
#include "espalier/ops/tile_program.h"

namespace espalier::ops::matmul_epilogue {
namespace {

// The factors of the result's dims that an extra operand's dims meet when it is broadcast against the result.
FactorTensor aligned(const FactorRule& rule, const Dims& result, const Dims& extra, const std::string& where) {
  FactorTensor dims;
  for (int own = 0; own < extra.rank(); ++own) {
    int d = own + result.rank() - extra.rank();
    if (d < 0 || (extra[own] != 1 && extra[own] != result[d]))
      usage_error(fmt::format("an operand of shape {} does not broadcast to the product's shape {}", to_string(extra), to_string(result)),
                  where);
    dims.push_back(extra[own] == result[d] ? rule.results[0][static_cast<size_t>(d)] : FactorDim{});
  }
  return dims;
}

// As the product's, but what is summed over has to be whole: the body sees finished sums.
FactorRule rule(const OpSignature& signature) {
  const std::string& factors = signature.attrs.text("factors");
  const Graph& body = signature.attrs.graph("body");
  parse_contraction(factors, signature.where);
  std::vector<Dims> shapes = signature.shapes();
  if (shapes.size() < 2) usage_error("a product takes two operands", signature.where);
  check_body(body, shapes.size() - 1, signature.where);
  FactorRule rule = with_whole_sums(parse_rule(factors, {shapes[0], shapes[1]}, signature.where));
  const Dims result = rule.result_shape(0);
  for (size_t i = 2; i < shapes.size(); ++i) rule.operands.push_back(aligned(rule, result, shapes[i], signature.where));
  const FactorTensor dims = rule.results[0];
  rule.results.assign(body.outputs.size(), dims);
  return rule;
}

double flops(const OpSignature& signature) {
  FactorRule factors = rule(signature);
  return product_flops(factors) +
         static_cast<double>(factors.result_shape(0).volume()) * static_cast<double>(signature.attrs.graph("body").ops.size());
}

// The product goes to the first result's buffer, where the body finds it while it is still in cache.
Kernel cpu(const LocalOp& op) {
  const Dims& result = op.results[0].shape;
  MatmulPrimitive product = local_product(op, 0, ProductMode::kWrite);
  std::vector<Dims> shapes = {result};
  for (size_t i = 2; i < op.operands.size(); ++i) shapes.push_back(op.operands[i].shape);
  Kernel body = tile_kernel(tile_program(op.attrs->graph("body")), shapes, result, op.threads);
  return {.run =
              [product, body, extras = op.operands.size() - 2](const KernelCall& call) {
                product.run({call.operands[0], call.operands[1], call.results[0], call.scratch});
                const void* operands[kMaxRank + 1];
                std::vector<const void*> many;
                const void** list = operands;
                if (extras > kMaxRank) many.resize(extras + 1), list = many.data();
                list[0] = call.results[0];
                for (size_t i = 0; i < extras; ++i) list[i + 1] = call.operands[i + 2];
                body.run({.operands = list, .results = call.results, .scratch = nullptr});
              },
          .scratch_bytes = product.scratch_bytes};
}

// A dense layer with its bias and activation; one with two results.
std::vector<OpSample> samples() {
  auto bias_tanh = std::make_shared<Graph>(), two = std::make_shared<Graph>();
  {
    Builder b(*bias_tanh);
    ValueId product = bias_tanh->add_input(Role::kData, "", {DType::kF32, {7, 13}});
    ValueId bias = bias_tanh->add_input(Role::kData, "", {DType::kF32, {13}});
    bias_tanh->add_output(Role::kResult, "", b.op("tanh", {b.op("add", {product, bias})}));
  }
  {
    Builder b(*two);
    ValueId product = two->add_input(Role::kData, "", {DType::kF32, {2, 3, 4}});
    ValueId other = two->add_input(Role::kData, "", {DType::kF32, {2, 1, 4}});
    two->add_output(Role::kResult, "", b.op("multiply", {b.op("sigmoid", {product}), other}));
    two->add_output(Role::kResult, "", b.op("square", {product}));
  }
  auto body = [](const std::shared_ptr<Graph>& graph) { return std::shared_ptr<const Graph>(graph); };
  return {{{{7, 6}, {6, 13}, {13}}, {{"factors", std::string("mk,kn->mn")}, {"body", body(bias_tanh)}}},
          {{{2, 3, 5}, {5, 4}, {2, 1, 4}}, {{"factors", std::string("btd,de->bte")}, {"body", body(two)}}},
          {{{7, 0}, {0, 13}, {13}}, {{"factors", std::string("mk,kn->mn")}, {"body", body(bias_tanh)}}}};
}

}  // namespace

extern const OpDef def{
    .name = "matmul_epilogue",
    .doc = "a product followed by a body of elementwise ops; made by fusion, after gradients",
    .rule = rule,
    .operand_count = -1,
    .attributes = {{"body", AttrKind::kGraph}, {"factors", AttrKind::kText}},
    .flops = flops,
    .cpu = cpu,
    .more_samples = samples,
};

}  // namespace espalier::ops::matmul_epilogue
