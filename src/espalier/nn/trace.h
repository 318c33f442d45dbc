#pragma once
// From a model to the graph of one step: forward and, for training, backward and update; or forward with losses and metrics; or
// predictions alone. Shapes are logical and static, so a batch of another size is another graph. First stage of the one path
// (docs/design.md): nothing here knows of devices.
//
// Names in the graph. Inputs: state by variable path and by slot (VARIABLE/momentum); data `input/NAME` (f32) and `target/NAME` (f32, or
// i32 classes); scalars `learning_rate` f32, `step` f32 (from 1), `random_step` i32 (another one each step). Training takes all state, the
// others only what they read. Outputs: state under the name of the input it replaces; `loss`, `loss/NAME` of models with several losses,
// `metric/NAME/sum`, `prediction/NAME`, `gradient/VARIABLE`.
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/ir/graph.h"
#include "espalier/nn/compilation.h"
#include "espalier/nn/model.h"
#include "espalier/nn/non_finite.h"

namespace espalier::nn {

enum class StepKind { kTrain, kEvaluate, kPredict };
const char* to_string(StepKind kind);  // "train", ...

struct StepOptions {
  bool keep_gradients = false;  // gradient/VARIABLE of each trainable variable, before clipping, for `verify`
  uint64_t seed = 0;            // of dropout
  OnNan on_nan = OnNan::kStop;  // kStop: every update waits for the loss and is not made when that is not finite
};

// An array the host fills before a run. Its source may have a trailing dim of size 1 more or less than `type`: the bytes are the same.
struct DataInput {
  std::string input;   // "input/x", "target/head"
  std::string source;  // "x", "head": the model's input or output
  enum class Kind { kSample, kTarget } kind = Kind::kSample;
  TensorType type;  // with the batch
};

// A number the host reads after a run. Over many steps: sum of value / sum of count for kSum, and for kMean (the loss)
// sum of value * count / sum of count.
struct StepResult {
  std::string output;   // "loss", "metric/head/accuracy/sum"
  std::string history;  // as Keras calls it: "loss", "accuracy", "head_loss", "head_accuracy"
  enum class Kind { kMean, kSum } kind = Kind::kMean;
  int64_t count = 1;
};

struct PredictionOutput {
  std::string output;  // "prediction/head"
  std::string name;    // "head"
  TensorType type;     // with the batch
};

struct Step {
  Graph graph;
  StepKind kind = StepKind::kTrain;
  int64_t batch = 0;
  std::vector<DataInput> data = {};
  std::vector<StepResult> results = {};
  std::vector<PredictionOutput> predictions = {};
};

// Errors: a model that is not built, no loss to train or evaluate with, a loss or metric that does not fit its output, a batch below 1.
Step trace_step(const Model& model, const Compilation& compilation, int64_t batch, StepKind kind, const StepOptions& options = {});

// State that lives from step to step.
struct ModelState {
  std::string name;  // "dense/kernel", "dense/kernel/momentum"
  Role role = Role::kVariable;
  TensorType type;
  std::string variable;  // whose layout it has; its own name for a variable
};
// Variables in Keras' order, then the slots of those that are trained. Errors: a slot whose name is a variable's.
std::vector<ModelState> model_state(const Model& model, const Compilation& compilation);

// A graph that gives all state its first value. Its inputs are the state it replaces, which it does not read.
Graph trace_initialization(const Model& model, const Compilation& compilation, uint64_t seed);

}  // namespace espalier::nn
