#pragma once
// Runs a graph without collectives op by op on one device, every value in a buffer of its own: the oracle for what passes may not change.
#include <map>
#include <string>
#include <vector>

#include "espalier/ir/local.h"
#include "espalier/ops/make_kernel.h"

namespace espalier {

using Tensors = std::map<std::string, std::vector<float>>;

// Inputs by name; outputs by role and name: "result loss".
inline Tensors run_graph(const Graph& graph, const Tensors& inputs) {
  std::vector<std::vector<float>> buffers(graph.values.size());
  for (size_t v = 0; v < buffers.size(); ++v) buffers[v].resize(static_cast<size_t>(graph.values[v].type.shape.volume()));
  for (const Input& input : graph.inputs) buffers[static_cast<size_t>(input.value)] = inputs.at(input.name);
  for (const Op& op : graph.ops) {
    Kernel kernel = ops::make_kernel(*op.def, local_op(graph, op, 0, 1));
    std::vector<const void*> operands;
    std::vector<void*> results;
    for (ValueId id : op.operands) operands.push_back(buffers[static_cast<size_t>(id)].data());
    for (ValueId id : op.results) results.push_back(buffers[static_cast<size_t>(id)].data());
    std::vector<char> scratch(static_cast<size_t>(kernel.scratch_bytes) + 64);
    void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    kernel.run({operands.data(), results.data(), aligned});
  }
  Tensors outputs;
  for (const Output& output : graph.outputs)
    outputs[std::string(to_string(output.role)) + " " + output.name] = buffers[static_cast<size_t>(output.value)];
  return outputs;
}

}  // namespace espalier
