#include "espalier/nn/layers/regularization.h"

#include <fmt/format.h>

#include "espalier/nn/layer_trace.h"

namespace espalier::nn {

namespace {

class DropoutDef final : public UnaryLayer {
 public:
  DropoutDef(double rate, DropoutConfig config) : UnaryLayer("Dropout", std::move(config.name)), rate_(rate), seed_(config.seed) {
    if (!(rate >= 0 && rate <= 1)) usage_error(fmt::format("{} has rate={}", label(), rate), "", "give a number from 0 to 1");
  }

  ValueId call_one(Trace& trace, ValueId x) const override {
    if (trace.mode() == Mode::kInference || rate_ == 0) return x;
    uint64_t seed = seed_ ? static_cast<uint64_t>(*seed_) : trace.seed();
    ValueId step = trace.random_step();
    return trace.builder().op("dropout", {x, step},
                              {{"rate", rate_}, {"seed", static_cast<int64_t>(seed)}, {"stream", int64_t{trace.stream()}}});
  }

 private:
  double rate_;
  std::optional<int64_t> seed_;
};

}  // namespace

Dropout::Dropout(double rate, DropoutConfig config) : Layer(std::make_shared<DropoutDef>(rate, std::move(config))) {}

}  // namespace espalier::nn
