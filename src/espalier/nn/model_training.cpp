// The part of Model that trains: a Trainer does the work.
#include <fmt/format.h>

#include "espalier/base/text.h"
#include "espalier/distribution/data_parallel.h"
#include "espalier/distribution/default_distribution.h"
#include "espalier/nn/summary.h"
#include "espalier/nn/trainer.h"

namespace espalier::nn {

void Model::compile(Compilation compilation, const std::optional<Distribution>& distribution) {
  std::optional<Distribution> chosen = distribution ? distribution : espalier::distribution();
  if (!chosen) chosen = DataParallel(list_devices(1));
  trainer_ = nullptr;  // its arenas, before new ones are made
  trainer_ = std::make_shared<Trainer>(*this, std::move(compilation), *chosen);
}

Trainer& Model::trainer() const {
  if (trainer_ == nullptr) usage_error("the model is not compiled", fmt::format("model '{}'", name()), "call compile(...) first");
  return *trainer_;
}

std::vector<FieldSpec> Model::fields() const { return trainer().fields(StepKind::kTrain); }

History Model::fit(const Dataset& data, const FitOptions& options) { return trainer().fit(data, options); }

Logs Model::evaluate(const Dataset& data, int64_t batch_size) {
  trainer().set_batch_size(batch_size);
  return trainer().evaluate(data);
}

std::vector<std::vector<float>> Model::predict(const Dataset& data, int64_t batch_size) {
  trainer().set_batch_size(batch_size);
  const std::vector<Dims> shapes = output_shapes();
  std::vector<std::vector<float>> outputs(shapes.size());
  trainer().predict(data, [&](int output, int64_t, int64_t count, const float* rows) {
    auto o = static_cast<size_t>(output);
    outputs[o].insert(outputs[o].end(), rows, rows + count * shapes[o].volume());
  });
  return outputs;
}

void Model::save_weights(const std::string& path) { trainer().save_weights(path); }
void Model::load_weights(const std::string& path) { trainer().load_weights(path); }

std::string Model::summary() const {
  if (trainer_ == nullptr) return nn::summary(*this);
  const DeviceMesh& mesh = trainer_->distribution().mesh;
  auto report = [&](const Variable& variable) -> const VariableReport& {
    for (const VariableReport& v : trainer_->variables())
      if (v.path == variable.path) return v;
    ESPALIER_ASSERT(false && "the trainer lacks a variable of its model");
  };
  auto layout = [&](const Variable& variable) { return to_string(report(variable).sharding, mesh); };
  auto bytes = [&](const Variable& variable) {
    const VariableReport& v = report(variable);
    return format_bytes(local_shape(v.sharding, v.type.shape, mesh, 0).volume() * size_of(v.type.dtype));
  };
  return nn::summary(*this, {{"Layout", layout}, {"Bytes a device", bytes}});
}

}  // namespace espalier::nn
