// Model files of Keras: read, traced, and now and then compiled for two devices as `plan` does.
#include "espalier/distribution/data_parallel.h"
#include "espalier/interop/keras.h"
#include "espalier/nn/trainer.h"
#include "fuzz.h"

using namespace espalier;

namespace {

// Files of a layer or three, and of those one size in eight: compiling takes 2 ms, all else 0.3.
bool is_planned(size_t size) { return size <= 1200 && size % 8 == 0; }

constexpr size_t kMostLayers = 64;  // to trace

nn::StepKind kind_of(const KerasFile& file) {
  return file.compilation && !file.compilation->loss.empty() ? nn::StepKind::kTrain : nn::StepKind::kPredict;
}

void plan(const KerasFile& file) {
  const nn::Purpose purpose = file.compilation ? nn::Purpose::kTraining : nn::Purpose::kInference;
  const DeviceMesh mesh({2}, {"data"});
  nn::Trainer trainer(file.model, file.compilation.value_or(nn::Compilation()), DataParallel(mesh),
                      {.purpose = purpose, .batch_size = 3, .threads = 1, .device_memory = 1 << 30});
  trainer.program(kind_of(file), 3);
  fuzz::require(trainer.memory().size() == 2, "a device without memory");
  trainer.fits();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::text_of(data, size);
  fuzz::check(size, {8 << 20, 512}, [&] {
    const KerasFile file = read_keras(text, "model.json");
    if (!file.model.built()) return;
    if (is_planned(size))
      plan(file);
    else if (file.model.layers().size() <= kMostLayers)
      nn::trace_step(file.model, file.compilation.value_or(nn::Compilation()), 3, kind_of(file));
  });
  return 0;
}
