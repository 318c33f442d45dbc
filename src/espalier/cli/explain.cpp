// espalier explain: which rule or price decided a layout, what it makes the devices send, and what the alternatives cost. A price is in
// bytes, the unit in which the compiler compares layouts: bytes received, kLatencyBytes for each collective, one for each operation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "espalier/base/error.h"
#include "espalier/base/nearest.h"
#include "espalier/base/text.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/output.h"
#include "espalier/cli/plan_text.h"
#include "espalier/cli/report.h"
#include "espalier/cli/session.h"
#include "espalier/cli/wrap.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/passes/reshard.h"

namespace espalier::cli {
namespace {

struct Price {
  int64_t bytes = 0, memory = 0;
  double flops = 0, cost = 0;
};

struct Choice {
  Json layout;       // one entry a dim
  std::string text;  // "(None, 'model')"
  std::string from;  // an op's: what it needs its operands to be, "('data', None), (None, 'model')"
  Price price;
  std::string why_not;
};

struct Explanation {
  std::string name, kind, reason;
  Json layout;
  std::string layout_text;
  std::string bytes_mean, memory_mean;  // what the prices' figures are
  std::optional<Price> price;           // of the chosen layout
  std::vector<Collective> collectives;
  std::vector<Choice> alternatives;
};

// Names of ops as the command takes them: SCOPE/OP, and SCOPE/OP#2 for the second of that name, in order of execution.
std::vector<std::string> op_names(const Graph& graph) {
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (const Op& op : graph.ops) {
    std::string name = op.scope.empty() ? op.def->name : op.scope + "/" + op.def->name;
    int count = ++seen[name];
    names.push_back(count == 1 ? name : fmt::format("{}#{}", name, count));
  }
  return names;
}

std::vector<Collective> collectives_about(const Compiled& step, const std::string& scope, const std::string& variable) {
  std::vector<Collective> about;
  for (const Collective& one : step.collectives) {
    const bool names_it = one.reason.find("'" + variable + "'") != std::string::npos;
    if (one.scope == scope || (!variable.empty() && (names_it || one.scope == variable))) about.push_back(one);
  }
  return about;
}

int64_t most(const std::vector<int64_t>& bytes) { return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()); }

// "receives 48.0 KiB more, computes 2.0 times as much, holds 8.6 KiB less": where two prices differ; "" where they do not.
std::string difference_text(const Price& other, const Price& chosen) {
  std::vector<std::string> parts;
  auto bytes = [&](const char* verb, int64_t one, int64_t two) {
    if (one != two) parts.push_back(fmt::format("{} {} {}", verb, format_bytes(std::abs(one - two)), one > two ? "more" : "less"));
  };
  bytes("receives", other.bytes, chosen.bytes);
  const double times = chosen.flops > 0 ? other.flops / chosen.flops : 1;
  if (std::abs(times - 1) >= 0.005) parts.push_back(fmt::format("computes {:.2f} times as much", times));
  bytes("holds", other.memory, chosen.memory);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string cost_text(double cost) { return cost < 0x1p62 ? format_bytes(static_cast<int64_t>(cost)) : "-"; }

std::string price_text(const Price& price) {
  return fmt::format("{} received, {} floating-point operations, {} held", format_bytes(price.bytes),
                     format_count(static_cast<int64_t>(price.flops)), format_bytes(price.memory));
}

// --- variables --------------------------------------------------------------------------------------------------------------------

constexpr size_t kMostLayouts = 24;  // compiled to price them; a mesh of many axes has hundreds

// Whole; each dim cut by each axis; two dims cut by two axes.
std::vector<TensorLayout> possible_layouts(int rank, const DeviceMesh& mesh) {
  std::vector<std::string> axes;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (mesh.shape()[static_cast<size_t>(a)] > 1) axes.push_back(mesh.axis_names()[static_cast<size_t>(a)]);
  std::vector<TensorLayout> layouts;
  auto add = [&](std::vector<std::pair<int, std::string>> cuts) {
    std::vector<DimAxes> dims(static_cast<size_t>(rank));
    for (auto& [dim, axis] : cuts) dims[static_cast<size_t>(dim)] = DimAxes(axis);
    if (layouts.size() < kMostLayouts) layouts.emplace_back(std::move(dims));
  };
  add({});
  for (int d = 0; d < rank; ++d)
    for (const std::string& axis : axes) add({{d, axis}});
  for (int d = 0; d < rank; ++d)
    for (int e = d + 1; e < rank; ++e)
      for (const std::string& first : axes)
        for (const std::string& second : axes)
          if (first != second) add({{d, first}, {e, second}});
  return layouts;
}

// The job with one variable's layout replaced; the other rules stay, those that it leaves idle too.
Distribution with_layout(const Distribution& distribution, const std::string& path, const TensorLayout& layout) {
  LayoutMap map = distribution.layout_map;
  const auto& rules = map.rules();
  if (std::any_of(rules.begin(), rules.end(), [&](const LayoutRule& rule) { return rule.key == path; })) map.erase(path);
  map.insert(path, layout);
  Distribution changed = distribution;
  changed.layout_map = std::move(map);
  return changed;
}

// Of a whole step.
Price price_of(const Job& job, const Distribution& distribution, nn::StepKind kind, int64_t batch) {
  nn::TrainerOptions options = job.options;
  options.unmatched = Unmatched::kReplicate;
  nn::Trainer trainer(job.model, job.compilation, distribution, options);
  const Compiled& step = trainer.program(kind, batch);
  Price price{.bytes = most(step.communication_bytes), .flops = largest_flops(step.global, *step.graph.mesh, step.pins, step.layouts)};
  price.cost = static_cast<double>(price.bytes + kLatencyBytes * std::ssize(step.collectives)) + price.flops;
  for (const nn::DeviceMemory& memory : trainer.memory()) price.memory = std::max(price.memory, memory.arena);
  return price;
}

// Why the user's words stand against a price: they are not weighed, whatever they cost.
std::string why_not_asked(const Price& other, const Price& chosen, const std::string& asked) {
  std::string text = difference_text(other, chosen);
  if (text.empty()) return "costs as much; " + asked;
  const bool better = other.cost < chosen.cost || (other.cost == chosen.cost && other.memory < chosen.memory);
  return better ? text + "; " + asked : text;
}

void sort_by_cost(std::vector<Choice>& choices) {
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.price.cost < b.price.cost; });
}

