#include "espalier/nn/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "espalier/base/cores.h"
#include "espalier/base/machine_memory.h"
#include "espalier/base/text.h"
#include "espalier/data/order.h"
#include "espalier/nn/trainer_state.h"

namespace espalier::nn {
namespace {

double now_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// How many batches n samples take; the sum of the two may be past 64 bits.
int64_t parts_of(int64_t n, int64_t batch) { return n / batch + (n % batch != 0); }

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

// Sums over the batches of an epoch; divided once, at the end.
class LogSums {
 public:
  void add(const BatchResult& batch) {
    for (const BatchResult::Entry& entry : batch.entries) put(entry.name, entry.sum, entry.count);
  }
  Logs logs() const {
    Logs logs;
    for (const auto& [name, sum, count] : sums_) logs.emplace_back(name, count > 0 ? sum / count : 0);
    return logs;
  }

 private:
  struct Sum {
    std::string name;
    double sum = 0, count = 0;
  };
  void put(const std::string& name, double sum, double count) {
    for (Sum& known : sums_)
      if (known.name == name) {
        known.sum += sum;
        known.count += count;
        return;
      }
    sums_.push_back({name, sum, count});
  }
  std::vector<Sum> sums_;
};

void append(History& history, const std::string& prefix, const Logs& logs) {
  for (const auto& [name, value] : logs) {
    std::string key = prefix + name;
    auto at = std::find_if(history.epochs.begin(), history.epochs.end(), [&](const auto& entry) { return entry.first == key; });
    if (at == history.epochs.end()) at = history.epochs.insert(at, {key, {}});
    at->second.push_back(value);
  }
}

// The field of a data set for the data input "input/NAME" or "target/NAME".
int field_of(const Dataset& data, const std::string& input) {
  for (size_t f = 0; f < data.fields().size(); ++f)
    if (input == (data.fields()[f].role == FieldRole::kInput ? "input/" : "target/") + data.fields()[f].name) return static_cast<int>(f);
  usage_error("the data set lacks a field that the model needs", fmt::format("'{}'", input), "open it with Trainer::fields()");
}

// What the numbers of a target mean, so that a data set can check them before training.
Values target_values(const OutputCompilation& output, DType dtype) {
  if (dtype == DType::kI32) return Values::kClass;
  if (!output.loss) return Values::kReal;
  if (output.loss->kind == Loss::Kind::kCategoricalCrossentropy) return Values::kOneHot;
  return output.loss->kind == Loss::Kind::kBinaryCrossentropy ? Values::kBinary : Values::kReal;
}

}  // namespace

void Trainer::State::resolve_layouts() {
  std::vector<VariableShape> shapes;
  const std::vector<Variable> all = model.variables();
  for (const Variable& variable : all) shapes.push_back({variable.path, variable.type.shape, size_of(variable.type.dtype)});
  Resolution resolution = distribution.layout_map.resolve(shapes, options.unmatched);
  warnings = std::move(resolution.warnings);
  notes = std::move(resolution.notes);
  for (size_t i = 0; i < all.size(); ++i) {
    const ResolvedVariable& resolved = resolution.variables[i];
    variables.push_back({all[i].path, all[i].type, all[i].trainable, resolved.sharding, resolved.rule});
  }
  auto slot_sharding = [&](const VariableReport& v, Role role) {
    return role == Role::kOptimizer ? optimizer_state_sharding(distribution, v.sharding, v.type.shape, v.type.bytes()) : v.sharding;
  };
  for (const ModelState& spec : model_state(model, compilation)) {
    // A slot has the layout of its variable, cut further over its replicas; a scalar one is whole.
    auto variable = std::find_if(variables.begin(), variables.end(), [&](const VariableReport& v) { return v.path == spec.variable; });
    bool alike = variable != variables.end() && variable->type.shape == spec.type.shape;
    state.push_back({spec.name, spec.role, spec.type, alike ? slot_sharding(*variable, spec.role) : Sharding(spec.type.shape.rank())});
  }
}

Sharding Trainer::State::sharding_of_state(const std::string& name) const {
  for (const StateVariable& variable : state)
    if (variable.name == name) return variable.sharding;
  ESPALIER_ASSERT(false && "a step names state that the model does not have");
}

Pins Trainer::State::pins_for(const Graph& graph) const {
  Pins pins;
  for (const espalier::Input& input : graph.inputs) {
    int rank = graph.type(input.value).shape.rank();
    bool kept = input.role == Role::kVariable || input.role == Role::kOptimizer;
    pins.inputs.push_back(kept                        ? sharding_of_state(input.name)
                          : input.role == Role::kData ? batch_sharding(distribution, rank)
                                                      : Sharding(rank));
  }
  for (const Output& output : graph.outputs) {
    int rank = graph.type(output.value).shape.rank();
    if (output.role == Role::kVariable || output.role == Role::kOptimizer)
      pins.outputs.push_back(sharding_of_state(output.name));
    else if (output.role == Role::kGradient)
      pins.outputs.push_back(sharding_of_state(output.name.substr(sizeof("gradient/") - 1)));
    else
      pins.outputs.push_back(starts_with(output.name, "prediction/") ? batch_sharding(distribution, rank) : Sharding(rank));
  }
  return pins;
}

std::shared_ptr<const Compiled> Trainer::State::compile_step(const Graph& graph) const {
  CompileOptions compile_options{options.skip_passes, std::max(1, cores / static_cast<int>(std::min<int64_t>(mesh->size(), cores)))};
  return std::make_shared<Compiled>(compile(graph, mesh, pins_for(graph), state, compile_options));
}

Program& Trainer::State::program(int kind, int64_t batch) {
  auto [at, fresh] = programs.try_emplace({kind, batch});
  if (!fresh) return at->second;
  try {
    Program& program = at->second;
    if (kind == kInitialization)
      program.step.graph = trace_initialization(model, compilation, options.seed);
    else
      program.step =
          trace_step(model, compilation, batch, static_cast<StepKind>(kind), {options.keep_gradients, options.seed, options.on_nan});
    program.compiled = compile_step(program.step.graph);
    return program;
  } catch (...) {
    programs.erase(at);
    throw;
  }
}

// Bound to the devices. All programs compiled so far are bound at once, so that the arenas get their final size at the first run.
Program& Trainer::State::ready(int kind, int64_t batch) {
  Program& wanted = program(kind, batch);
  if (wanted.executable != nullptr) return wanted;
  if (executor == nullptr)
    executor = std::make_unique<Executor>(mesh, ExecutorOptions{.workers = cores, .trace = options.on_run ? &trace : nullptr});
  for (auto& [key, program] : programs)
    if (program.executable == nullptr) program.executable = executor->load(program.compiled);
  return wanted;
}

void Trainer::State::feed(const Program& program, const Dataset* data, std::span<const int64_t> samples) {
  const Graph& graph = program.compiled->graph;
  const Hands hands{executor->hands(), [&](const std::function<void(int)>& f) { executor->side_by_side(f); }};
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const espalier::Input& input = graph.inputs[i];
    const Value& value = graph.value(input.value);
    auto shard = [&](int64_t device) { return executor->input(*program.executable, static_cast<int>(i), device); };
    if (input.role == Role::kData) {
      feed_samples(value, *mesh, *data, field_of(*data, input.name), samples, shard, hands);
    } else if (input.role == Role::kScalar) {
      double number = input.name == "learning_rate" ? compilation.optimizer.learning_rate
                      : input.name == "step"        ? static_cast<double>(updates + 1)
                                                    : static_cast<double>(updates);
      feed_scalar(value, *mesh, number, shard);
    }
  }
}

