#include "espalier/nn/layers/input.h"

#include <fmt/format.h>

namespace espalier::nn {

InputLayer::InputLayer(const Dims& shape, std::string name) : LayerDef("InputLayer", std::move(name)), shape_(shape) {
  if (shape.rank() >= kMaxRank)
    usage_error(fmt::format("{} has {} dims", label(), shape.rank()), "", fmt::format("a sample has at most {}", kMaxRank - 1));
  for (int64_t size : shape)
    if (size <= 0) usage_error(fmt::format("{} has the shape {}", label(), to_string(shape)), "", "every dim has to be 1 or more");
  checked_volume(shape, label());
}

namespace {

std::shared_ptr<const Node> input_node(const Dims& shape, std::string name) {
  return std::make_shared<const Node>(Node{std::make_shared<InputLayer>(shape, std::move(name)), {}, {shape}});
}

}  // namespace

Input::Input(const Dims& shape, InputConfig config) : Tensor(input_node(shape, std::move(config.name)), 0) {}

}  // namespace espalier::nn