Explanation explain_variable(const Job& job, nn::Trainer& trainer, const nn::VariableReport& variable, nn::StepKind kind, int64_t batch) {
  const Distribution& distribution = trainer.distribution();
  const int rank = variable.type.shape.rank();
  const TensorLayout layout = layout_of(variable, distribution);
  Explanation told{.name = variable.path,
                   .kind = fmt::format("variable {}", to_string(variable.type.shape)),
                   .reason = variable.rule ? fmt::format("layout rule '{}' matches it", *variable.rule)
                                           : "no layout rule matches it: every device holds a copy",
                   .layout = layout_json(layout, rank),
                   .layout_text = to_string(layout),
                   .bytes_mean = "received by the busiest device in a step",
                   .memory_mean = "arena of the fullest device",
                   .price = price_of(job, distribution, kind, batch),
                   .collectives = {},
                   .alternatives = {}};
  const Compiled& step = trainer.program(kind, batch);
  told.collectives = collectives_about(step, variable.path.substr(0, variable.path.rfind('/')), variable.path);
  for (const TensorLayout& other : possible_layouts(rank, distribution.mesh)) {
    if (bind(other, variable.type.shape, distribution.mesh, variable.path) == variable.sharding) continue;
    const Price price = price_of(job, with_layout(distribution, variable.path, other), kind, batch);
    told.alternatives.push_back({layout_json(other, rank), to_string(other), "", price,
                                 why_not_asked(price, *told.price, variable.rule ? "the rule asks for another" : "no rule asks for it")});
  }
  sort_by_cost(told.alternatives);
  return told;
}

// --- layers and ops ---------------------------------------------------------------------------------------------------------------

// The op of a layer that stands for it: of its forward ops the one with most arithmetic.
std::optional<size_t> main_op(const Graph& graph, const std::string& layer) {
  std::optional<size_t> best;
  double most_flops = -1;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.scope != layer || op.phase != Phase::kForward) continue;
    const std::vector<TensorType> types = operand_types(graph, op);
    double flops = op.def->flops ? op.def->flops(OpSignature{op.attrs, types, op.scope}) : 0;
    if (flops > most_flops) best = i, most_flops = flops;
  }
  return best;
}

