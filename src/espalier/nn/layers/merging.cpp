#include "espalier/nn/layers/merging.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/nn/layer_trace.h"

namespace espalier::nn {

namespace {

std::string list_shapes(const std::vector<Dims>& shapes) {
  std::string text;
  for (const Dims& shape : shapes) text += (text.empty() ? "" : " and ") + batch_shape_text(shape);
  return text;
}

class MergeDef final : public LayerDef {
 public:
  using Combine = Formula (*)(const std::vector<Formula>& inputs);
  MergeDef(std::string class_name, MergeConfig config, Combine combine, size_t exact_inputs = 0)
      : LayerDef(std::move(class_name), std::move(config.name)), combine_(combine), exact_inputs_(exact_inputs) {}

  std::vector<Dims> output_shapes(const std::vector<Dims>& inputs) const override {
    if (exact_inputs_ != 0 && inputs.size() != exact_inputs_)
      usage_error(fmt::format("{} takes {} inputs, not {}", label(), exact_inputs_, inputs.size()));
    Dims shape = inputs.front();
    for (const Dims& other : inputs) shape = merged(shape, other, inputs);
    return {shape};
  }

  std::vector<ValueId> call(Trace& trace, const std::vector<ValueId>& inputs) const override {
    int rank = 0;
    for (ValueId input : inputs) rank = std::max(rank, trace.shape(input).rank());
    std::vector<Formula> aligned;
    for (ValueId input : inputs) aligned.push_back(with_rank(trace, input, rank));
    return {combine_(aligned).emit(trace.builder())};
  }

 private:
  Dims merged(const Dims& a, const Dims& b, const std::vector<Dims>& all) const {
    if (a.rank() < b.rank()) return merged(b, a, all);
    Dims shape = a;
    int shift = a.rank() - b.rank();
    for (int dim = 0; dim < b.rank(); ++dim) {
      int64_t& size = shape[dim + shift];
      if (size == 1)
        size = b[dim];
      else if (b[dim] != 1 && b[dim] != size)
        usage_error(fmt::format("{} cannot combine shapes {}", label(), list_shapes(all)), "", "make them equal, or 1 where they differ");
    }
    return shape;
  }

  // Dims of size 1 behind the batch until the rank is reached.
  static Formula with_rank(Trace& trace, ValueId x, int rank) {
    Dims shape = trace.shape(x);
    if (shape.rank() == rank) return Formula::of(x);
    Dims wider = {shape[0]};
    for (int missing = shape.rank(); missing < rank; ++missing) wider.push_back(1);
    for (int dim = 1; dim < shape.rank(); ++dim) wider.push_back(shape[dim]);
    return reshape(Formula::of(x), wider);
  }

  Combine combine_;
  size_t exact_inputs_;
};

Formula add(const Formula& a, const Formula& b) { return a + b; }
Formula subtract(const Formula& a, const Formula& b) { return a - b; }
Formula multiply(const Formula& a, const Formula& b) { return a * b; }

template <Formula (*kOp)(const Formula&, const Formula&)>
Formula fold(const std::vector<Formula>& inputs) {
  Formula result = inputs.front();
  for (size_t i = 1; i < inputs.size(); ++i) result = kOp(result, inputs[i]);
  return result;
}

Formula average(const std::vector<Formula>& inputs) { return fold<add>(inputs) / static_cast<double>(inputs.size()); }

class ConcatenateDef final : public LayerDef {
 public:
  explicit ConcatenateDef(ConcatenateConfig config) : LayerDef("Concatenate", std::move(config.name)), axis_(config.axis) {}

  std::vector<Dims> output_shapes(const std::vector<Dims>& inputs) const override {
    Dims shape = inputs.front();
    int dim = sample_axis(axis_, shape.rank() + 1, label()) - 1;
    for (size_t i = 1; i < inputs.size(); ++i) {
      Dims aligned = inputs[i];
      if (aligned.rank() == shape.rank()) aligned[dim] = shape[dim];
      if (aligned != shape)
        usage_error(fmt::format("{} cannot join shapes {} along axis {}", label(), list_shapes(inputs), axis_), "",
                    "they may differ in that axis only");
      shape[dim] += inputs[i][dim];
    }
    return {shape};
  }

  std::vector<ValueId> call(Trace& trace, const std::vector<ValueId>& inputs) const override {
    if (inputs.size() == 1) return inputs;
    int dim = sample_axis(axis_, trace.shape(inputs.front()).rank(), label());
    return {trace.builder().op("concat", inputs, {{"dim", int64_t{dim}}})};
  }

 private:
  int64_t axis_;
};

}  // namespace

Add::Add(MergeConfig config) : Layer(std::make_shared<MergeDef>("Add", std::move(config), fold<add>)) {}
Subtract::Subtract(MergeConfig config) : Layer(std::make_shared<MergeDef>("Subtract", std::move(config), fold<subtract>, 2)) {}
Multiply::Multiply(MergeConfig config) : Layer(std::make_shared<MergeDef>("Multiply", std::move(config), fold<multiply>)) {}
Average::Average(MergeConfig config) : Layer(std::make_shared<MergeDef>("Average", std::move(config), average)) {}
Maximum::Maximum(MergeConfig config) : Layer(std::make_shared<MergeDef>("Maximum", std::move(config), fold<maximum>)) {}
Minimum::Minimum(MergeConfig config) : Layer(std::make_shared<MergeDef>("Minimum", std::move(config), fold<minimum>)) {}
Concatenate::Concatenate(ConcatenateConfig config) : Layer(std::make_shared<ConcatenateDef>(std::move(config))) {}

}  // namespace espalier::nn
