// The part of Trainer that reads and writes weights: files, whole tensors, one device's shards.
#include <fmt/format.h>

#include <algorithm>

#include "espalier/base/nearest.h"
#include "espalier/checkpoint/safetensors.h"
#include "espalier/nn/trainer_state.h"

namespace espalier::nn {
namespace {

std::vector<TensorSpec> tensor_specs(const std::vector<VariableReport>& variables) {
  std::vector<TensorSpec> specs;
  for (const VariableReport& v : variables)
    specs.push_back({v.path, v.type.dtype == DType::kI32 ? NumberType::kI32 : NumberType::kF32, v.type.shape});
  return specs;
}

}  // namespace

std::vector<float> Trainer::State::gather(const Value& value, const ShardOf& shard) {
  std::vector<float> whole(static_cast<size_t>(value.type.shape.volume()));
  gather_parts(value, *mesh, shard, whole.data());
  return whole;
}

void Trainer::check_weights(const std::string& path) const {
  SafetensorsReader(local_files(), path).check_names(tensor_specs(state_->variables));
}

void Trainer::load_weights(const std::string& path) {
  Program& program = state_->ready(kInitialization, 0);
  SafetensorsReader reader(local_files(), path);
  reader.check_names(tensor_specs(state_->variables));
  for (const VariableReport& v : state_->variables)
    for (int64_t device = 0; device < state_->mesh->size(); ++device) {
      Box box = shard_box(v.sharding, v.type.shape, *state_->mesh, device);
      if (box.shape.volume() == 0) continue;
      void* shard = state_->executor->state(*program.executable, v.path, device);
      if (v.type.dtype == DType::kI32)
        reader.read(v.path, box, static_cast<int32_t*>(shard));
      else
        reader.read(v.path, box, static_cast<float*>(shard));
    }
}

void Trainer::save_weights(const std::string& path) {
  Program& program = state_->ready(kInitialization, 0);
  SafetensorsWriter writer(local_files(), path, tensor_specs(state_->variables));
  for (const VariableReport& v : state_->variables)
    for_each_part(v.sharding, v.type.shape, *state_->mesh, [&](int64_t device, const Box& box) {
      const void* shard = state_->executor->state(*program.executable, v.path, device);
      if (v.type.dtype == DType::kI32)
        writer.write(v.path, box, static_cast<const int32_t*>(shard));
      else
        writer.write(v.path, box, static_cast<const float*>(shard));
    });
  writer.commit();
}

const VariableReport& Trainer::State::variable(const std::string& path) const {
  std::vector<std::string> paths;
  for (const VariableReport& v : variables) {
    if (v.path == path) return v;
    paths.push_back(v.path);
  }
  usage_error(fmt::format("there is no variable '{}'", path), model.name(), suggest(path, paths));
}

std::vector<float> Trainer::weight(const std::string& path) { return weight(path, 0, state_->variable(path).type.shape.volume()); }

std::vector<float> Trainer::weight(const std::string& path, int64_t first, int64_t count) {
  const VariableReport& v = state_->variable(path);
  if (first < 0 || count < 0 || first > v.type.shape.volume() - count)
    usage_error(fmt::format("elements {} to {} are not all there", first, first + count), fmt::format("'{}'", path),
                fmt::format("it has {}", v.type.shape.volume()));
  Program& program = state_->ready(kInitialization, 0);
  std::vector<float> some(static_cast<size_t>(count));
  auto shard = [&](int64_t device) { return state_->executor->state(*program.executable, path, device); };
  gather_some({.type = v.type, .sharding = v.sharding}, *state_->mesh, shard, first, count, some.data());
  return some;
}

std::optional<std::string> Trainer::find_bad_variable() { return state_->find_bad_variable(*state_->ready(kInitialization, 0).executable); }

std::vector<float> Trainer::shard(const std::string& path, int64_t device) {
  const VariableReport& v = state_->variable(path);
  if (device < 0 || device >= state_->mesh->size())
    usage_error(fmt::format("there is no device {}", device), to_string(*state_->mesh), "count devices from 0, row-major");
  Program& program = state_->ready(kInitialization, 0);
  std::vector<float> part(static_cast<size_t>(local_shape(v.sharding, v.type.shape, *state_->mesh, device).volume()));
  const void* from = state_->executor->state(*program.executable, path, device);
  if (v.type.dtype == DType::kI32)
    std::copy_n(static_cast<const int32_t*>(from), part.size(), part.begin());
  else
    std::copy_n(static_cast<const float*>(from), part.size(), part.begin());
  return part;
}

std::vector<float> Trainer::gradient(const std::string& path) {
  const Program* program = state_->last;
  if (program != nullptr) {
    const Graph& graph = program->compiled->graph;
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      if (graph.outputs[i].role == Role::kGradient && graph.outputs[i].name == "gradient/" + path)
        return state_->gather(graph.value(graph.outputs[i].value), [&](int64_t device) {
          return const_cast<void*>(state_->executor->output(*program->executable, static_cast<int>(i), device));
        });
  }
  usage_error(fmt::format("there is no gradient of '{}'", path), state_->model.name(),
              "train a batch with keep_gradients first; a frozen variable has none");
}

std::optional<std::string> Trainer::State::find_bad_variable(const Executable& executable) const {
  std::optional<std::string> found;
  for (const VariableReport& variable : variables)
    for_each_part(variable.sharding, variable.type.shape, *mesh, [&](int64_t device, const Box& box) {
      if (found || variable.type.dtype != DType::kF32) return;
      const auto* from = static_cast<const float*>(executor->state(executable, variable.path, device));
      if (auto value = find_bad_number({from, static_cast<size_t>(box.shape.volume())}))
        found = fmt::format("variable '{}' holds {}", variable.path, text_of(*value));
    });
  return found;
}

}  // namespace espalier::nn
