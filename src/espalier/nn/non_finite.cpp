#include "espalier/nn/non_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace espalier::nn {

std::string text_of(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

std::optional<float> find_bad_number(std::span<const float> numbers) {
  auto at = std::find_if(numbers.begin(), numbers.end(), [](float number) { return !std::isfinite(number); });
  return at == numbers.end() ? std::nullopt : std::optional(*at);
}

std::optional<std::string> find_bad_sample(const Dataset& data, std::span<const int64_t> samples) {
  for (int64_t sample : samples)
    for (size_t f = 0; f < data.fields().size(); ++f) {
      const FieldSpec& field = data.fields()[f];
      if (field.values == Values::kClass) continue;  // whole numbers
      std::vector<float> values(static_cast<size_t>(field.shape.volume()));
      data.read(static_cast<int>(f), {&sample, 1}, values.data());
      if (auto value = find_bad_number(values))
        return fmt::format("sample {} of {} '{}' holds {}", sample, field.role == FieldRole::kInput ? "input" : "target", field.name,
                           text_of(*value));
    }
  return std::nullopt;
}

namespace {

// Which ops of the forward pass lead to the loss.
std::vector<bool> ops_of_loss(const Graph& step, ValueId loss) {
  std::vector<bool> used(step.ops.size(), false);
  auto use = [&](ValueId id) {
    if (int32_t op = step.value(id).op; op >= 0) used[static_cast<size_t>(op)] = true;
  };
  use(loss);
  for (size_t o = step.ops.size(); o-- > 0;)
    if (used[o])
      for (ValueId id : step.ops[o].operands) use(id);
  return used;
}

}  // namespace

ProbedForward::ProbedForward(const Graph& step) {
  graph_.name = step.name + "_probed";
  const Output* loss = step.find_output("loss");
  ESPALIER_ASSERT(loss != nullptr);
  const std::vector<bool> used = ops_of_loss(step, loss->value);
  std::vector<bool> read(step.values.size(), false);
  read[static_cast<size_t>(loss->value)] = true;
  for (size_t o = 0; o < step.ops.size(); ++o)
    for (ValueId id : step.ops[o].operands) read[static_cast<size_t>(id)] = read[static_cast<size_t>(id)] || used[o];
  std::vector<ValueId> map(step.values.size(), kNoValue);
  for (const espalier::Input& input : step.inputs)
    if (read[static_cast<size_t>(input.value)])
      map[static_cast<size_t>(input.value)] = graph_.add_input(input.role, input.name, step.type(input.value));
  for (size_t o = 0; o < step.ops.size(); ++o) {
    if (!used[o]) continue;
    Op op = step.ops[o];
    for (ValueId& id : op.operands) id = map[static_cast<size_t>(id)];
    const std::vector<ValueId> results = graph_.append(op).results;
    for (size_t r = 0; r < results.size(); ++r) map[static_cast<size_t>(step.ops[o].results[r])] = results[r];
    for (ValueId result : results)
      if (graph_.type(result).dtype == DType::kF32) add_probe(result);
  }
  loss_ = map[static_cast<size_t>(loss->value)];
  graph_.add_output(Role::kResult, "loss", loss_);
}

std::string ProbedForward::output_name(int probe) { return fmt::format("probe/{}", probe); }

// |x| - |x|: 0, or nan for what is not finite. Magnitudes, since a pending sum would pass through a difference alone and be seen in parts.
void ProbedForward::add_probe(ValueId value) {
  Builder builder(graph_);
  ValueId magnitude = builder.op("abs", {value}), probe = builder.op("subtract", {magnitude, magnitude});
  std::vector<int64_t> dims(static_cast<size_t>(graph_.type(value).shape.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  if (!dims.empty()) probe = builder.op("reduce_sum", {probe}, {{"dims", dims}, {"keep", int64_t{0}}});
  graph_.add_output(Role::kResult, output_name(count()), probe);
  probed_.push_back(value);
}

std::optional<std::string> ProbedForward::first_bad(const std::vector<bool>& finite) const {
  std::vector<bool> bad(graph_.values.size(), false), leads(graph_.values.size(), false);
  for (size_t p = 0; p < probed_.size(); ++p) bad[static_cast<size_t>(probed_[p])] = !finite[p];
  if (!bad[static_cast<size_t>(loss_)]) return std::nullopt;
  leads[static_cast<size_t>(loss_)] = true;
  ValueId first = loss_;
  for (size_t p = probed_.size(); p-- > 0;) {
    if (!leads[static_cast<size_t>(probed_[p])]) continue;
    first = probed_[p];
    for (ValueId id : graph_.ops[static_cast<size_t>(graph_.value(first).op)].operands)
      leads[static_cast<size_t>(id)] = bad[static_cast<size_t>(id)];
  }
  const Op& op = graph_.ops[static_cast<size_t>(graph_.value(first).op)];
  return fmt::format("the result of '{}'{}", op.def->name,
                     op.scope.empty()     ? ""
                     : op.scope == "loss" ? " in the loss"
                                          : fmt::format(" in layer '{}'", op.scope));
}

Error divergence_error(const Divergence& found) {
  const bool known = found.loss && !std::isfinite(*found.loss);
  const std::string what = fmt::format("loss is {} in step {}", known ? text_of(*found.loss) : "not finite", found.step);
  if (found.sample) return Error(ErrorKind::kDiverged, what, *found.sample, "clean the data");
  const std::string milder = fmt::format("lower the learning rate '{}' or clip the gradients", found.learning_rate);
  if (found.variable && found.step == 1)
    return Error(ErrorKind::kDiverged, what, *found.variable + " before the first step", "check the weights it starts from");
  if (found.variable)
    return Error(ErrorKind::kDiverged, what, fmt::format("{} since the update of step {}", *found.variable, found.step - 1), milder);
  if (found.value) return Error(ErrorKind::kDiverged, what, "the first value that is not finite is " + *found.value, milder);
  return Error(ErrorKind::kDiverged, what, "", milder);
}

}  // namespace espalier::nn
