#include "espalier/cli/fit_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "espalier/base/error.h"
#include "espalier/base/text.h"
#include "espalier/cli/report.h"
#include "espalier/distribution/model_parallel.h"

namespace espalier::cli {
namespace {

enum class Cut { kColumns, kColumnsAndRows };

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Columns: the last dim of every variable. In turn: of the layers with a matrix, each second one by rows, so that what one layer leaves
// cut the next one takes cut; its biases stay whole.
std::vector<std::pair<std::string, TensorLayout>> cut_variables(const std::vector<nn::VariableReport>& variables, Cut cut) {
  std::vector<std::pair<std::string, TensorLayout>> layouts;
  std::string layer;
  bool by_rows = true;
  for (const nn::VariableReport& variable : variables) {
    int rank = variable.type.shape.rank();
    if (rank == 0) continue;
    if (rank >= 2 && parent_of(variable.path) != layer) by_rows = cut == Cut::kColumnsAndRows && !by_rows, layer = parent_of(variable.path);
    bool rows = cut == Cut::kColumnsAndRows && by_rows && parent_of(variable.path) == layer;
    if (rows && rank == 1) continue;
    std::vector<DimAxes> dims(static_cast<size_t>(rank));
    dims[static_cast<size_t>(rows ? rank - 2 : rank - 1)] = DimAxes("model");
    layouts.emplace_back(variable.path, TensorLayout(std::move(dims)));
  }
  return layouts;
}

const nn::DeviceMemory& fullest(const std::vector<nn::DeviceMemory>& memory) {
  return *std::max_element(memory.begin(), memory.end(), [](const auto& a, const auto& b) { return a.arena < b.arena; });
}

struct Candidate {
  Proposal proposal;
  int64_t communication = 0;
};

std::optional<Candidate> try_cut(const Job& job, const Prepare& prepare, const std::vector<nn::VariableReport>& variables,
                                 const DeviceMesh& mesh, const std::string& mesh_text, Cut cut) {
  LayoutMap map(mesh);
  Json file = Json::object();
  for (auto& [path, layout] : cut_variables(variables, cut)) {
    file[path] = layout_json(layout, layout.rank());
    map.insert(path, layout);
  }
  const std::string batch_axis = mesh.find_axis("data") ? "data" : "none";
  nn::Trainer trainer(job.model, job.compilation, ModelParallel(std::move(map), batch_axis), job.options);
  prepare(trainer);
  if (!trainer.fits()) return std::nullopt;
  const std::vector<int64_t>& bytes = trainer.program(nn::StepKind::kTrain, job.options.batch_size).communication_bytes;
  return Candidate{{mesh_text, file.dump(), fullest(trainer.memory()).arena}, *std::max_element(bytes.begin(), bytes.end())};
}

}  // namespace

void compile_batches(nn::Trainer& trainer, nn::StepKind kind, int64_t samples, int64_t batch_size) {
  if (samples >= batch_size) trainer.program(kind, batch_size);
  if (samples % batch_size) trainer.program(kind, samples % batch_size);
}

std::optional<Proposal> find_plan_that_fits(const Job& job, const Prepare& prepare) {
  const DeviceMesh& mesh = job.distribution.mesh;
  const nn::Trainer asked(job.model, job.compilation, job.distribution, job.options);
  const int64_t devices = mesh.size();
  for (int64_t data = devices / 2; data >= 1; --data) {
    if (devices % data) continue;
    const int64_t model = devices / data;
    DeviceMesh split =
        data > 1 ? DeviceMesh({data, model}, {"data", "model"}, mesh.devices()) : DeviceMesh({model}, {"model"}, mesh.devices());
    const std::string text = data > 1 ? fmt::format("data={},model={}", data, model) : fmt::format("model={}", model);
    std::optional<Candidate> best;
    for (Cut cut : {Cut::kColumnsAndRows, Cut::kColumns}) {
      std::optional<Candidate> candidate = try_cut(job, prepare, asked.variables(), split, text, cut);
      if (candidate && (!best || candidate->communication < best->communication)) best = candidate;
    }
    if (best) return best->proposal;
  }
  return std::nullopt;
}

void require_fit(const Job& job, const nn::Trainer& trainer, const Prepare& prepare) {
  if (trainer.fits()) return;
  const std::vector<nn::DeviceMemory> memory = trainer.memory();
  const nn::DeviceMemory& worst = fullest(memory);
  const MemoryUse& use = worst.use;
  const std::string& device = trainer.distribution().mesh.devices()[static_cast<size_t>(&worst - memory.data())];
  const std::string where =
      fmt::format("device '{}' needs {} of {} (variables {}, gradients {}, optimizer {}, activations {}, communication {})", device,
                  format_bytes(worst.arena), format_bytes(trainer.device_memory()), format_bytes(use.variables),
                  format_bytes(use.gradients), format_bytes(use.optimizer), format_bytes(use.activations), format_bytes(use.communication));
  std::optional<Proposal> proposal = find_plan_that_fits(job, prepare);
  throw Error(ErrorKind::kMemory, "the model does not fit", where,
              proposal ? fmt::format("on these devices --mesh {} with the layout {} fits, with {} on each", proposal->mesh,
                                     proposal->layout, format_bytes(proposal->bytes))
                       : "no split over these devices fits: give more devices, a smaller batch or a larger --device-memory");
}

}  // namespace espalier::cli
