// An outside program: a model of its own, trained on three devices with the installed library.
#include <espalier/data/synthetic.h>
#include <espalier/distribution/data_parallel.h>
#include <espalier/nn/layers.h>
#include <espalier/nn/trainer.h>

#include <cmath>
#include <cstdio>

using namespace espalier;

int main() {
  nn::Sequential model({nn::Input({10}), nn::Dense(17, {.activation = "elu"}), nn::Dense(2)});
  nn::Trainer trainer(model, {.optimizer = nn::Adam(), .loss = "mse"}, DataParallel(DeviceMesh(3, "data")));
  auto data = make_synthetic_dataset(trainer.fields(nn::StepKind::kTrain), 100, /*seed=*/1);
  nn::History history = trainer.fit(*data, {.epochs = 3});
  std::printf("%d steps on three devices, loss %.4f\n", static_cast<int>(history.step_losses.size()), history.step_losses.back());
  return history.step_losses.size() == 12 && std::isfinite(history.step_losses.back()) ? 0 : 1;
}
