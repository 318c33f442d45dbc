#pragma once
// Runs one graph on a mesh through the whole pipeline (layouts, partition, fusion, memory, executor) and on one device op by op, and
// compares. Inputs are fed shard by shard; outputs are read from every device, so copies that differ in a bit are seen.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "espalier/base/runs.h"
#include "espalier/ir/text.h"
#include "espalier/passes/pipeline.h"
#include "espalier/runtime/executor.h"
#include "run_graph.h"

namespace espalier {

// Inputs by name and outputs by role and name, as run_graph has them: 4-byte words, whatever the dtype.
inline Tensors random_inputs(const Graph& graph, unsigned seed, int classes = 2) {
  std::mt19937 random(seed);
  Tensors inputs;
  for (const Input& input : graph.inputs) {
    std::vector<float>& words = inputs[input.name];
    words.resize(static_cast<size_t>(graph.type(input.value).shape.volume()));
    for (float& word : words) {
      auto label = static_cast<int32_t>(random() % static_cast<unsigned>(classes));
      if (graph.type(input.value).dtype == DType::kI32)
        std::memcpy(&word, &label, sizeof(word));
      else
        word = std::uniform_real_distribution<float>(-1, 1)(random);
    }
  }
  return inputs;
}

// Every way to cut a tensor of this rank: each axis of the mesh on one dim or none, several on one dim in both orders.
inline std::vector<Sharding> all_layouts(const DeviceMesh& mesh, int rank) {
  std::vector<Sharding> all = {Sharding(rank)};
  for (int a = 0; a < mesh.axis_count(); ++a) {
    if (mesh.shape()[static_cast<size_t>(a)] == 1) continue;
    for (size_t i = 0, count = all.size(); i < count; ++i)
      for (int d = 0; d < rank; ++d) {
        Sharding last = all[i], first = Sharding(rank);
        last.dims[static_cast<size_t>(d)].push_back(a);
        all.push_back(last);
        if (all[i].dims[static_cast<size_t>(d)].empty()) continue;
        first = all[i];
        first.dims[static_cast<size_t>(d)] = {};
        first.dims[static_cast<size_t>(d)].push_back(a);
        for (int axis : all[i].dims[static_cast<size_t>(d)]) first.dims[static_cast<size_t>(d)].push_back(axis);
        all.push_back(first);
      }
  }
  return all;
}

// A random layout for each input and output; state that is replaced keeps its layout, gradients take their variable's.
inline Pins random_pins(const Graph& graph, const DeviceMesh& mesh, std::mt19937& random) {
  Pins pins;
  auto any = [&](ValueId value) {
    std::vector<Sharding> all = all_layouts(mesh, graph.type(value).shape.rank());
    return random() % 4 == 0 ? all.front() : all[random() % all.size()];
  };
  for (const Input& input : graph.inputs)
    pins.inputs.push_back(input.role == Role::kScalar ? Sharding(graph.type(input.value).shape.rank()) : any(input.value));
  for (const Output& output : graph.outputs) {
    pins.outputs.push_back(any(output.value));
    if (output.role != Role::kVariable && output.role != Role::kOptimizer) continue;
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      if (graph.inputs[i].name == output.name) pins.outputs.back() = pins.inputs[i];
  }
  return pins;
}

inline std::string to_string(const Pins& pins, const Graph& graph, const DeviceMesh& mesh) {
  std::string text = espalier::to_string(mesh);
  for (size_t i = 0; i < pins.inputs.size(); ++i) text += " " + graph.inputs[i].name + to_string(pins.inputs[i], mesh);
  for (size_t i = 0; i < pins.outputs.size(); ++i) text += " " + graph.outputs[i].name + to_string(pins.outputs[i], mesh);
  return text;
}

// The whole tensor from every device's part; parts that several devices hold have to be equal bit for bit.
inline std::vector<float> gather_checked(const TensorType& type, const Sharding& sharding, const DeviceMesh& mesh,
                                         const std::function<const void*(int64_t)>& shard) {
  std::vector<float> whole(static_cast<size_t>(type.shape.volume()));
  std::vector<bool> known(whole.size(), false);
  int64_t differing = 0;
  for (int64_t device = 0; device < mesh.size(); ++device) {
    Box box = shard_box(sharding, type.shape, mesh, device);
    const auto* from = static_cast<const float*>(shard(device));
    for_each_run(type.shape, box.offset, box.shape, [&](int64_t at, int64_t part, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        auto w = static_cast<size_t>(at + i);
        differing += known[w] && std::memcmp(&whole[w], from + part + i, sizeof(float)) != 0;
        if (!known[w]) whole[w] = from[part + i];
        known[w] = true;
      }
    });
  }
  EXPECT_EQ(differing, 0) << "elements of which devices hold different copies";
  for (bool element : known) EXPECT_TRUE(element) << "an element that no device holds";
  return whole;
}

struct MeshRun {
  std::shared_ptr<const Compiled> compiled;
  Tensors outputs;  // whole
};

// `runs`: how often; state goes on from run to run, data is fed anew before each.
inline MeshRun run_on_mesh(const Graph& graph, const DeviceMesh& device_mesh, const Pins& pins, const Tensors& inputs, int runs = 1,
                           const CompileOptions& options = {}) {
  auto mesh = std::make_shared<const DeviceMesh>(device_mesh);
  std::vector<StateVariable> state;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (const Input& input = graph.inputs[i]; input.role == Role::kVariable || input.role == Role::kOptimizer)
      state.push_back({input.name, input.role, graph.type(input.value), pins.inputs[i]});
  MeshRun result{std::make_shared<const Compiled>(compile(graph, mesh, pins, state, options)), {}};
  Executor executor(mesh);
  auto executable = executor.load(result.compiled);
  for (int run = 0; run < runs; ++run) {
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const TensorType& type = graph.type(graph.inputs[i].value);
      bool kept = graph.inputs[i].role == Role::kVariable || graph.inputs[i].role == Role::kOptimizer;
      for (int64_t device = 0; device < mesh->size() && (run == 0 || !kept); ++device) {
        Box box = shard_box(pins.inputs[i], type.shape, *mesh, device);
        auto* to = static_cast<float*>(kept ? executor.state(*executable, graph.inputs[i].name, device)
                                            : executor.input(*executable, static_cast<int>(i), device));
        const float* from = inputs.at(graph.inputs[i].name).data();
        for_each_run(type.shape, box.offset, box.shape, [&](int64_t at, int64_t part, int64_t count) {
          std::memcpy(to + part, from + at, static_cast<size_t>(count) * sizeof(float));
        });
      }
    }
    executor.run(*executable);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Output& output = graph.outputs[i];
    result.outputs[std::string(to_string(output.role)) + " " + output.name] =
        gather_checked(graph.type(output.value), pins.outputs[i], *mesh,
                       [&](int64_t device) { return executor.output(*executable, static_cast<int>(i), device); });
  }
  return result;
}

// The largest difference over the largest magnitude (at least 1); infinite where one is not finite and the other is not the same.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0, scale = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    scale = std::max(scale, std::abs(static_cast<double>(b[i])));
  }
  return most / scale;
}

}  // namespace espalier