void Trainer::State::run(Program& program, const Dataset* data, std::span<const int64_t> samples) {
  feed(program, data, samples);
  if (options.on_run) trace.clear();
  executor->run(*program.executable);
  last = &program;
  if (options.on_run) report_run(program);
}

void Trainer::State::report_run(const Program& program) {
  const bool initializes = program.step.batch == 0, trains = !initializes && program.step.kind == StepKind::kTrain;
  options.on_run(
      {*program.compiled, initializes ? "initialize" : to_string(program.step.kind), trains ? updates + 1 : updates, trace.events()});
}

// The samples are looked at first, then what the step began with, then what it made of them.
Divergence Trainer::State::find_divergence(const Program& program, const Dataset& data, std::span<const int64_t> samples) {
  Divergence found{.step = updates + 1, .learning_rate = compilation.optimizer.learning_rate};
  found.sample = find_bad_sample(data, samples);
  found.variable = find_bad_variable(*program.executable);
  try {
    const ProbedForward probed(program.step.graph);
    Program forward{.step = {.graph = probed.graph()}, .compiled = compile_step(probed.graph()), .executable = nullptr};
    forward.executable = executor->load(forward.compiled);
    feed(forward, &data, samples);
    executor->run(*forward.executable);
    std::vector<bool> finite;
    for (int p = 0; p < probed.count(); ++p) finite.push_back(scalar_result(forward, ProbedForward::output_name(p)) == 0);
    found.loss = scalar_result(forward, "loss");
    found.value = probed.first_bad(finite);
  } catch (const Error&) {  // it may lack the memory; what is known is told
  }
  trace.clear();
  return found;
}

