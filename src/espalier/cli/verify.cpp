// espalier verify: the same training on the mesh and on one device, compared after every step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "espalier/base/machine_memory.h"
#include "espalier/base/text.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/difference.h"
#include "espalier/cli/fit_budget.h"
#include "espalier/cli/output.h"
#include "espalier/cli/progress.h"
#include "espalier/cli/report.h"
#include "espalier/cli/session.h"
#include "espalier/data/order.h"
#include "espalier/nn/non_finite.h"

namespace espalier::cli {
namespace {

constexpr int64_t kDefaultSteps = 3;  // the first shows forward and backward, the second the update, the third the optimizer's state

// Gradients are compared against at least this part of the step's largest: sums of terms of that size round at some 1e-7 of it (a batch
// normalisation's sums at several), and what rounding leaves of a gradient that is zero (of a bias in front of it, say) is no difference.
constexpr double kFloor = 1e-1;

// Gradients are compared too, unless the machine has no room for them.
enum class Scope { kEverything, kLossesAndWeights };

constexpr int64_t kPiece = 1 << 24;  // elements: weights are compared in pieces of 64 MiB

struct FirstDifference {
  int64_t step = 0;
  std::string kind, name;
  std::optional<std::string> device;  // that holds the element; none for the loss
  std::vector<int64_t> index;
  double reference = 0, sharded = 0;
};

struct Comparison {
  int64_t steps = 0, tensors = 0;
  double tolerance = 0, largest = 0;
  std::string largest_where;
  std::optional<FirstDifference> first;
};

std::vector<int64_t> unravel(int64_t index, const Dims& shape) {
  std::vector<int64_t> place(static_cast<size_t>(shape.rank()));
  for (int d = shape.rank() - 1; d >= 0; --d) {
    place[static_cast<size_t>(d)] = index % shape[d];
    index /= shape[d];
  }
  return place;
}

// The first device whose shard has the element.
std::string holder(const nn::VariableReport& variable, const DeviceMesh& mesh, const std::vector<int64_t>& index) {
  for (int64_t device = 0; device < mesh.size(); ++device) {
    Box box = shard_box(variable.sharding, variable.type.shape, mesh, device);
    bool inside = true;
    for (int d = 0; d < variable.type.shape.rank(); ++d) {
      int64_t i = index[static_cast<size_t>(d)];
      inside &= i >= box.offset[d] && i < box.offset[d] + box.shape[d];
    }
    if (inside) return mesh.devices()[static_cast<size_t>(device)];
  }
  return mesh.devices()[0];
}

class Comparer {
 public:
  Comparer(nn::Trainer& sharded, nn::Trainer& reference, const nn::Optimizer& optimizer, double tolerance)
      : sharded_(sharded), reference_(reference), optimizer_(optimizer) {
    result_.tolerance = tolerance;
  }

  void loss(int64_t step, double sharded, double reference) {
    const float a = static_cast<float>(sharded), b = static_cast<float>(reference);
    note_difference(largest_difference({&a, 1}, {&b, 1}), step, "loss", "loss", nullptr, {&a, 1}, {&b, 1});
    ++result_.tensors;
  }
  void gradients(int64_t step) {
    const double floor = kFloor * largest_gradient();
    for (const nn::VariableReport& variable : sharded_.variables()) {
      if (!variable.trainable) continue;
      std::vector<float> a = sharded_.gradient(variable.path), b = reference_.gradient(variable.path);
      note_difference(largest_difference(a, b, floor), step, "gradient", variable.path, &variable, a, b);
      ++result_.tensors;
      add_slack(optimizer_, b, std::max(largest_magnitude(b), floor), result_.tolerance, &slack_[variable.path]);
    }
  }
  void weights(int64_t step) {
    for (const nn::VariableReport& variable : sharded_.variables()) {
      const std::vector<float>& slack = slack_[variable.path];
      const double scale = variable.type.shape.volume() > kPiece ? largest_weight(variable) : 0;  // one piece has its own
      for_pieces(variable, [&](int64_t first, int64_t count) {
        const std::vector<float> a = sharded_.weight(variable.path, first, count), b = reference_.weight(variable.path, first, count);
        const auto allowed = slack.empty() ? std::span<const float>() : std::span(slack).subspan(static_cast<size_t>(first), a.size());
        note_difference(weight_difference(a, b, allowed, scale), step, "weight", variable.path, &variable, a, b, first);
      });
      ++result_.tensors;
    }
  }
  Comparison& result() { return result_; }

