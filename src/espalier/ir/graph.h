#pragma once
// The tensor IR: a straight list of ops over values, in order of execution. The whole step (forward, backward, update) is one Graph of
// logical shapes; the partitioned program is the same Graph with a mesh, a sharding on every value and collectives as ordinary ops.
// It prints and parses (text.h). A Graph owns its ops and values; ids are indices and stay valid while ops are only appended.
#include <memory>
#include <string>
#include <vector>

#include "espalier/ir/op_def.h"
#include "espalier/mesh/sharding.h"

namespace espalier {

enum class Phase : uint8_t { kForward, kBackward, kUpdate };
const char* to_string(Phase phase);

// What an input or output is for: the memory report and the runtime tell them apart.
enum class Role : uint8_t {
  kVariable,   // a model's variable: lives in the arena from step to step
  kOptimizer,  // optimizer state: likewise
  kData,       // a batch's samples: filled by the host before each run
  kScalar,     // learning rate, step counter: one value, the same on every device
  kGradient,   // outputs only: kept for `verify`
  kResult,     // outputs only: losses, metrics, predictions, read by the host after each run
};
const char* to_string(Role role);

struct Value {
  TensorType type;
  Sharding sharding;        // replicated until partitioned
  int32_t op = -1;          // the producer; -1 for an input
  int16_t result = 0;       // which result of it
  std::string name = {};    // variable path, data name; "" for most
};

struct Op {
  const OpDef* def = nullptr;
  std::vector<ValueId> operands = {}, results = {};
  Attrs attrs = {};
  Phase phase = Phase::kForward;
  std::string scope = {};   // the layer's path
  std::string reason = {};  // why a collective stands here
};

struct Input {
  ValueId value = kNoValue;
  Role role = Role::kData;
  std::string name = {};
};

struct Output {
  ValueId value = kNoValue;
  Role role = Role::kResult;
  std::string name = {};   // kVariable and kOptimizer: the input's name, whose buffer it replaces
};

class Graph {
 public:
  std::string name;
  std::shared_ptr<const DeviceMesh> mesh;  // null before partitioning
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<Input> inputs;
  std::vector<Output> outputs;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const TensorType& type(ValueId id) const { return value(id).type; }
  const Input* find_input(const std::string& name) const;
  const Output* find_output(const std::string& name) const;

  ValueId add_input(Role role, const std::string& name, const TensorType& type);
  void add_output(Role role, const std::string& name, ValueId value);
  // Appends an op; result types follow from its rule. Errors name the scope.
  const Op& append(Op op);
};

std::vector<TensorType> operand_types(const Graph& graph, const Op& op);
FactorRule rule_of(const Graph& graph, const Op& op);

// Appends ops by name, with the current phase and scope. What layers, losses, gradients and optimizers write with.
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  ValueId op(const std::string& name, std::vector<ValueId> operands, Attrs attrs = {});  // of one result
  std::vector<ValueId> ops(const std::string& name, std::vector<ValueId> operands, Attrs attrs = {});

  Graph& graph() { return graph_; }
  Dims shape(ValueId id) const { return graph_.type(id).shape; }  // a copy: the next op moves the list of values
  Phase phase = Phase::kForward;
  std::string scope;

 private:
  Graph& graph_;
};

}  // namespace espalier