Choice choice_of(const Alternative& alternative, const DeviceMesh& mesh) {
  const Sharding& result = alternative.results.front();
  std::string from;
  for (const Sharding& operand : alternative.operands) from += (from.empty() ? "" : ", ") + to_string(operand, mesh);
  return {layout_json(unbind(result, mesh), result.rank), to_string(result, mesh), from,
          Price{alternative.bytes, alternative.result_bytes, alternative.flops, alternative.price}, ""};
}

std::string why_not_op(const Price& other, const Price& chosen) {
  const std::string text = difference_text(other, chosen);
  if (other.cost == chosen.cost)
    return text.empty() ? "costs as much; the first found stays" : text + "; costs as much, the first found stays";
  return other.cost > chosen.cost ? text : text + "; cheaper here, but dearer for its neighbours when they were decided";
}

// Above this an alternative is not only dear but impossible: somebody counts on another form.
constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max() / 8;

Explanation explain_op(const Compiled& step, size_t index, const std::string& name) {
  const Graph& graph = step.global;
  const DeviceMesh& mesh = *step.graph.mesh;
  const Op& op = graph.ops[index];
  std::vector<Alternative> all = alternatives(graph, mesh, step.pins, step.layouts, static_cast<int>(index));
  const Choice chosen = choice_of(all.front(), mesh);
  Explanation told{.name = name,
                   .kind = fmt::format("op {} ({}) of {}", op.def->name, op.def->doc, to_string(graph.type(op.results.front()))),
                   .reason = all.size() == 1
                                 ? fmt::format("there is no other way to cut {} here", op.def->name)
                                 : fmt::format("of {} ways to cut {} this one costs least, with its operands and consumers as they are",
                                               all.size(), op.def->name),
                   .layout = chosen.layout,
                   .layout_text = chosen.from.empty() ? chosen.text : chosen.from + " -> " + chosen.text,
                   .bytes_mean = "received for its operands and results",
                   .memory_mean = "of the largest part of its results",
                   .price = chosen.price,
                   .collectives = collectives_about(step, op.scope, ""),
                   .alternatives = {}};
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].bytes >= kImpossible) continue;
    Choice other = choice_of(all[i], mesh);
    other.why_not = why_not_op(other.price, chosen.price);
    told.alternatives.push_back(std::move(other));
  }
  return told;
}

// An input of the model: pinned by the batch axis. Its alternatives are the other axes, and none.
std::optional<Explanation> explain_input(const Job& job, nn::Trainer& trainer, const std::string& name, nn::StepKind kind, int64_t batch) {
  const Compiled& step = trainer.program(kind, batch);
  const Distribution& distribution = trainer.distribution();
  const DeviceMesh& mesh = distribution.mesh;
  for (size_t i = 0; i < step.global.inputs.size(); ++i) {
    const Input& input = step.global.inputs[i];
    if (input.role != Role::kData || (input.name != name && input.name != "input/" + name)) continue;
    auto axis_name = [&](int axis) { return mesh.axis_names()[static_cast<size_t>(axis)]; };
    const Sharding& sharding = step.pins.inputs[i];
    Explanation told{.name = name,
                     .kind = "data " + to_string(step.global.type(input.value)),
                     .reason = distribution.batch_axis
                                   ? fmt::format("the batch axis '{}' cuts the samples", axis_name(*distribution.batch_axis))
                                   : "there is no batch axis: every device sees the whole batch",
                     .layout = layout_json(unbind(sharding, mesh), sharding.rank),
                     .layout_text = to_string(sharding, mesh),
                     .bytes_mean = "received by the busiest device in a step",
                     .memory_mean = "arena of the fullest device",
                     .price = price_of(job, distribution, kind, batch),
                     .collectives = {},
                     .alternatives = {}};
    for (int axis = -1; axis < mesh.axis_count(); ++axis) {
      Distribution changed = distribution;
      changed.batch_axis = axis < 0 ? std::optional<int>() : axis;
      if (axis >= 0 && mesh.shape()[static_cast<size_t>(axis)] == 1) continue;
      const Sharding other = batch_sharding(changed, sharding.rank);
      if (other == sharding) continue;
      const Price price = price_of(job, changed, kind, batch);
      told.alternatives.push_back(
          {layout_json(unbind(other, mesh), other.rank), to_string(other, mesh), "", price,
           why_not_asked(price, *told.price,
                         axis < 0 ? "--batch-axis none asks for it" : fmt::format("--batch-axis {} asks for it", axis_name(axis)))});
    }
    sort_by_cost(told.alternatives);
    return told;
  }
  return std::nullopt;
}