 private:
  void note_difference(const Difference& difference, int64_t step, const std::string& kind, const std::string& name,
                       const nn::VariableReport* variable, std::span<const float> sharded, std::span<const float> reference,
                       int64_t offset = 0) {
    if (difference.relative > result_.largest) {
      result_.largest = difference.relative;
      result_.largest_where = fmt::format("{} '{}', step {}", kind, name, step);
    }
    if (result_.first || difference.relative <= result_.tolerance) return;
    FirstDifference first{.step = step, .kind = kind, .name = name, .device = {}, .index = {}, .reference = 0, .sharded = 0};
    if (variable) {
      first.index = unravel(offset + difference.index, variable->type.shape);
      first.device = holder(*variable, sharded_.distribution().mesh, first.index);
    }
    first.reference = reference[static_cast<size_t>(difference.index)];
    first.sharded = sharded[static_cast<size_t>(difference.index)];
    result_.first = std::move(first);
  }

  template <class F>
  static void for_pieces(const nn::VariableReport& variable, const F& f) {
    const int64_t elements = variable.type.shape.volume();
    for (int64_t first = 0; first < elements; first += kPiece) f(first, std::min(kPiece, elements - first));
  }

  double largest_weight(const nn::VariableReport& variable) {
    double largest = 0;
    for_pieces(variable, [&](int64_t first, int64_t count) {
      largest = std::max(largest, largest_magnitude(reference_.weight(variable.path, first, count)));
    });
    return largest;
  }

  double largest_gradient() {
    double largest = 0;
    for (const nn::VariableReport& variable : reference_.variables())
      if (variable.trainable) largest = std::max(largest, largest_magnitude(reference_.gradient(variable.path)));
    return largest;
  }

