// The (2, 4) mesh: four devices split the model, twice; each of the two halves sees half of the batch.
#include <cstdio>

#include "espalier/distribution/model_parallel.h"
#include "espalier/mesh/drawing.h"
#include "espalier/nn/layers.h"
#include "espalier/nn/trainer.h"

using namespace espalier;

int main() {
  nn::Sequential model({nn::Input({784}), nn::Dense(512, {.activation = "relu"}), nn::Dense(10, {.activation = "softmax"})});
  LayoutMap layouts(DeviceMesh({2, 4}, {"data", "model"}));
  layouts.insert("sequential/dense/kernel", {std::nullopt, "model"});
  ModelParallel distribution(layouts);  // the axis "data" cuts the batch
  nn::Trainer trainer(model, {.loss = "sparse_categorical_crossentropy"}, distribution);
  const nn::VariableReport& kernel = trainer.variables().front();
  std::printf("%s\n%s\n", named_sharding(kernel.sharding, layouts.mesh()).c_str(),
              draw_sharding(kernel.sharding, kernel.type.shape, layouts.mesh()).c_str());
  const std::vector<std::string>& devices = layouts.mesh().devices();
  const std::vector<int64_t> samples = batch_per_device(distribution, 128);
  for (size_t device = 0; device < devices.size(); ++device) {
    Box shard = shard_box(kernel.sharding, kernel.type.shape, layouts.mesh(), static_cast<int64_t>(device));
    std::printf("%s: %d samples, columns %d to %d\n", devices[device].c_str(), static_cast<int>(samples[device]),
                static_cast<int>(shard.offset[1]), static_cast<int>(shard.offset[1] + shard.shape[1]));
  }
}
