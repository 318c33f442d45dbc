#pragma once
// A compiled model on a mesh. Construction and everything under "before anything is allocated" only compute: what they say is what will
// run, the same graphs, bytes and collectives. Running allocates one arena a device, creates or loads weights shard by shard, and trains.
//
// Thread rule: one thread at a time. `request_stop` may be called from a signal handler.
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/data/dataset.h"
#include "espalier/distribution/distribution.h"
#include "espalier/nn/fit.h"
#include "espalier/nn/model.h"
#include "espalier/nn/trace.h"
#include "espalier/passes/pipeline.h"
#include "espalier/runtime/executor.h"

namespace espalier::nn {

enum class Purpose { kTraining, kInference };  // inference holds no optimizer state

// What one run of a program did. The program stays where it is while the trainer lives.
struct RunTrace {
  const Compiled& program;
  const char* kind;                // "initialize", "train", "evaluate", "predict"
  int64_t step;                    // the update it makes, from 1; otherwise updates made so far
  std::vector<TraceEvent> events;  // by begin time
};

struct TrainerOptions {
  Purpose purpose = Purpose::kTraining;
  int64_t batch_size = 32;
  uint64_t seed = 0;
  int threads = 0;            // cores used by all devices together; 0: all of them
  int64_t device_memory = 0;  // bytes; 0: this machine's memory over the devices
  Unmatched unmatched = Unmatched::kReplicate;
  std::set<std::string> skip_passes = {};
  OnNan on_nan = OnNan::kStop;
  bool keep_gradients = false;                       // gradients become readable after each step (verify)
  std::function<void(const RunTrace&)> on_run = {};  // called after each run, with what ran when; nothing is recorded without it
};

// A variable, how it is cut and why.
struct VariableReport {
  std::string path;
  TensorType type;
  bool trainable = true;
  Sharding sharding;
  std::optional<std::string> rule;  // the key of the layout map that matched
};

// One device's arena. The parts are the live bytes at the instant of the peak of the largest program; `arena` is the arena's size.
struct DeviceMemory {
  MemoryUse use;
  int64_t arena = 0;
};

class Trainer {
 public:
  // Errors: all that LayoutMap::resolve and tracing find wrong.
  Trainer(Model model, Compilation compilation, Distribution distribution, TrainerOptions options = {});
  ~Trainer();

  // --- before anything is allocated -------------------------------------------------------------------------------------------------
  const Model& model() const;
  const Distribution& distribution() const;
  const std::vector<VariableReport>& variables() const;
  const std::vector<std::string>& warnings() const;  // of the layout map
  const std::vector<std::string>& notes() const;     // variables that no rule matches, with their bytes
  // The fields a dataset needs to have: the model's inputs and, unless for kPredict, its targets.
  std::vector<FieldSpec> fields(StepKind kind) const;
  // One program; compiled when first asked for.
  const Compiled& program(StepKind kind, int64_t batch);
  // Everything `fit` on `samples` samples would run (the full batch, the last partial one, validation): compiled now. 0: the full batch
  // only.
  void prepare_fit(int64_t samples, int64_t validation_samples = 0);
  // Of each device, over all programs compiled so far.
  std::vector<DeviceMemory> memory() const;
  int64_t device_memory() const;  // the budget, bytes
  bool fits() const;
  // Error(kMemory) with the breakdown of the fullest device when the programs compiled so far do not fit.
  void require_fit() const;

  // --- running ----------------------------------------------------------------------------------------------------------------------
  void initialize();                                  // weights and optimizer state, from the seed
  void check_weights(const std::string& path) const;  // throws what load_weights would, and allocates nothing
  void load_weights(const std::string& path);         // safetensors, shard by shard; errors are kWeights
  void save_weights(const std::string& path);         // shard by shard, to a temporary file, renamed
  // Errors: Error(kDiverged) for a loss that is not finite, unless OnNan::kWarn. It names the first tensor that was not, all state is that
  // before the step, and the trainer is good for more.
  BatchResult train_batch(const Dataset& data, std::span<const int64_t> samples);
  BatchResult evaluate_batch(const Dataset& data, std::span<const int64_t> samples);
  void set_batch_size(int64_t batch_size);
  History fit(const Dataset& data, const FitOptions& options);
  Logs evaluate(const Dataset& data, Callback* progress = nullptr);
  // Outputs in the order of the samples: `write` gets output number, first sample, how many, and that many rows of values.
  void predict(const Dataset& data, const std::function<void(int, int64_t, int64_t, const float*)>& write, Callback* progress = nullptr);
  // The whole logical tensor, put together from its shards. Gradients only with keep_gradients, after train_batch.
  std::vector<float> weight(const std::string& path);
  std::vector<float> weight(const std::string& path, int64_t first, int64_t count);  // elements of it, row-major: for what is too large
  std::optional<std::string> find_bad_variable();  // "variable 'dense/kernel' holds nan", of the first that is not all finite
  std::vector<float> gradient(const std::string& path);
  // What one device holds of a variable, of the local shape. Copies on several devices are equal in bits.
  std::vector<float> shard(const std::string& path, int64_t device);
  void request_stop() noexcept;  // fit ends after the step in progress

  std::vector<int64_t> allocated_bytes() const;     // of each device's arena, measured
  std::vector<int64_t> communicated_bytes() const;  // received by each device in the last step, counted
  int64_t updates() const;                          // made so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace espalier::nn
