// espalier train: fits the model, and tells what it did.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "espalier/base/error.h"
#include "espalier/base/text.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/fit_budget.h"
#include "espalier/cli/interrupt.h"
#include "espalier/cli/output.h"
#include "espalier/cli/progress.h"
#include "espalier/cli/report.h"
#include "espalier/cli/session.h"
#include "espalier/cli/trace_file.h"

namespace espalier::cli {
namespace {

// Keeps what the first full batch communicated: the last batch of an epoch may be smaller.
class CountCommunication : public nn::Callback {
 public:
  CountCommunication(const nn::Trainer& trainer, int64_t batch) : trainer_(trainer), batch_(batch) {}
  void on_epoch_begin(int64_t, int64_t) override { before_ = 0; }
  void on_batch_end(int64_t, int64_t samples_done, const nn::Logs&) override {
    if (bytes_.empty() && samples_done - before_ == batch_) bytes_ = trainer_.communicated_bytes();
    before_ = samples_done;
  }
  const std::vector<int64_t>& bytes() const { return bytes_; }

 private:
  const nn::Trainer& trainer_;
  int64_t batch_, before_ = 0;
  std::vector<int64_t> bytes_;
};

// --on-nan warn: tells of the first loss that is nan and of the first that is infinite.
class NoteNonFinite : public nn::Callback {
 public:
  explicit NoteNonFinite(Progress& progress) : progress_(progress) {}
  void on_batch_end(int64_t, int64_t, const nn::Logs& running) override {
    ++step_;
    for (const auto& [name, value] : running) {
      if (name != "loss" || std::isfinite(value) || !told_.insert(nn::text_of(value)).second) continue;
      progress_.clear_line();
      note(fmt::format("loss is {} in step {}; training goes on, see --on-nan", nn::text_of(value), step_));
    }
  }

