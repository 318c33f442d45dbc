#include "espalier/cli/report.h"

#include "espalier/cli/output.h"

namespace espalier::cli {
namespace {

const char* dtype_name(DType dtype) { return dtype == DType::kF32 ? "float32" : "int32"; }

Json dims_json(const Dims& dims) { return Json(dims.vector()); }

Json shards_json(const nn::VariableReport& variable, const DeviceMesh& mesh) {
  Json shards = Json::array();
  for (int64_t device = 0; device < mesh.size(); ++device) {
    Box box = shard_box(variable.sharding, variable.type.shape, mesh, device);
    shards.push_back(
        {{"device", mesh.devices()[static_cast<size_t>(device)]}, {"offset", dims_json(box.offset)}, {"shape", dims_json(box.shape)}});
  }
  return shards;
}

}  // namespace

Json mesh_json(const DeviceMesh& mesh) { return {{"axis_names", mesh.axis_names()}, {"shape", mesh.shape()}, {"devices", mesh.devices()}}; }

Json layout_json(const TensorLayout& layout, int rank) {
  Json entries = Json::array();
  for (int d = 0; d < rank; ++d) {
    const std::vector<std::string> axes = d < layout.rank() ? layout.dims()[static_cast<size_t>(d)].names : std::vector<std::string>{};
    entries.push_back(axes.empty() ? Json() : axes.size() == 1 ? Json(axes[0]) : Json(axes));
  }
  return entries;
}

TensorLayout layout_of(const nn::VariableReport& variable, const Distribution& distribution) {
  if (variable.rule)
    for (const LayoutRule& rule : distribution.layout_map)
      if (rule.key == *variable.rule) return rule.layout;
  return unbind(variable.sharding, distribution.mesh);
}

Json variables_json(const nn::Trainer& trainer) {
  const Distribution& distribution = trainer.distribution();
  Json variables = Json::array();
  for (const nn::VariableReport& variable : trainer.variables()) {
    variables.push_back({{"path", variable.path},
                         {"shape", dims_json(variable.type.shape)},
                         {"dtype", dtype_name(variable.type.dtype)},
                         {"trainable", variable.trainable},
                         {"layout", layout_json(layout_of(variable, distribution), variable.type.shape.rank())},
                         {"rule", variable.rule ? Json(*variable.rule) : Json()},
                         {"bytes", variable.type.bytes()},
                         {"shards", shards_json(variable, distribution.mesh)}});
  }
  return variables;
}

Json batch_json(const Distribution& distribution, int64_t size) {
  Json axis;
  if (distribution.batch_axis) axis = distribution.mesh.axis_names()[static_cast<size_t>(*distribution.batch_axis)];
  return {{"axis", axis}, {"size", size}, {"per_device", batch_per_device(distribution, size)}};
}

Json memory_json(const nn::Trainer& trainer, const std::vector<int64_t>& allocated) {
  const std::vector<std::string>& devices = trainer.distribution().mesh.devices();
  const std::vector<nn::DeviceMemory> memory = trainer.memory();
  Json list = Json::array();
  for (size_t d = 0; d < memory.size(); ++d) {
    const MemoryUse& use = memory[d].use;
    Json entry = {{"device", devices[d]},       {"variables", use.variables},     {"gradients", use.gradients},
                  {"optimizer", use.optimizer}, {"activations", use.activations}, {"communication", use.communication},
                  {"peak", memory[d].arena}};
    if (!allocated.empty()) entry["allocated"] = allocated[d];
    list.push_back(std::move(entry));
  }
  return list;
}

Json collectives_json(const std::vector<Collective>& collectives) {
  Json list = Json::array();
  for (const Collective& one : collectives)
    list.push_back({{"kind", one.kind},
                    {"axes", one.axes},
                    {"op", one.op.empty() ? Json() : Json(one.op)},
                    {"phase", to_string(one.phase)},
                    {"bytes", one.bytes},
                    {"reason", one.reason}});
  return list;
}

Json logs_json(const nn::Logs& logs) {
  Json object = Json::object();
  for (const auto& [name, value] : logs) object[name] = value;
  return object;
}

void print_json(const Json& report) { write_output(report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"); }

}  // namespace espalier::cli
