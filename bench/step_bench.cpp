// Whole training steps and their compilation: the dense benchmark (1024-4096-4096-1024, batch 512, SGD) and the Fashion-MNIST network
// (784-512-512-10, batch 128, Adam), on one device, by batch, by model and by both.
//   build/release/bench/step_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
// GFLOP/s counts the matrix products alone (three a layer, two for the first), so it compares with the machine's multiply-add peak.
#include <benchmark/benchmark.h>

#include <numeric>

#include "espalier/data/synthetic.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/nn/layers.h"
#include "espalier/nn/trainer.h"

namespace espalier::nn {
namespace {

struct Workload {
  std::vector<int64_t> widths;
  int64_t batch;
  Optimizer optimizer;
};

const Workload kDense = {{1024, 4096, 4096, 1024}, 512, SGD(0.01)};
const Workload kFashion = {{784, 512, 512, 10}, 128, Adam(0.001)};

Model make_model(const Workload& work) {
  std::vector<Layer> layers = {Input({work.widths.front()})};
  for (size_t i = 1; i < work.widths.size(); ++i)
    layers.push_back(Dense(work.widths[i], {.activation = i + 1 < work.widths.size() ? "relu" : "softmax"}));
  return Sequential(layers);
}

double products_flops(const Workload& work) {
  double flops = 0;
  for (size_t i = 0; i + 1 < work.widths.size(); ++i)
    flops += 2.0 * (i == 0 ? 2 : 3) * static_cast<double>(work.batch * work.widths[i] * work.widths[i + 1]);
  return flops;
}

enum class Cut { kNothing, kColumns };

Trainer make_trainer(const Workload& work, const char* mesh_text, Cut cut) {
  DeviceMesh mesh = DeviceMesh::parse(mesh_text);
  LayoutMap map(mesh);
  if (cut == Cut::kColumns) {
    map.insert(".*/kernel", {std::nullopt, "model"});
    map.insert(".*/bias", {"model"});
  }
  TrainerOptions options;
  options.batch_size = work.batch;
  Compilation compilation{.optimizer = work.optimizer, .loss = "sparse_categorical_crossentropy"};
  return Trainer(make_model(work), compilation, ModelParallel(map, mesh.find_axis("data") ? "data" : "none"), options);
}

void step(benchmark::State& state, const Workload& work, const char* mesh, Cut cut) {
  Trainer trainer = make_trainer(work, mesh, cut);
  auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), work.batch, 1);
  std::vector<int64_t> samples(static_cast<size_t>(work.batch));
  std::iota(samples.begin(), samples.end(), 0);
  trainer.initialize();
  trainer.train_batch(*data, samples);  // arenas touched, kernels made
  for (auto _ : state) benchmark::DoNotOptimize(trainer.train_batch(*data, samples).loss);
  state.counters["GFLOP/s"] = benchmark::Counter(products_flops(work) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["samples/s"] = benchmark::Counter(static_cast<double>(work.batch), benchmark::Counter::kIsIterationInvariantRate);
}

void compilation(benchmark::State& state, const Workload& work, const char* mesh, Cut cut) {
  for (auto _ : state) benchmark::DoNotOptimize(make_trainer(work, mesh, cut).program(StepKind::kTrain, work.batch).collectives.size());
}

}  // namespace
}  // namespace espalier::nn

using espalier::nn::compilation;
using espalier::nn::Cut;
using espalier::nn::kDense;
using espalier::nn::kFashion;
using espalier::nn::step;

BENCHMARK_CAPTURE(step, dense_one, kDense, "data=1", Cut::kNothing)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, dense_batch_2, kDense, "data=2", Cut::kNothing)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, dense_model_2, kDense, "model=2", Cut::kColumns)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, dense_2x4, kDense, "data=2,model=4", Cut::kColumns)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, dense_batch_8, kDense, "data=8", Cut::kNothing)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, fashion_one, kFashion, "data=1", Cut::kNothing)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, fashion_batch_2, kFashion, "data=2", Cut::kNothing)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, fashion_batch_8, kFashion, "data=8", Cut::kNothing)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, fashion_2x4, kFashion, "data=2,model=4", Cut::kColumns)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(compilation, fashion_8, kFashion, "data=2,model=4", Cut::kColumns)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compilation, fashion_1024, kFashion, "data=32,model=32", Cut::kColumns)->Unit(benchmark::kMillisecond);
