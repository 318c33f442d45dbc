#include "espalier/nn/trace.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "espalier/base/text.h"
#include "espalier/nn/layer_trace.h"
#include "espalier/nn/model_def.h"
#include "espalier/passes/autodiff.h"

namespace espalier::nn {

const char* to_string(StepKind kind) {
  switch (kind) {
    case StepKind::kTrain:
      return "train";
    case StepKind::kEvaluate:
      return "evaluate";
    case StepKind::kPredict:
      return "predict";
  }
  return "";
}

namespace {

constexpr int64_t kMaxBatch = int64_t{1} << 40;  // samples; far more than any machine holds, and what is counted of them fits 64 bits

Dims with_batch(int64_t batch, const Dims& sample) {
  Dims shape = {batch};
  for (int64_t size : sample) shape.push_back(size);
  return shape;
}

class StepTracer {
 public:
  StepTracer(const Model& model, const Compilation& compilation, int64_t batch, StepKind kind, const StepOptions& options)
      : model_(model),
        compilation_(compilation),
        options_(options),
        table_(model.layer_table()),
        variables_(model.variables()),
        outputs_(resolve(compilation, model.output_names())),
        step_{.graph = {}, .kind = kind, .batch = batch},
        trace_(step_.graph, table_, kind == StepKind::kTrain ? Mode::kTraining : Mode::kInference, options.seed),
        builder_(trace_.builder()) {
    step_.graph.name = fmt::format("{}_{}", model.name(), to_string(kind));
  }

  Step run() {
    if (step_.kind == StepKind::kTrain) add_state();
    forward();
    if (step_.kind == StepKind::kPredict) {
      write_predictions();
    } else {
      losses();
      metrics();
    }
    if (step_.kind == StepKind::kTrain) update();
    return std::move(step_);
  }

 private:
  void add_state() {
    for (const ModelState& state : model_state(model_, compilation_)) trace_.input(state.role, state.name, state.type);
  }

  ValueId add_data(const std::string& prefix, const std::string& source, DataInput::Kind kind, const TensorType& type) {
    step_.data.push_back({prefix + source, source, kind, type});
    return trace_.input(Role::kData, prefix + source, type);
  }

  void forward() {
    const ModelDef& def = model_.definition();
    std::vector<std::string> names = model_.input_names();
    std::set<const Node*> used;
    for (const auto& node : def.nodes) used.insert(node.get());
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < def.inputs.size(); ++i) {
      TensorType type = {DType::kF32, with_batch(step_.batch, def.inputs[i].shape())};
      bool is_used = used.contains(def.inputs[i].node().get());
      inputs.push_back(is_used ? add_data("input/", names[i], DataInput::Kind::kSample, type) : kNoValue);
    }
    for (ValueId value : def.call(trace_, inputs)) predictions_.push_back(prediction_of(step_.graph, value));
  }

