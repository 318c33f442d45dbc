#include "bench/networks.h"

#include "bench/clock.h"
#include "espalier/base/error.h"
#include "espalier/base/nearest.h"
#include "espalier/data/order.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/nn/layers.h"

namespace espalier::bench {
namespace {

nn::Trainer make_trainer(const Network& network, const std::string& mesh_text, Cut cut, std::function<void(const nn::RunTrace&)> on_run) {
  const DeviceMesh mesh = DeviceMesh::parse(mesh_text);
  LayoutMap map(mesh);
  if (cut == Cut::kColumns) {
    map.insert(".*/kernel", {std::nullopt, "model"});
    map.insert(".*/bias", {"model"});
  }
  std::vector<nn::Layer> layers = {nn::Input({network.widths.front()})};
  for (size_t i = 1; i < network.widths.size(); ++i)
    layers.push_back(nn::Dense(network.widths[i], {.activation = i + 1 < network.widths.size() ? "relu" : "softmax"}));
  nn::TrainerOptions options;
  options.batch_size = network.batch;
  options.on_run = std::move(on_run);
  nn::Compilation compilation{.optimizer = network.optimizer, .loss = "sparse_categorical_crossentropy", .metrics = network.metrics};
  return {nn::Sequential(layers), compilation, ModelParallel(map, mesh.find_axis("data") ? "data" : "none"), options};
}

// Any numbers will do, and the same ones each time.
std::unique_ptr<Dataset> make_data(const Network& network, const nn::Trainer& trainer) {
  const int64_t features = network.widths.front(), classes = network.widths.back();
  std::vector<float> x(static_cast<size_t>(network.samples * features));
  std::vector<int32_t> y(static_cast<size_t>(network.samples));
  uint32_t state = 1;
  auto next = [&] { return state = state * 1664525u + 1013904223u; };
  for (float& value : x) value = static_cast<float>(next() >> 8) * 0x1p-24f;
  for (int32_t& label : y) label = static_cast<int32_t>((next() >> 8) % static_cast<uint32_t>(classes));
  return make_dataset(trainer.fields(nn::StepKind::kTrain),
                      {{make_array({network.samples, features}, x), "x"}, {make_array({network.samples}, y), "y"}}, network.samples);
}

}  // namespace

const Network& network(const std::string& name) {
  static const std::vector<Network> networks = {{"dense", {1024, 4096, 4096, 1024}, 512, 512, nn::SGD(0.01), {}},
                                                {"fashion", {784, 512, 512, 10}, 128, 60'000, nn::Adam(0.001), {"accuracy"}}};
  std::vector<std::string> names;
  for (const Network& one : networks) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  usage_error("there is no network '" + name + "'", "bench/table", suggest(name, names));
}

size_t compiled_collectives(const Network& network, const std::string& mesh, Cut cut) {
  return make_trainer(network, mesh, cut, {}).program(nn::StepKind::kTrain, network.batch).collectives.size();
}

Training::Training(const Network& network, const std::string& mesh, Cut cut, std::function<void(const nn::RunTrace&)> on_run)
    : network_(network),
      trainer_(make_trainer(network, mesh, cut, std::move(on_run))),
      data_(make_data(network, trainer_)),
      order_(epoch_order(network.samples, 0, 0, Shuffle::kYes)) {
  trainer_.initialize();
}

double Training::step() {
  if (at_ + network_.batch > network_.samples) at_ = 0;
  const std::span<const int64_t> samples = std::span(order_).subspan(static_cast<size_t>(at_), static_cast<size_t>(network_.batch));
  at_ += network_.batch;
  return seconds_of([&] { loss_ = trainer_.train_batch(*data_, samples).loss; });
}

}  // namespace espalier::bench
