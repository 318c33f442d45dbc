// espalier plan: everything that train would do, computed and not done.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "espalier/base/text.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/fit_budget.h"
#include "espalier/cli/output.h"
#include "espalier/cli/plan_text.h"
#include "espalier/cli/report.h"
#include "espalier/cli/session.h"

namespace espalier::cli {
namespace {

Json plan_json(const nn::Trainer& trainer, const Compiled& step, int64_t batch) {
  return {{"mesh", mesh_json(trainer.distribution().mesh)},
          {"variables", variables_json(trainer)},
          {"batch", batch_json(trainer.distribution(), batch)},
          {"memory", memory_json(trainer)},
          {"collectives", collectives_json(step.collectives)},
          {"communication_bytes", step.communication_bytes},
          {"fits", trainer.fits()},
          {"device_memory", trainer.device_memory()}};
}

std::string plan_text(const nn::Trainer& trainer, const Compiled& step, int64_t batch) {
  return batch_text(trainer.distribution(), batch) + "\n" + variables_text(trainer) + "\n" + memory_text(trainer) + "\n" +
         communication_text(step);
}

}  // namespace

int plan(const Options& options) {
  const Job job = read_job(options);
  std::unique_ptr<nn::Trainer> trainer = make_trainer(options, job);
  int64_t samples = options.samples.value_or(0), validation_samples = 0;
  if (!options.data.empty()) {
    samples = open_samples(options, *trainer, DataSplit::kTrain, nn::StepKind::kTrain)->size();
    if (std::unique_ptr<Dataset> validation = open_validation(options, *trainer)) validation_samples = validation->size();
  }
  auto prepare = [&](nn::Trainer& any) { any.prepare_fit(samples, validation_samples); };
  prepare(*trainer);
  const int64_t batch = samples > 0 ? std::min(samples, options.batch_size) : options.batch_size;
  const Compiled& step = trainer->program(nn::StepKind::kTrain, batch);
  if (options.json)
    print_json(plan_json(*trainer, step, batch));
  else
    write_output(plan_text(*trainer, step, batch));
  require_fit(job, *trainer, prepare);
  return 0;
}

}  // namespace espalier::cli
