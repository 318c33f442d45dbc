#pragma once
// The networks that the table trains, and one of them in training on a mesh.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/data/dataset.h"
#include "espalier/nn/trainer.h"

namespace espalier::bench {

struct Network {
  std::string name;
  std::vector<int64_t> widths;
  int64_t batch = 0, samples = 0;  // one batch again and again, or an epoch of many, in an order of its own
  nn::Optimizer optimizer;
  std::vector<nn::Metric> metrics;
};
// "dense": 1024-4096-4096-1024, batch 512, SGD. "fashion": 784-512-512-10, batch 128, Adam, accuracy, 60,000 samples.
// Errors (kUsage): another name.
const Network& network(const std::string& name);

enum class Cut { kNothing, kColumns };  // kernels (None, 'model'), biases ('model',)

// Compiles a step and counts what it found out to send.
size_t compiled_collectives(const Network& network, const std::string& mesh, Cut cut);

// Trains on samples that lie in memory.
class Training {
 public:
  // `on_run`: as nn::TrainerOptions'.
  Training(const Network& network, const std::string& mesh, Cut cut, std::function<void(const nn::RunTrace&)> on_run = {});

  double step();                         // seconds of one whole step: samples fetched, forward, loss, backward, update
  double loss() const { return loss_; }  // of the last step
  nn::Trainer& trainer() { return trainer_; }

 private:
  const Network& network_;
  nn::Trainer trainer_;
  std::unique_ptr<Dataset> data_;
  std::vector<int64_t> order_;
  int64_t at_ = 0;
  double loss_ = 0;
};

}  // namespace espalier::bench
