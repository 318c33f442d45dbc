// espalier inspect: how every variable and the batch are cut, in words and drawn.
#include <fmt/format.h>

#include "espalier/base/text.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/output.h"
#include "espalier/cli/plan_text.h"
#include "espalier/cli/report.h"
#include "espalier/cli/session.h"
#include "espalier/cli/wrap.h"
#include "espalier/mesh/drawing.h"

namespace espalier::cli {
namespace {

std::string variable_text(const nn::VariableReport& variable, const Distribution& distribution) {
  const std::string rule = variable.rule ? fmt::format("rule '{}'", *variable.rule) : "no rule";
  const std::string head = fmt::format("{} {}, {}{}, {}", variable.path, to_string(variable.type.shape),
                                       format_bytes(variable.type.bytes()), variable.trainable ? "" : ", not trained", rule);
  return wrap(head, 2) + "\n  " + wrap(named_sharding(layout_of(variable, distribution), distribution.mesh), 4) + "\n" +
         draw_sharding(variable.sharding, variable.type.shape, distribution.mesh) + "\n";
}

std::string batch_drawings(const nn::Trainer& trainer, int64_t size) {
  const Distribution& distribution = trainer.distribution();
  std::string text;
  for (const FieldSpec& input : trainer.fields(nn::StepKind::kPredict)) {
    Dims shape{size};
    for (int64_t n : input.shape) shape.push_back(n);
    Sharding sharding = batch_sharding(distribution, shape.rank());
    text += fmt::format("\ninput '{}' {}\n  {}\n{}", input.name, to_string(shape), wrap(named_sharding(sharding, distribution.mesh), 4),
                        draw_sharding(sharding, shape, distribution.mesh));
  }
  return text;
}

}  // namespace

int inspect(const Options& options) {
  std::unique_ptr<nn::Trainer> trainer = make_trainer(options, read_job(options));
  const Distribution& distribution = trainer->distribution();
  if (options.json) {
    print_json({{"mesh", mesh_json(distribution.mesh)},
                {"variables", variables_json(*trainer)},
                {"batch", batch_json(distribution, options.batch_size)}});
    return 0;
  }
  std::string text;
  for (const nn::VariableReport& variable : trainer->variables()) text += variable_text(variable, distribution);
  write_output(text + batch_text(distribution, options.batch_size) + batch_drawings(*trainer, options.batch_size));
  return 0;
}

}  // namespace espalier::cli
