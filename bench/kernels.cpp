#include "bench/kernels.h"

#include <fmt/format.h>

#include "bench/clock.h"
#include "espalier/base/pages.h"
#include "espalier/ir/local.h"
#include "espalier/ops/make_kernel.h"

namespace espalier::bench {
namespace {

constexpr double kSeconds = 0.25;  // that one figure may take

const Dims kWeight = {4096, 4096}, kActivation = {512, 4096}, kBias = {4096};

// The last op of the graph, alone, on operands of its types. What may be updated in place is.
double gigabytes_of(const Graph& graph, int cores) {
  const Op& op = graph.ops.back();
  const Kernel kernel = ops::make_kernel(*op.def, local_op(graph, op, 0, cores));
  std::vector<Pages> pages;
  std::vector<const void*> operands;
  std::vector<void*> results;
  double bytes = 0;
  for (ValueId id : op.operands) {
    pages.emplace_back(local_bytes(graph, id, 0));
    auto* values = reinterpret_cast<float*>(pages.back().data());
    for (int64_t i = 0; i < local_bytes(graph, id, 0) / 4; ++i) values[i] = 0.25f + 0.001f * static_cast<float>(i % 7);
    operands.push_back(values);
    bytes += static_cast<double>(local_bytes(graph, id, 0));
  }
  const bool in_place = op.def->elementwise() || op.def->elementwise_body;
  for (size_t r = 0; r < op.results.size(); ++r) {
    const ValueId id = op.results[r];
    if (in_place && r < op.operands.size() && graph.type(op.operands[r]) == graph.type(id)) {
      results.push_back(const_cast<void*>(operands[r]));
    } else {
      pages.emplace_back(local_bytes(graph, id, 0));
      results.push_back(pages.back().data());
    }
    bytes += static_cast<double>(local_bytes(graph, id, 0));
  }
  Pages scratch(kernel.scratch_bytes + 64);
  const KernelCall call{operands.data(), results.data(), scratch.data()};
  kernel.run(call);  // pages touched, threads started
  std::vector<double> seconds;
  for (const double start = now_seconds(); seconds.size() < 5 || now_seconds() - start < kSeconds;)
    seconds.push_back(seconds_of([&] { kernel.run(call); }));
  return 1e-9 * bytes / median(seconds);
}

// A graph of one op over inputs of these shapes.
Graph one_op(const std::string& name, const std::vector<Dims>& operands, Attrs attrs = {}) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const Dims& shape : operands)
    inputs.push_back(graph.add_input(Role::kData, fmt::format("x{}", inputs.size()), {DType::kF32, shape}));
  Builder(graph).ops(name, inputs, std::move(attrs));
  return graph;
}

using Body = ValueId (*)(Builder&, const std::vector<ValueId>&);

Graph fused(const std::vector<Dims>& operands, Body make) {
  auto body = std::make_shared<Graph>();
  Builder builder(*body);
  std::vector<ValueId> in;
  for (const Dims& shape : operands) in.push_back(body->add_input(Role::kData, "", {DType::kF32, shape}));
  body->add_output(Role::kResult, "", make(builder, in));
  return one_op("fused", operands, {{"body", std::shared_ptr<const Graph>(body)}});
}

ValueId bias_relu(Builder& b, const std::vector<ValueId>& in) { return b.op("relu", {b.op("add", in)}); }

ValueId relu_gradient(Builder& b, const std::vector<ValueId>& in) {
  return b.op("multiply", {in[0], b.op("greater", {in[1], b.op("constant", {}, {{"value", 0.0}})})});
}

ValueId gelu(Builder& b, const std::vector<ValueId>& in) {
  auto number = [&](double value) { return b.op("constant", {}, {{"value", value}}); };
  const ValueId phi = b.op("add", {b.op("erf", {b.op("multiply", {in[0], number(0.7071067811865476)})}), number(1)});
  return b.op("multiply", {b.op("multiply", {in[0], number(0.5)}), phi});
}

}  // namespace

std::vector<Speed> measure_kernels(int cores) {
  const Attrs momentum = {{"momentum", 0.9}, {"nesterov", int64_t{0}}};
  const Attrs adam = {{"beta_1", 0.9}, {"beta_2", 0.999}, {"epsilon", 1e-7}, {"weight_decay", 0.0}};
  const std::vector<std::pair<std::string, Graph>> all = {
      {"bias + relu", fused({kActivation, kBias}, bias_relu)},
      {"relu gradient", fused({kActivation, kActivation}, relu_gradient)},
      {"gelu", fused({kActivation}, gelu)},
      {"softmax", one_op("softmax", {kActivation}, {{"dim", int64_t{1}}})},
      {"sum over the batch", one_op("reduce_sum", {kActivation}, {{"dims", std::vector<int64_t>{0}}, {"keep", int64_t{0}}})},
      {"sgd update", one_op("sgd_update", {kWeight, kWeight, {}})},
      {"momentum update", one_op("momentum_update", {kWeight, kWeight, kWeight, {}}, momentum)},
      {"adam update", one_op("adam_update", {kWeight, kWeight, kWeight, kWeight, {}, {}}, adam)},
  };
  std::vector<Speed> speeds;
  for (const auto& [name, graph] : all) speeds.push_back({name, cores, gigabytes_of(graph, cores)});
  return speeds;
}

}  // namespace espalier::bench
