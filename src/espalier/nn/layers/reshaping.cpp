#include "espalier/nn/layers/reshaping.h"

#include <fmt/format.h>

#include <cstdlib>

#include "espalier/nn/layer_trace.h"

namespace espalier::nn {

namespace {

Dims with_batch(int64_t batch, const Dims& sample) {
  Dims shape{batch};
  for (int64_t size : sample) shape.push_back(size);
  return shape;
}

Formula channels_to_end(const Formula& x, int rank) {
  std::vector<int64_t> permutation = {0};
  for (int dim = 2; dim < rank; ++dim) permutation.push_back(dim);
  permutation.push_back(1);
  return Formula::op("transpose", {x}, {{"permutation", permutation}});
}

class FlattenDef final : public UnaryLayer {
 public:
  explicit FlattenDef(FlattenConfig config) : UnaryLayer("Flatten", std::move(config.name)), format_(config.data_format) {}

  Dims output_shape(const Dims& input) const override { return {input.volume()}; }

  ValueId call_one(Trace& trace, ValueId id) const override {
    Dims shape = trace.shape(id);
    Dims flat = {shape[0], shape.volume() / shape[0]};
    if (flat == shape) return id;
    Formula x = Formula::of(id);
    if (format_ == DataFormat::kChannelsFirst && shape.rank() > 2) x = channels_to_end(x, shape.rank());
    return reshape(x, flat).emit(trace.builder());
  }

 private:
  DataFormat format_;
};

class ReshapeDef final : public UnaryLayer {
 public:
  ReshapeDef(const Dims& target, ReshapeConfig config) : UnaryLayer("Reshape", std::move(config.name)), target_(target) {
    int unknown = 0;
    for (int64_t size : target) {
      if (size == -1) ++unknown;
      if (size == 0 || size < -1)
        usage_error(fmt::format("{} has the target shape {}", label(), to_string(target)), "", "a dim is 1 or more, or -1 once");
    }
    if (unknown > 1) usage_error(fmt::format("{} has the target shape {}", label(), to_string(target)), "", "only one dim may be -1");
    if (target.rank() >= kMaxRank) usage_error(fmt::format("{} has a target shape of {} dims", label(), target.rank()));
    Dims known = target;
    for (int64_t& size : known) size = std::abs(size);  // 1 for the unknown one
    known_ = checked_volume(known, label());
  }

  Dims output_shape(const Dims& input) const override {
    Dims shape = target_;
    for (int64_t& size : shape)
      if (size == -1) size = input.volume() / known_;
    if (shape.volume() != input.volume())
      usage_error(fmt::format("{} cannot make {} of its input {}", label(), to_string(target_), batch_shape_text(input)), "",
                  fmt::format("a sample has {} elements", input.volume()));
    return shape;
  }

  ValueId call_one(Trace& trace, ValueId x) const override {
    const Dims& shape = trace.shape(x);
    Dims target = with_batch(shape[0], output_shape(Dims(shape.begin() + 1, shape.end())));
    return target == shape ? x : reshape(Formula::of(x), target).emit(trace.builder());
  }

 private:
  Dims target_;
  int64_t known_ = 1;  // elements of the sizes that are given
};

}  // namespace

Flatten::Flatten(FlattenConfig config) : Layer(std::make_shared<FlattenDef>(std::move(config))) {}
Reshape::Reshape(const Dims& target_shape, ReshapeConfig config) : Layer(std::make_shared<ReshapeDef>(target_shape, std::move(config))) {}

}  // namespace espalier::nn