  nn::Trainer &sharded_, &reference_;
  const nn::Optimizer& optimizer_;
  std::map<std::string, std::vector<float>> slack_;  // of each weight, see add_slack
  Comparison result_;
};

// Calls step(samples) for each batch in the order that fit would take them.
void for_each_batch(const Options& options, const Dataset& data, int64_t steps,
                    const std::function<void(int64_t, std::span<const int64_t>)>& step) {
  int64_t done = 0;
  for (int64_t epoch = 0; done < steps; ++epoch) {
    const std::vector<int64_t> order = epoch_order(data.size(), options.seed, epoch, options.shuffle ? Shuffle::kYes : Shuffle::kNo);
    for (int64_t first = 0, count = 0; first < data.size() && done < steps; first += count) {
      count = std::min(options.batch_size, data.size() - first);
      step(++done, std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
    }
  }
}

// Where both runs have lost their numbers nothing is left to compare.
[[noreturn]] void refuse_nothing_to_compare(const std::string& what, int64_t step) {
  throw Error(ErrorKind::kDiverged, fmt::format("{} in step {}, on the mesh and on one device alike", what, step), "",
              "compare fewer steps or lower the learning rate");
}

Comparison compare(const Options& options, const nn::Optimizer& optimizer, nn::Trainer& sharded, nn::Trainer& reference,
                   const Dataset& data, Scope scope) {
  const int64_t steps = options.steps ? options.steps : kDefaultSteps;
  Comparer comparer(sharded, reference, optimizer, options.tolerance);
  Progress progress(progress_form(), "verify", 1, std::min(steps * options.batch_size, data.size()));
  comparer.weights(0);
  for_each_batch(options, data, steps, [&](int64_t step, std::span<const int64_t> samples) {
    if (comparer.result().first) return;  // everything behind the first difference differs too
    const double a = sharded.train_batch(data, samples).loss, b = reference.train_batch(data, samples).loss;
    comparer.loss(step, a, b);
    if (!std::isfinite(a) && !std::isfinite(b)) refuse_nothing_to_compare(fmt::format("loss is {}", nn::text_of(b)), step);
    if (scope == Scope::kEverything) comparer.gradients(step);
    comparer.weights(step);
    comparer.result().steps = step;
    if (!options.quiet) progress.on_batch_end(step, std::min(step * options.batch_size, data.size()), {{"loss", a}});
  });
  if (!comparer.result().first)
    if (auto bad = reference.find_bad_variable()) refuse_nothing_to_compare(*bad, comparer.result().steps);
  return comparer.result();
}

Json verify_json(const nn::Trainer& trainer, const Comparison& result) {
  Json first;
  if (const auto& f = result.first)
    first = {{"step", f->step},   {"kind", f->kind},           {"name", f->name},      {"device", f->device ? Json(*f->device) : Json()},
             {"index", f->index}, {"reference", f->reference}, {"sharded", f->sharded}};
  return {{"mesh", mesh_json(trainer.distribution().mesh)},
          {"equal", !result.first},
          {"steps", result.steps},
          {"tolerance", result.tolerance},
          {"max_relative_difference", result.largest},
          {"first_difference", first}};
}

std::string verify_text(const nn::Trainer& trainer, const Comparison& result, Scope scope) {
  const std::string mesh = to_string(trainer.distribution().mesh);
  if (const auto& f = result.first)
    return fmt::format("not equal: {} '{}' differs first, in step {}{}\n  one device {:.9g}, sharded {:.9g}; tolerance {:g}\n", f->kind,
                       f->name, f->step, f->device ? fmt::format(", at ({}) on '{}'", fmt::join(f->index, ", "), *f->device) : "",
                       f->reference, f->sharded, result.tolerance);
  std::string text = fmt::format("equal: {} on mesh {} and on one device\n", counted(result.steps, "step"), mesh);
  text += fmt::format("  {} losses{} and weights compared, tolerance {:g}\n", format_count(result.tensors),
                      scope == Scope::kEverything ? ", gradients" : "", result.tolerance);
  return text + (result.largest == 0 ? "  no difference at all\n"
                                     : fmt::format("  largest relative difference {:.2g} ({})\n", result.largest, result.largest_where));
}

// The run on the mesh and the one on one device, compiled.
struct Runs {
  std::unique_ptr<nn::Trainer> sharded, reference;
  std::unique_ptr<Dataset> data;
};

// All arenas, and what comparing gradients takes: the largest tensor twice, and the slack of every weight.
int64_t bytes_of(const Runs& runs) {
  int64_t bytes = 0, largest = 0;
  for (const nn::Trainer* trainer : {runs.sharded.get(), runs.reference.get()})
    for (const nn::DeviceMemory& device : trainer->memory()) bytes += device.arena;
  for (const nn::VariableReport& variable : runs.sharded->variables()) {
    bytes += variable.type.bytes();
    largest = std::max(largest, variable.type.bytes());
  }
  return bytes + 2 * largest;
}

Runs make_runs(const Options& options, Job& job, Scope scope) {
  job.options.keep_gradients = scope == Scope::kEverything;
  Runs runs;
  runs.sharded = make_trainer(options, job);
  runs.data = open_samples(options, *runs.sharded, DataSplit::kTrain, nn::StepKind::kTrain);
  auto prepare = [&](nn::Trainer& any) { compile_batches(any, nn::StepKind::kTrain, runs.data->size(), options.batch_size); };
  prepare(*runs.sharded);

  Job reference_job = job;
  reference_job.distribution = one_device();
  reference_job.options.device_memory = 0;  // the reference is as large as this machine allows
  reference_job.options.unmatched = Unmatched::kReplicate;
  runs.reference =
      std::make_unique<nn::Trainer>(reference_job.model, reference_job.compilation, reference_job.distribution, reference_job.options);
  prepare(*runs.reference);
  if (scope == Scope::kEverything && bytes_of(runs) > machine_memory()) return runs;  // it will be asked again, for less
  require_fit(job, *runs.sharded, prepare);
  require_fit(reference_job, *runs.reference, prepare);
  return runs;
}

}  // namespace

int verify(const Options& given) {
  Options options = given;
  if (options.data.empty()) options.data = "synthetic";
  Job job = read_job(options);
  Scope scope = Scope::kEverything;
  Runs runs = make_runs(options, job, scope);
  if (const int64_t bytes = bytes_of(runs); bytes > machine_memory()) {
    note(fmt::format("comparing gradients too would take {} of this machine's {}: losses and weights are compared", format_bytes(bytes),
                     format_bytes(machine_memory())));
    scope = Scope::kLossesAndWeights;
    runs = make_runs(options, job, scope);
  }
  prepare_weights(options, *runs.sharded, Untrained::kExpected);
  prepare_weights(options, *runs.reference, Untrained::kExpected);
  Comparison result = compare(options, job.compilation.optimizer, *runs.sharded, *runs.reference, *runs.data, scope);
  if (options.json)
    print_json(verify_json(*runs.sharded, result));
  else
    write_output(verify_text(*runs.sharded, result, scope));
  return result.first ? 1 : 0;
}

}  // namespace espalier::cli