 private:
  Progress& progress_;
  int64_t step_ = 0;
  std::set<std::string> told_;
};

int64_t peak_resident_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

struct Run {
  nn::History history;
  std::vector<Collective> collectives;  // of one step of `batch` samples, as the two below
  std::vector<int64_t> planned_bytes, counted_bytes;
  int64_t batch = 0;
  int signal = 0;
};

std::vector<double> step_milliseconds(const nn::History& history) {
  std::vector<double> ms;
  for (double seconds : history.step_seconds) ms.push_back(seconds * 1e3);
  std::sort(ms.begin(), ms.end());
  return ms;
}

// Of sorted numbers; the mean of the middle two where there are two.
double median(const std::vector<double>& sorted) {
  const size_t size = sorted.size();
  return (sorted[(size - 1) / 2] + sorted[size / 2]) / 2;
}

double samples_per_second(const nn::History& history) {
  return history.seconds > 0 ? static_cast<double>(history.samples) / history.seconds : 0;
}

Json train_json(const nn::Trainer& trainer, const Run& run) {
  Json history = Json::object();
  for (const auto& [name, values] : run.history.epochs) history[name] = values;
  std::vector<double> ms = step_milliseconds(run.history);
  Json step_ms;
  if (!ms.empty()) step_ms = {{"median", median(ms)}, {"min", ms.front()}, {"max", ms.back()}};
  return {{"mesh", mesh_json(trainer.distribution().mesh)},
          {"variables", variables_json(trainer)},
          {"batch", batch_json(trainer.distribution(), run.batch)},
          {"memory", memory_json(trainer, trainer.allocated_bytes())},
          {"collectives", collectives_json(run.collectives)},
          {"communication_bytes", run.planned_bytes},
          {"communication_bytes_counted", run.counted_bytes},
          {"fits", trainer.fits()},
          {"device_memory", trainer.device_memory()},
          {"history", history},
          {"step_losses", run.history.step_losses},
          {"steps", run.history.step_losses.size()},
          {"samples_per_second", samples_per_second(run.history)},
          {"step_ms", step_ms},
          {"peak_resident_bytes", peak_resident_bytes()}};
}

std::string summary(const nn::Trainer& trainer, const Run& run, const Options& options) {
  const nn::History& history = run.history;
  std::vector<double> ms = step_milliseconds(history);
  std::string text =
      fmt::format("{} on mesh {}, {:.1f} s in steps: {} samples/s", counted(std::ssize(history.step_losses), "step"),
                  to_string(trainer.distribution().mesh), history.seconds, format_count(static_cast<int64_t>(samples_per_second(history))));
  if (!ms.empty()) text += fmt::format(", a step {:.2f} ms (median)", median(ms));
  text += "\n";
  nn::Logs last;
  for (const auto& [name, values] : history.epochs)
    if (!values.empty()) last.emplace_back(name, values.back());
  text += logs_text(last) + "\n";
  const std::vector<int64_t> bytes = trainer.allocated_bytes();
  text += fmt::format("a device: {} of memory, receives {} a step\n", format_bytes(*std::max_element(bytes.begin(), bytes.end())),
                      format_bytes(*std::max_element(run.counted_bytes.begin(), run.counted_bytes.end())));
  if (!options.save.empty()) text += fmt::format("weights saved in '{}'\n", options.save);
  if (!options.trace.empty()) text += fmt::format("trace written to '{}'\n", options.trace);
  return text;
}

// What is saved is of use: a last update may have made weights that are not finite, which only the next loss would have shown.
void save(const Options& options, nn::Trainer& trainer) {
  if (options.on_nan == nn::OnNan::kStop)
    if (auto bad = trainer.find_bad_variable())
      throw Error(ErrorKind::kDiverged, fmt::format("{} after step {}, and nothing is saved", *bad, trainer.updates()), "",
                  "lower the learning rate or clip the gradients");
  trainer.save_weights(options.save);
}

// What is left when training ended because of its loss: the weights of the step before and the trace up to there. What goes wrong here is
// only noted: that loss came first.
void save_after_divergence(const Options& options, nn::Trainer& trainer, TraceFile* trace) {
  auto attempt = [&](const auto& write, const std::string& done) {
    try {
      write();
      if (!options.quiet) note(done);
    } catch (const Error& error) {
      note(error.what());
    }
  };
  if (!options.save.empty())
    attempt([&] { save(options, trainer); }, fmt::format("the weights after step {} are saved in '{}'", trainer.updates(), options.save));
  if (trace != nullptr) attempt([&] { trace->commit(); }, fmt::format("the trace is written to '{}'", options.trace));
}

Run fit(const Options& options, nn::Trainer& trainer, const Dataset& data, const Dataset* validation) {
  Run run;
  run.batch = std::min(options.batch_size, data.size());
  const Compiled& step = trainer.program(nn::StepKind::kTrain, run.batch);
  run.collectives = step.collectives;
  run.planned_bytes = step.communication_bytes;
  CountCommunication count(trainer, run.batch);
  Progress progress(progress_form(), "epoch", options.epochs, data.size());
  nn::FitOptions fit_options{
      .epochs = options.epochs, .steps = options.steps, .shuffle = options.shuffle, .validation = validation, .callbacks = {&count}};
  NoteNonFinite non_finite(progress);
  if (!options.quiet) fit_options.callbacks.insert(fit_options.callbacks.end(), {&non_finite, &progress});
  run.history = trainer.fit(data, fit_options);
  run.counted_bytes = count.bytes().empty() ? run.planned_bytes : count.bytes();
  return run;
}

// Opened before anything is computed, so that a place that cannot be written is told at once. Null without --trace.
std::unique_ptr<TraceFile> open_trace(const Options& options, Job& job) {
  if (options.trace.empty()) return nullptr;
  if (!options.save.empty() && local_files().resolve(options.trace) == local_files().resolve(options.save))
    usage_error("--trace and --save name the same file", fmt::format("'{}'", options.trace), "give two files");
  check_place(options, "--trace", options.trace);
  auto trace = std::make_unique<TraceFile>(local_files(), options.trace, job.distribution.mesh);
  job.options.on_run = [file = trace.get()](const nn::RunTrace& run) { file->add(run); };
  return trace;
}

}  // namespace

int train(const Options& options) {
  Job job = read_job(options);
  const std::unique_ptr<TraceFile> trace = open_trace(options, job);
  std::unique_ptr<nn::Trainer> trainer = make_trainer(options, job);
  std::unique_ptr<Dataset> data = open_samples(options, *trainer, DataSplit::kTrain, nn::StepKind::kTrain);
  std::unique_ptr<Dataset> validation = open_validation(options, *trainer);
  if (!options.save.empty()) check_place(options, "--save", options.save);
  auto prepare = [&](nn::Trainer& any) { any.prepare_fit(data->size(), validation ? validation->size() : 0); };
  prepare(*trainer);
  require_fit(job, *trainer, prepare);
  prepare_weights(options, *trainer, Untrained::kExpected);
  const Interrupt interrupt(*trainer);  // until all is saved
  Run run;
  try {
    run = fit(options, *trainer, *data, validation.get());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kDiverged) save_after_divergence(options, *trainer, trace.get());
    throw;
  }
  if (!options.save.empty()) save(options, *trainer);
  run.signal = interrupt.signal();
  if (trace != nullptr) trace->commit();
  if (options.json)
    print_json(train_json(*trainer, run));
  else
    write_output(summary(*trainer, run, options));
  return run.signal ? 128 + run.signal : 0;
}

}  // namespace espalier::cli
