// The two layers sequential/dense and sequential/dense_1 with kernels (None, "model") and biases ("model") over four devices, trained for a
// few steps. 10 classes over 4 devices are 3, 3, 2 and 2.
#include <cstdio>

#include "espalier/data/synthetic.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/mesh/drawing.h"
#include "espalier/nn/layers.h"
#include "espalier/nn/trainer.h"

using namespace espalier;

int main() {
  nn::Sequential model({nn::Input({32}), nn::Dense(64, {.activation = "relu"}), nn::Dense(10, {.activation = "softmax"})});
  LayoutMap layouts(DeviceMesh(4, "model"));
  layouts.insert("sequential/dense.*/kernel", {std::nullopt, "model"});
  layouts.insert("sequential/dense.*/bias", {"model"});
  nn::Trainer trainer(model, {.optimizer = nn::SGD(0.1), .loss = "sparse_categorical_crossentropy"}, ModelParallel(layouts, "none"));
  for (const nn::VariableReport& variable : trainer.variables())
    std::printf("%s %s\n%s\n", variable.path.c_str(), to_string(variable.sharding, layouts.mesh()).c_str(),
                draw_sharding(variable.sharding, variable.type.shape, layouts.mesh()).c_str());
  auto data = make_synthetic_dataset(trainer.fields(nn::StepKind::kTrain), 64, /*seed=*/1);
  nn::History history = trainer.fit(*data, {.epochs = 20});
  const std::vector<double>& losses = history.step_losses;
  std::printf("%d steps; the loss %s\n", static_cast<int>(losses.size()), losses.back() < losses.front() ? "fell" : "rose");
}