  void write_predictions() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      std::string name = "prediction/" + outputs_[i].name;
      step_.graph.add_output(Role::kResult, name, predictions_[i].value);
      step_.predictions.push_back({name, outputs_[i].name, step_.graph.type(predictions_[i].value)});
    }
  }

  std::string where(const OutputCompilation& output) const { return fmt::format("output '{}'", output.name); }

  // Classes for a loss or, without a loss, a metric that compares with classes; else numbers of the output's shape.
  TensorType target_of(const OutputCompilation& output, const Dims& prediction) const {
    if (output.loss) return target_type(*output.loss, prediction, where(output));
    for (const Metric& metric : output.metrics) {
      if (metric.kind == Metric::Kind::kLoss) return target_type(*metric.loss, prediction, where(output));
      if (metric.kind == Metric::Kind::kSparseCategoricalAccuracy)
        return target_type(Loss(Loss::Kind::kSparseCategoricalCrossentropy), prediction, where(output));
    }
    return target_type(Loss(Loss::Kind::kMeanSquaredError), prediction, where(output));
  }

  void losses() {
    std::vector<std::pair<std::string, ValueId>> of_outputs;
    std::optional<Formula> total;
    auto add_to_total = [&](const Formula& term) { total = total ? *total + term : term; };
    builder_.scope = "loss";
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const OutputCompilation& output = outputs_[i];
      targets_.push_back(kNoValue);
      if (!output.loss && output.metrics.empty()) continue;
      targets_[i] = add_data("target/", output.name, DataInput::Kind::kTarget, target_of(output, trace_.shape(predictions_[i].value)));
      if (!output.loss) continue;
      ValueId value = loss_value(builder_, *output.loss, predictions_[i], targets_[i]);
      of_outputs.emplace_back(output.name, value);
      add_to_total(output.weight == 1 ? Formula::of(value) : Formula::of(value) * output.weight);
    }
    if (!total) usage_error(fmt::format("model '{}' has no loss", model_.name()), "", "compile it with one");
    for (ValueId term : trace_.losses()) add_to_total(Formula::of(term));
    for (const Variable& variable : variables_)
      if (variable.trainable)
        if (auto term = penalty(builder_, variable.regularizer, trace_.input(Role::kVariable, variable.path, variable.type)))
          add_to_total(Formula::of(*term));
    loss_ = total->emit(builder_);
    builder_.scope.clear();
    write_losses(of_outputs);
  }

  void write_losses(const std::vector<std::pair<std::string, ValueId>>& of_outputs) {
    add_result("loss", "loss", StepResult::Kind::kMean, step_.batch, loss_);
    if (of_outputs.size() < 2) return;
    for (const auto& [name, value] : of_outputs) add_result("loss/" + name, name + "_loss", StepResult::Kind::kMean, step_.batch, value);
  }

  void add_result(const std::string& output, const std::string& history, StepResult::Kind kind, int64_t count, ValueId value) {
    step_.graph.add_output(Role::kResult, output, value);
    step_.results.push_back({output, history, kind, count});
  }

  void metrics() {
    builder_.scope = "metrics";
    std::map<std::string, int> used;  // a second metric of one name is NAME_1, as in Keras
    for (size_t i = 0; i < outputs_.size(); ++i)
      for (const Metric& metric : outputs_[i].metrics) {
        std::string name = outputs_.size() == 1 ? metric.name : outputs_[i].name + "_" + metric.name;
        if (int earlier = used[name]++; earlier > 0) name = fmt::format("{}_{}", name, earlier);
        MetricSum value = metric_sum(builder_, metric, predictions_[i], targets_[i], where(outputs_[i]));
        add_result(fmt::format("metric/{}/sum", name), name, StepResult::Kind::kSum, value.count, value.sum);
      }
    builder_.scope.clear();
  }

  void update() {
    std::vector<const Variable*> trained;
    std::vector<ValueId> values;
    for (const Variable& variable : variables_)
      if (variable.trainable) {
        trained.push_back(&variable);
        values.push_back(trace_.input(Role::kVariable, variable.path, variable.type));
      }
    std::vector<ValueId> gradients = values.empty() ? std::vector<ValueId>{} : differentiate(step_.graph, loss_, values);
    builder_.phase = Phase::kUpdate;
    std::vector<UpdateTarget> targets;
    for (size_t i = 0; i < trained.size(); ++i) targets.push_back(update_target(*trained[i], values[i], gradients[i]));
    if (!targets.empty()) write_updates(trained, apply_updates(builder_, compilation_.optimizer, targets, scalars()));
    for (const auto& [path, value] : trace_.updated()) step_.graph.add_output(Role::kVariable, path, once_finite(value));
  }

  UpdateTarget update_target(const Variable& variable, ValueId value, ValueId gradient) {
    UpdateTarget target = {.variable = value, .gradient = gradient, .slots = {}, .scope = variable.layer};
    if (gradient == kNoValue) target.gradient = broadcast_scalar(0, variable.type.shape).emit(builder_);  // the loss does not depend on it
    for (const std::string& slot : slot_names(compilation_.optimizer))
      target.slots.push_back(trace_.input(Role::kOptimizer, variable.path + "/" + slot, variable.type));
    if (options_.keep_gradients) step_.graph.add_output(Role::kGradient, "gradient/" + variable.path, target.gradient);
    return target;
  }

  // Whatever state is made from passes through here, so that no step writes any whose loss is not finite.
  ValueId once_finite(ValueId value) { return options_.on_nan == OnNan::kStop ? builder_.op("require_finite", {value, loss_}) : value; }

  UpdateScalars scalars() {
    UpdateScalars scalars = {.learning_rate = once_finite(trace_.input(Role::kScalar, "learning_rate", {DType::kF32, {}}))};
    if (compilation_.optimizer.kind != Optimizer::Kind::kSgd) scalars.step = trace_.input(Role::kScalar, "step", {DType::kF32, {}});
    return scalars;
  }

  void write_updates(const std::vector<const Variable*>& trained, const std::vector<std::vector<ValueId>>& updates) {
    std::vector<std::string> slots = slot_names(compilation_.optimizer);
    for (size_t i = 0; i < trained.size(); ++i) {
      step_.graph.add_output(Role::kVariable, trained[i]->path, updates[i][0]);
      for (size_t slot = 0; slot < slots.size(); ++slot)
        step_.graph.add_output(Role::kOptimizer, trained[i]->path + "/" + slots[slot], updates[i][slot + 1]);
    }
  }

  const Model& model_;
  const Compilation& compilation_;
  StepOptions options_;
  LayerTable table_;
  std::vector<Variable> variables_;
  std::vector<OutputCompilation> outputs_;
  Step step_;
  Trace trace_;
  Builder& builder_;
  std::vector<Prediction> predictions_;
  std::vector<ValueId> targets_;
  ValueId loss_ = kNoValue;
};

}  // namespace

