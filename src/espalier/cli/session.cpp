#include "espalier/cli/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "espalier/base/error.h"
#include "espalier/base/file.h"
#include "espalier/cli/layout_file.h"
#include "espalier/cli/output.h"
#include "espalier/cli/training_options.h"
#include "espalier/distribution/data_parallel.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/interop/keras.h"

namespace espalier::cli {
namespace {

constexpr int64_t kMaxModelFile = 16 << 20;  // bytes; the largest model files of the field take a few MiB

std::string read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) storage_error("read", "standard input", errno);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (std::ssize(text) > kMaxModelFile) usage_error("the model is too long", "standard input", "give the JSON of model.to_json()");
  }
}

std::string read_model_text(const std::string& path) {
  if (path == "-") return read_standard_input();
  FileKind kind = local_files().kind(path);
  if (kind == FileKind::kMissing) usage_error("there is no such model file", fmt::format("'{}'", path), "check the path");
  if (kind == FileKind::kDirectory)
    usage_error("the model is a directory", fmt::format("'{}'", path), "give the JSON file that model.to_json() wrote");
  return local_files().read_all(path, kMaxModelFile);
}

DeviceMesh mesh_of(const Options& options) {
  if (!options.mesh.empty()) return DeviceMesh::parse(options.mesh, options.devices);
  const int64_t size = options.devices.empty() ? 1 : std::ssize(options.devices);
  return DeviceMesh({size}, {"data"}, options.devices);
}

Distribution distribution_of(const Options& options) {
  DeviceMesh mesh = mesh_of(options);
  if (options.layout.empty()) return DataParallel(mesh, options.batch_axis);
  return ModelParallel(read_layout_file(local_files(), options.layout, mesh), options.batch_axis);
}

bool needs_loss(Command command) {
  return command == Command::kTrain || command == Command::kEvaluate || command == Command::kPlan || command == Command::kVerify;
}

bool is_inference(Command command) { return command == Command::kEvaluate || command == Command::kPredict; }

// What the file says about these is not asked for, so it may say what Espalier does not have.
KerasReplaced replaced_by(const Options& options) {
  const bool no_training = is_inference(options.command) || options.command == Command::kInspect;
  const bool no_loss = options.command == Command::kPredict || options.command == Command::kInspect;
  return {.optimizer = options.optimizer.has_value() || no_training,
          .loss = options.loss.has_value() || no_loss,
          .metrics = options.metrics.has_value() || no_loss};
}

std::string where_of(const std::string& path) { return path == "-" ? "standard input" : path; }

std::unique_ptr<Dataset> open(const Options& options, std::vector<FieldSpec> fields, DataSplit split) {
  return open_dataset(local_files(), options.data, {std::move(fields), split, options.samples, options.seed});
}

}  // namespace

Job read_job(const Options& options) {
  Distribution distribution = distribution_of(options);
  KerasFile file = read_keras(read_model_text(options.model), where_of(options.model), replaced_by(options));
  if (!options.quiet)
    for (const std::string& warning : file.warnings) note(warning);
  nn::Compilation compilation = compilation_of(options, file.compilation, file.model);
  if (compilation.loss.empty() && needs_loss(options.command))
    usage_error("there is no loss to train with", fmt::format("model '{}' was not compiled", where_of(options.model)),
                "give --loss, for example --loss mean_squared_error");
  if (!file.compilation && !options.optimizer && options.command == Command::kTrain && !options.quiet)
    note("the model file names no optimizer: sgd is used (Keras' own default, rmsprop, is not here); see --optimizer");
  nn::TrainerOptions trainer_options{.purpose = is_inference(options.command) ? nn::Purpose::kInference : nn::Purpose::kTraining,
                                     .batch_size = options.batch_size,
                                     .seed = options.seed,
                                     .threads = options.threads,
                                     .device_memory = options.device_memory,
                                     .unmatched = options.strict ? Unmatched::kRefuse : Unmatched::kReplicate,
                                     .skip_passes = options.skip_passes,
                                     // verify compares what the runs made, numbers or not.
                                     .on_nan = options.command == Command::kVerify ? nn::OnNan::kWarn : options.on_nan};
  return {std::move(file.model), std::move(compilation), std::move(distribution), std::move(trainer_options)};
}

Distribution one_device() { return DataParallel(DeviceMesh({1}, {"data"})); }

std::unique_ptr<nn::Trainer> make_trainer(const Options& options, const Job& job) {
  auto trainer = std::make_unique<nn::Trainer>(job.model, job.compilation, job.distribution, job.options);
  if (!options.quiet) {
    for (const std::string& warning : trainer->warnings()) note(warning);
    for (const std::string& idle : idle_axes(job.distribution)) note(idle);
    if (!options.layout.empty())
      for (const std::string& text : trainer->notes()) note(text);
  }
  return trainer;
}

std::unique_ptr<Dataset> open_samples(const Options& options, const nn::Trainer& trainer, DataSplit split, nn::StepKind kind) {
  if (options.data.empty())
    usage_error("no samples are given", "", "give --data fashion-mnist, a directory of IDX files, an .npz file, or synthetic");
  return open(options, trainer.fields(kind), split);
}

std::unique_ptr<Dataset> open_validation(const Options& options, const nn::Trainer& trainer) {
  if (!has_test_split(local_files(), options.data)) return nullptr;
  return open(options, trainer.fields(nn::StepKind::kEvaluate), DataSplit::kTest);
}

void check_place(const Options& options, const std::string& flag, const std::string& path) {
  const std::string weights = flag == "--save" ? "" : options.weights;  // training may go on in one file
  for (const auto& [name, read] :
       {std::pair{"the model", options.model}, {"--layout", options.layout}, {"--data", options.data}, {"--weights", weights}})
    if (!read.empty() && local_files().resolve(read) == local_files().resolve(path))
      usage_error(fmt::format("{} names the same file as {}", flag, name), fmt::format("'{}'", path), "give another name");
  check_writable(local_files(), path);
}

void prepare_weights(const Options& options, nn::Trainer& trainer, Untrained untrained) {
  if (!options.weights.empty()) trainer.check_weights(options.weights);
  trainer.initialize();
  if (!options.weights.empty())
    trainer.load_weights(options.weights);
  else if (untrained == Untrained::kNoted && !options.quiet)
    note("no --weights: the weights are the untrained ones of --seed");
}

}  // namespace espalier::cli