Explanation find_and_explain(const Job& job, nn::Trainer& trainer, const std::string& name) {
  const nn::StepKind kind = job.compilation.loss.empty() ? nn::StepKind::kPredict : nn::StepKind::kTrain;
  const int64_t batch = job.options.batch_size;
  for (const nn::VariableReport& variable : trainer.variables())
    if (variable.path == name) return explain_variable(job, trainer, variable, kind, batch);
  const Compiled& step = trainer.program(kind, batch);
  const std::vector<std::string> ops = op_names(step.global);
  if (auto at = std::find(ops.begin(), ops.end(), name); at != ops.end())
    return explain_op(step, static_cast<size_t>(at - ops.begin()), name);
  if (std::optional<size_t> op = main_op(step.global, name)) return explain_op(step, *op, ops[*op]);
  if (std::optional<Explanation> input = explain_input(job, trainer, name, kind, batch)) return *input;
  std::vector<std::string> known;
  for (const nn::VariableReport& variable : trainer.variables()) known.push_back(variable.path);
  for (const Op& op : step.global.ops)
    if (!op.scope.empty() && std::find(known.begin(), known.end(), op.scope) == known.end()) known.push_back(op.scope);
  known.insert(known.end(), ops.begin(), ops.end());
  usage_error(fmt::format("there is no variable, layer or op '{}'", name), fmt::format("model '{}'", job.model.name()),
              suggest(name, known));
}

Json price_json(const Price& price) {
  return {{"bytes", price.bytes}, {"memory", price.memory}, {"flops", price.flops}, {"cost", price.cost}};
}

Json explain_json(const nn::Trainer& trainer, const Explanation& told) {
  Json alternatives = Json::array();
  for (const Choice& choice : told.alternatives) {
    alternatives.push_back({{"layout", choice.layout}});
    alternatives.back().update(price_json(choice.price));
    alternatives.back()["why_not"] = choice.why_not;
  }
  Json json = {{"mesh", mesh_json(trainer.distribution().mesh)}, {"name", told.name}, {"layout", told.layout}, {"reason", told.reason}};
  if (told.price) json.update(price_json(*told.price));
  json["collectives"] = collectives_json(told.collectives);
  json["alternatives"] = alternatives;
  return json;
}

std::string explain_text(const Explanation& told) {
  std::string text = fmt::format("{}\n{}\n  layout {}\n  {}\n", wrap(told.name, 0), wrap(told.kind, 0), wrap(told.layout_text, 9),
                                 wrap("because " + told.reason, 2));
  if (told.price) text += fmt::format("  {}\n", wrap(fmt::format("cost {}: {}", cost_text(told.price->cost), price_text(*told.price)), 7));
  text += "\n";
  text +=
      told.collectives.empty() ? "no collectives belong to it\n" : "collectives that belong to it\n" + collectives_table(told.collectives);
  if (told.alternatives.empty()) return text + "\nno alternatives\n";
  text += "\n" +
          wrap(fmt::format(
                   "alternatives (bytes: {}; memory: {}; cost: bytes, {} for each collective and one for each floating-point operation)",
                   told.bytes_mean, told.memory_mean, format_bytes(kLatencyBytes)),
               0) +
          "\n";
  Table table({"layout", "bytes", "memory", "cost", "why not"}, {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  for (const Choice& choice : told.alternatives)
    table.add({choice.text, format_bytes(choice.price.bytes), format_bytes(choice.price.memory), cost_text(choice.price.cost),
               choice.from.empty() ? choice.why_not : fmt::format("from {}: {}", choice.from, choice.why_not)});
  return text + table.text();
}

}  // namespace

int explain(const Options& options) {
  const Job job = read_job(options);
  std::unique_ptr<nn::Trainer> trainer = make_trainer(options, job);
  const Explanation told = find_and_explain(job, *trainer, options.name);
  if (options.json)
    print_json(explain_json(*trainer, told));
  else
    write_output(explain_text(told));
  return 0;
}

}  // namespace espalier::cli
