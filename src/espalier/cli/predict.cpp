// espalier predict: the model's outputs, in the order of the samples, as numpy files.
#include <fmt/format.h>

#include "espalier/base/text.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/fit_budget.h"
#include "espalier/cli/output.h"
#include "espalier/cli/progress.h"
#include "espalier/cli/report.h"
#include "espalier/cli/session.h"
#include "espalier/data/npy.h"

namespace espalier::cli {
namespace {

struct OutputFile {
  std::string name, path;
  Dims shape;  // (samples, ...)
  std::unique_ptr<NpyWriter> writer;
};

// "out.npy" for one output, "out.NAME.npy" for several.
std::string path_of(const std::string& out, const std::string& name, size_t outputs) {
  if (outputs == 1) return out;
  const std::string ending = ".npy";
  std::string stem = out.ends_with(ending) ? out.substr(0, out.size() - ending.size()) : out;
  return stem + "." + name + ending;
}

std::vector<OutputFile> open_outputs(const nn::Model& model, const Options& options, int64_t samples) {
  std::vector<OutputFile> files;
  const std::vector<std::string> names = model.output_names();
  const std::vector<Dims> shapes = model.output_shapes();
  for (size_t i = 0; i < names.size(); ++i) {
    Dims shape{samples};
    for (int64_t size : shapes[i]) shape.push_back(size);
    std::string path = path_of(options.out, names[i], names.size());
    check_place(options, "--out", path);
    files.push_back({names[i], path, shape, std::make_unique<NpyWriter>(local_files(), path, shape)});
  }
  return files;
}

}  // namespace

int predict(const Options& options) {
  const Job job = read_job(options);
  std::unique_ptr<nn::Trainer> trainer = make_trainer(options, job);
  std::unique_ptr<Dataset> data = open_samples(options, *trainer, DataSplit::kTest, nn::StepKind::kPredict);
  auto prepare = [&](nn::Trainer& any) { compile_batches(any, nn::StepKind::kPredict, data->size(), options.batch_size); };
  prepare(*trainer);
  require_fit(job, *trainer, prepare);
  std::vector<OutputFile> files = open_outputs(trainer->model(), options, data->size());
  prepare_weights(options, *trainer, Untrained::kNoted);
  Progress progress(progress_form(), "predict", 1, data->size());
  trainer->predict(
      *data,
      [&](int output, int64_t first, int64_t count, const float* values) {
        files[static_cast<size_t>(output)].writer->write_rows(first, count, values);
      },
      options.quiet ? nullptr : &progress);
  Json outputs = Json::array();
  std::string text;
  for (OutputFile& file : files) {
    file.writer->commit();
    outputs.push_back({{"name", file.name}, {"file", file.path}, {"shape", file.shape.vector()}});
    text += fmt::format("'{}' {} in '{}'\n", file.name, to_string(file.shape), file.path);
  }
  if (options.json)
    print_json({{"mesh", mesh_json(trainer->distribution().mesh)}, {"samples", data->size()}, {"outputs", outputs}});
  else
    write_output(text);
  return 0;
}

}  // namespace espalier::cli