double Trainer::State::scalar_result(const Program& program, const std::string& name) {
  const Graph& graph = program.compiled->graph;
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (graph.outputs[i].name == name) return *static_cast<const float*>(executor->output(*program.executable, static_cast<int>(i), 0));
  ESPALIER_ASSERT(false && "a step lacks a result it announced");
}

BatchResult Trainer::State::batch_result(const Program& program, int64_t samples) {
  BatchResult result{.samples = samples, .entries = {}};
  for (const StepResult& entry : program.step.results) {
    double value = scalar_result(program, entry.output), count = static_cast<double>(entry.count);
    result.entries.push_back({entry.history, entry.kind == StepResult::Kind::kMean ? value * count : value, count});
    if (entry.output == "loss") result.loss = value;
  }
  return result;
}

// --- the answers ------------------------------------------------------------------------------------------------------------------------

Trainer::Trainer(Model model, Compilation compilation, Distribution distribution, TrainerOptions options)
    : state_(std::make_unique<State>(std::move(model), std::move(compilation), std::move(distribution), std::move(options))) {
  state_->mesh = std::make_shared<const DeviceMesh>(state_->distribution.mesh);
  int available = static_cast<int>(available_cores().size());
  state_->cores = state_->options.threads > 0 ? state_->options.threads : available;
  set_batch_size(state_->options.batch_size);
  if (state_->options.purpose == Purpose::kInference) state_->compilation.optimizer = SGD();  // which keeps nothing between steps
  state_->resolve_layouts();
}

Trainer::~Trainer() = default;

void Trainer::set_batch_size(int64_t batch_size) {
  if (batch_size < 1) usage_error(fmt::format("batch size {} is below 1", batch_size), "batch_size", "give 1 or more");
  state_->options.batch_size = batch_size;
}

const Model& Trainer::model() const { return state_->model; }
const Distribution& Trainer::distribution() const { return state_->distribution; }
const std::vector<VariableReport>& Trainer::variables() const { return state_->variables; }
const std::vector<std::string>& Trainer::warnings() const { return state_->warnings; }
const std::vector<std::string>& Trainer::notes() const { return state_->notes; }

