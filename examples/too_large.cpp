// 16,000 -> 64,000 -> 8,000 on four devices of 4 GiB: whole copies do not fit, and a split of the model does. Nothing is allocated.
#include <cstdio>

#include "espalier/base/text.h"
#include "espalier/distribution/data_parallel.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/nn/layers.h"
#include "espalier/nn/trainer.h"

using namespace espalier;

void plan(const char* what, const Distribution& distribution) {
  nn::Sequential model({nn::Input({16000}), nn::Dense(64000, {.activation = "relu"}), nn::Dense(8000)});
  nn::Trainer trainer(model, {.optimizer = nn::SGD(0.01), .loss = "mean_squared_error"}, distribution,
                      {.batch_size = 64, .device_memory = int64_t{4} << 30});
  trainer.prepare_fit(0);
  const int64_t variables = trainer.memory().front().use.variables;
  std::printf("%s: %s of variables on each device; %s\n", what, format_bytes(variables).c_str(), trainer.fits() ? "fits" : "does not fit");
}

int main() {
  DeviceMesh mesh(4, "model");
  LayoutMap layouts(mesh);
  layouts.insert("sequential/dense/kernel", {std::nullopt, "model"});
  layouts.insert("sequential/dense/bias", {"model"});
  layouts.insert("sequential/dense_1/kernel", {"model", std::nullopt});
  plan("data parallel", DataParallel(mesh, "model"));
  plan("columns, then rows", ModelParallel(layouts, "none"));
}
