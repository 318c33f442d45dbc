#pragma once
// What a layer sees while a model is traced: its weights as graph values, the builder, and whether the step trains. One Trace lives as
// long as one graph is being written.
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "espalier/nn/formula.h"
#include "espalier/nn/layer.h"

namespace espalier::nn {

enum class Mode { kTraining, kInference };

// How the layers of one model are called: chosen names where none was given, and the paths of their weights (model.h).
struct LayerEntry {
  std::string name;     // "dense_1"
  std::string path;     // "sequential/dense_1"
  bool frozen = false;  // by itself or by a model around it
};
using LayerTable = std::unordered_map<const LayerDef*, LayerEntry>;

class Trace {
 public:
  Trace(Graph& graph, const LayerTable& table, Mode mode, uint64_t seed) : builder_(graph), table_(table), mode_(mode), seed_(seed) {}

  Builder& builder() { return builder_; }
  Dims shape(ValueId id) const { return builder_.shape(id); }
  Mode mode() const { return mode_; }
  uint64_t seed() const { return seed_; }

  // --- of the layer being called
  bool frozen() const { return current_->frozen; }
  Formula weight(const std::string& name);
  // The value a weight has from here on: of later calls in this step, and after it.
  void update_weight(const std::string& name, const Formula& value);
  uint32_t stream() const;  // of random numbers, another one for each call of a layer
  ValueId random_step();    // i32 (): differs from step to step

  // --- of the model
  std::vector<ValueId> call(const LayerDef& layer, const std::vector<ValueId>& inputs);
  ValueId input(Role role, const std::string& name, const TensorType& type);  // an input of the graph from its first use on
  const std::map<std::string, ValueId>& updated() const { return updated_; }
  std::vector<ValueId>& losses() { return losses_; }  // activity penalties

 private:
  Builder builder_;
  const LayerTable& table_;
  Mode mode_;
  uint64_t seed_;
  const LayerEntry* current_ = nullptr;
  const LayerDef* layer_ = nullptr;
  std::unordered_map<const LayerDef*, int> calls_;
  std::unordered_map<std::string, ValueId> inputs_;
  std::map<std::string, ValueId> updated_;
  std::vector<ValueId> losses_;
};

}  // namespace espalier::nn