Step trace_step(const Model& model, const Compilation& compilation, int64_t batch, StepKind kind, const StepOptions& options) {
  if (batch < 1 || batch > kMaxBatch)
    usage_error(fmt::format("a batch of {}", counted(batch, "sample")), "", fmt::format("a batch has 1 to {}", format_count(kMaxBatch)));
  check_optimizer(compilation.optimizer);
  return StepTracer(model, compilation, batch, kind, options).run();
}

std::vector<ModelState> model_state(const Model& model, const Compilation& compilation) {
  std::vector<ModelState> state;
  std::set<std::string> names;
  std::vector<Variable> variables = model.variables();
  for (const Variable& variable : variables) {
    state.push_back({variable.path, Role::kVariable, variable.type, variable.path});
    names.insert(variable.path);
  }
  for (const Variable& variable : variables) {
    if (!variable.trainable) continue;
    for (const std::string& slot : slot_names(compilation.optimizer)) {
      std::string name = variable.path + "/" + slot;
      if (!names.insert(name).second) usage_error(fmt::format("'{}' is a variable and an optimizer's slot", name), "", "rename the layer");
      state.push_back({name, Role::kOptimizer, variable.type, variable.path});
    }
  }
  return state;
}

Graph trace_initialization(const Model& model, const Compilation& compilation, uint64_t seed) {
  Graph graph;
  graph.name = model.name() + "_initialize";
  Builder builder(graph);
  builder.phase = Phase::kUpdate;
  for (const ModelState& state : model_state(model, compilation)) graph.add_input(state.role, state.name, state.type);
  for (const Variable& variable : model.variables()) {
    builder.scope = variable.layer;
    graph.add_output(Role::kVariable, variable.path, initial_value(builder, variable.initializer, variable.type, variable.path, seed));
  }
  for (const ModelState& state : model_state(model, compilation)) {
    if (state.role != Role::kOptimizer) continue;
    builder.scope = state.variable.substr(0, state.variable.rfind('/'));
    graph.add_output(state.role, state.name, initial_value(builder, Zeros(), state.type, state.name, seed));
  }
  return graph;
}

}  // namespace espalier::nn