std::vector<FieldSpec> Trainer::fields(StepKind kind) const {
  const Model& model = state_->model;
  const std::vector<OutputCompilation> outputs = resolve(state_->compilation, model.output_names());
  std::vector<FieldSpec> fields;
  for (const DataInput& input : trace_step(model, state_->compilation, 1, kind).data) {
    FieldSpec field{.name = input.source, .role = FieldRole::kInput, .shape = Dims(input.type.shape.begin() + 1, input.type.shape.end())};
    for (size_t o = 0; o < outputs.size() && input.kind == DataInput::Kind::kTarget; ++o) {
      if (outputs[o].name != input.source) continue;
      field.role = FieldRole::kTarget;
      field.values = target_values(outputs[o], input.type.dtype);
      if (field.values == Values::kClass) field.classes = model.output_shapes()[o].back();
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

const Compiled& Trainer::program(StepKind kind, int64_t batch) { return *state_->program(static_cast<int>(kind), batch).compiled; }

void Trainer::prepare_fit(int64_t samples, int64_t validation_samples) {
  auto prepare = [&](StepKind kind, int64_t count) {
    int64_t full = std::min(count, state_->options.batch_size), rest = count % state_->options.batch_size;
    program(kind, full);
    if (rest != 0) program(kind, rest);
  };
  state_->program(kInitialization, 0);
  prepare(StepKind::kTrain, samples > 0 ? samples : state_->options.batch_size);
  if (validation_samples > 0) prepare(StepKind::kEvaluate, validation_samples);
}

std::vector<DeviceMemory> Trainer::memory() const {
  std::vector<DeviceMemory> devices(static_cast<size_t>(state_->mesh->size()));
  for (const auto& [key, program] : state_->programs)
    for (size_t d = 0; d < devices.size(); ++d) {
      const MemoryPlan& plan = program.compiled->memory[static_cast<size_t>(program.compiled->device_class[d])];
      if (plan.arena_bytes > devices[d].arena) devices[d] = {plan.peak, plan.arena_bytes};
    }
  return devices;
}

int64_t Trainer::device_memory() const {
  return state_->options.device_memory > 0 ? state_->options.device_memory : machine_memory() / state_->mesh->size();
}

bool Trainer::fits() const {
  std::vector<DeviceMemory> devices = memory();
  return std::all_of(devices.begin(), devices.end(), [&](const DeviceMemory& device) { return device.arena <= device_memory(); });
}

void Trainer::require_fit() const {
  std::vector<DeviceMemory> devices = memory();
  auto fullest = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.arena < b.arena; });
  if (fullest == devices.end() || fullest->arena <= device_memory()) return;
  const MemoryUse& use = fullest->use;
  throw Error(
      ErrorKind::kMemory,
      fmt::format("the model needs {} on a device that has {} (variables {}, gradients {}, optimizer {}, activations {}, communication {})",
                  format_bytes(fullest->arena), format_bytes(device_memory()), format_bytes(use.variables), format_bytes(use.gradients),
                  format_bytes(use.optimizer), format_bytes(use.activations), format_bytes(use.communication)),
      fmt::format("'{}'", state_->mesh->devices()[static_cast<size_t>(fullest - devices.begin())]),
      "cut its variables over more devices, or take a smaller batch");
}

// --- running ----------------------------------------------------------------------------------------------------------------------------

void Trainer::initialize() {
  require_fit();
  state_->updates = 0;
  Program& program = state_->ready(kInitialization, 0);
  state_->run(program, nullptr, {});
}

BatchResult Trainer::train_batch(const Dataset& data, std::span<const int64_t> samples) {
  auto count = static_cast<int64_t>(samples.size());
  Program& program = state_->ready(static_cast<int>(StepKind::kTrain), count);
  const bool stops = state_->options.on_nan == OnNan::kStop;
  try {
    state_->run(program, &data, samples);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDiverged) throw;
    throw divergence_error(state_->find_divergence(program, data, samples));
  }
  BatchResult result = state_->batch_result(program, count);
  if (stops && !std::isfinite(result.loss))  // nothing is trained, so that no update has waited for the loss
    throw divergence_error(state_->find_divergence(program, data, samples));
  ++state_->updates;
  return result;
}

BatchResult Trainer::evaluate_batch(const Dataset& data, std::span<const int64_t> samples) {
  auto count = static_cast<int64_t>(samples.size());
  Program& program = state_->ready(static_cast<int>(StepKind::kEvaluate), count);
  state_->run(program, &data, samples);
  return state_->batch_result(program, count);
}

