#pragma once
// What `fit`, `evaluate` and `predict` take and give, in Keras' words.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "espalier/data/dataset.h"

namespace espalier::nn {

// Results of one batch: the loss and every entry of the history as a sum and the count it is divided by.
struct BatchResult {
  struct Entry {
    std::string name;  // "loss", "accuracy", "head_loss"
    double sum = 0, count = 0;
  };
  int64_t samples = 0;
  double loss = 0;  // mean over the batch
  std::vector<Entry> entries;
};

// What Keras calls logs: "loss" first, then the metrics, each divided once by its count.
using Logs = std::vector<std::pair<std::string, double>>;

// As keras.callbacks.Callback. The base class does nothing.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_epoch_begin(int64_t /*epoch*/, int64_t /*steps*/) {}
  virtual void on_batch_end(int64_t /*step_in_epoch*/, int64_t /*samples_done*/, const Logs& /*running*/) {}
  virtual void on_epoch_end(int64_t /*epoch*/, const Logs& /*logs*/) {}
};

struct FitOptions {
  std::optional<int64_t> batch_size = {};  // none: as before, 32 at first
  int64_t epochs = 1;
  int64_t steps = 0;  // stop after this many updates in all; 0: no limit
  bool shuffle = true;
  const Dataset* validation = nullptr;
  std::vector<Callback*> callbacks = {};
};

// As Keras keeps it: one number an epoch under each name; validation's names begin with "val_".
struct History {
  std::vector<std::pair<std::string, std::vector<double>>> epochs;
  std::vector<double> step_losses;
  std::vector<double> step_seconds;
  int64_t samples = 0;   // seen in all
  double seconds = 0;    // in training steps
  bool stopped = false;  // by request_stop
};

}  // namespace espalier::nn
