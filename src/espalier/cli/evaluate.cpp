// espalier evaluate: loss and metrics.
#include <fmt/format.h>

#include "espalier/base/text.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/fit_budget.h"
#include "espalier/cli/output.h"
#include "espalier/cli/progress.h"
#include "espalier/cli/report.h"
#include "espalier/cli/session.h"

namespace espalier::cli {

int evaluate(const Options& options) {
  const Job job = read_job(options);
  std::unique_ptr<nn::Trainer> trainer = make_trainer(options, job);
  std::unique_ptr<Dataset> data = open_samples(options, *trainer, DataSplit::kTest, nn::StepKind::kEvaluate);
  auto prepare = [&](nn::Trainer& any) { compile_batches(any, nn::StepKind::kEvaluate, data->size(), options.batch_size); };
  prepare(*trainer);
  require_fit(job, *trainer, prepare);
  prepare_weights(options, *trainer, Untrained::kNoted);
  Progress progress(progress_form(), "evaluate", 1, data->size());
  nn::Logs logs = trainer->evaluate(*data, options.quiet ? nullptr : &progress);
  if (options.json) {
    Json report = {{"mesh", mesh_json(trainer->distribution().mesh)}, {"batch", batch_json(trainer->distribution(), options.batch_size)}};
    report.update(logs_json(logs));
    report["samples"] = data->size();
    print_json(report);
  } else {
    write_output(fmt::format("{}  ({})\n", logs_text(logs), counted(data->size(), "sample")));
  }
  return 0;
}

}  // namespace espalier::cli