History Trainer::fit(const Dataset& data, const FitOptions& options) {
  if (options.batch_size) set_batch_size(*options.batch_size);
  prepare_fit(data.size(), options.validation != nullptr ? options.validation->size() : 0);
  require_fit();
  if (state_->updates == 0 && state_->last == nullptr) initialize();
  History history;
  int64_t batch = state_->options.batch_size, steps_per_epoch = parts_of(data.size(), batch);
  auto done = [&] { return state_->stop || (options.steps > 0 && static_cast<int64_t>(history.step_losses.size()) >= options.steps); };
  for (int64_t epoch = 0; epoch < options.epochs && !done(); ++epoch) {
    for (Callback* callback : options.callbacks) callback->on_epoch_begin(epoch, steps_per_epoch);
    std::vector<int64_t> order = epoch_order(data.size(), state_->options.seed, epoch, options.shuffle ? Shuffle::kYes : Shuffle::kNo);
    LogSums sums;
    for (int64_t step = 0; step < steps_per_epoch && !done(); ++step) {
      int64_t first = step * batch, count = std::min(batch, data.size() - first);
      double start = now_seconds();
      BatchResult result = train_batch(data, std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
      history.step_seconds.push_back(now_seconds() - start);
      history.step_losses.push_back(result.loss);
      history.samples += count;
      history.seconds += history.step_seconds.back();
      sums.add(result);
      for (Callback* callback : options.callbacks) callback->on_batch_end(step, first + count, sums.logs());
    }
    Logs logs = sums.logs();
    append(history, "", logs);
    if (options.validation != nullptr && !state_->stop) {
      Logs validation = evaluate(*options.validation);
      append(history, "val_", validation);
      for (auto& [name, value] : validation) logs.emplace_back("val_" + name, value);
    }
    for (Callback* callback : options.callbacks) callback->on_epoch_end(epoch, logs);
  }
  history.stopped = state_->stop;
  return history;
}

Logs Trainer::evaluate(const Dataset& data, Callback* progress) {
  int64_t batch = state_->options.batch_size, steps = parts_of(data.size(), batch);
  std::vector<int64_t> order(static_cast<size_t>(data.size()));
  std::iota(order.begin(), order.end(), 0);
  if (progress != nullptr) progress->on_epoch_begin(0, steps);
  LogSums sums;
  for (int64_t step = 0; step < steps; ++step) {
    int64_t first = step * batch, count = std::min(batch, data.size() - first);
    sums.add(evaluate_batch(data, std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(count))));
    if (progress != nullptr) progress->on_batch_end(step, first + count, sums.logs());
  }
  if (progress != nullptr) progress->on_epoch_end(0, sums.logs());
  return sums.logs();
}

void Trainer::predict(const Dataset& data, const std::function<void(int, int64_t, int64_t, const float*)>& write, Callback* progress) {
  int64_t batch = state_->options.batch_size, steps = parts_of(data.size(), batch);
  if (progress != nullptr) progress->on_epoch_begin(0, steps);
  for (int64_t step = 0; step < steps; ++step) {
    int64_t first = step * batch, count = std::min(batch, data.size() - first);
    std::vector<int64_t> samples(static_cast<size_t>(count));
    std::iota(samples.begin(), samples.end(), first);
    Program& program = state_->ready(static_cast<int>(StepKind::kPredict), count);
    state_->run(program, &data, samples);
    const Graph& graph = program.compiled->graph;
    int number = 0;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      if (!starts_with(graph.outputs[i].name, "prediction/")) continue;
      auto shard = [&](int64_t device) {
        return const_cast<void*>(state_->executor->output(*program.executable, static_cast<int>(i), device));
      };
      write(number++, first, count, state_->gather(graph.value(graph.outputs[i].value), shard).data());
    }
    if (progress != nullptr) progress->on_batch_end(step, first + count, {});
  }
  if (progress != nullptr) progress->on_epoch_end(0, {});
}

void Trainer::request_stop() noexcept { state_->stop = true; }

std::vector<int64_t> Trainer::allocated_bytes() const {
  std::vector<int64_t> bytes(static_cast<size_t>(state_->mesh->size()), 0);
  for (size_t d = 0; d < bytes.size() && state_->executor != nullptr; ++d)
    bytes[d] = state_->executor->allocated_bytes(static_cast<int64_t>(d));
  return bytes;
}

std::vector<int64_t> Trainer::communicated_bytes() const {
  std::vector<int64_t> bytes(static_cast<size_t>(state_->mesh->size()), 0);
  for (size_t d = 0; d < bytes.size() && state_->executor != nullptr; ++d)
    bytes[d] = state_->executor->communicated_bytes(static_cast<int64_t>(d));
  return bytes;
}

int64_t Trainer::updates() const { return state_->updates; }

}  // namespace espalier::nn
