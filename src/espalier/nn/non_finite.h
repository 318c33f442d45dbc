#pragma once
// What a training does when its loss is nan or infinite, and how it finds the tensor that was the first to be: in the samples, else in the
// variables, else among the values of the forward pass, which is then run once more with a probe behind each of them.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/error.h"
#include "espalier/data/dataset.h"
#include "espalier/ir/graph.h"

namespace espalier::nn {

enum class OnNan {
  kStop,  // the step writes nothing, and training ends with Error(kDiverged)
  kWarn,  // training goes on
};

// "nan", "inf" or "-inf"; a NaN's sign means nothing.
std::string text_of(double value);

// The first of these numbers that is not finite.
std::optional<float> find_bad_number(std::span<const float> numbers);

// "sample 3 of input 'x' holds nan", of the first of these samples that holds what is not finite.
std::optional<std::string> find_bad_sample(const Dataset& data, std::span<const int64_t> samples);

// The forward pass of a training step with probes: for each float value a scalar result that is 0 when the value is finite and nan when it
// is not. A probe costs a pass over the value and keeps nothing alive, so that this takes no more memory than the step itself.
class ProbedForward {
 public:
  // `step` has its loss as the result "loss". It is not kept.
  explicit ProbedForward(const Graph& step);

  // Results "probe/N" of the probes; inputs under their names in the step, those that the forward pass reads.
  const Graph& graph() const { return graph_; }
  static std::string output_name(int probe);
  int count() const { return static_cast<int>(probed_.size()); }

  // "the result of 'log' in layer 'sequential/dense_1'" of the first value on the way to the loss that is not finite: one that came to
  // nothing, as a -inf that is selected away, does not count. finite: one entry a probe. None when all are, or the loss is.
  std::optional<std::string> first_bad(const std::vector<bool>& finite) const;

 private:
  void add_probe(ValueId value);

  Graph graph_;
  std::vector<ValueId> probed_;  // values of graph_, in order of their ops
  ValueId loss_ = kNoValue;
};

// What is known of a step whose loss is not finite.
struct Divergence {
  int64_t step = 0;  // the update that was not made, from 1
  double learning_rate = 0;
  std::optional<double> loss = {};
  std::optional<std::string> sample = {}, variable = {}, value = {};  // what is not finite, as the functions above name it
};
// Error(kDiverged): "loss is nan in step 7: the first value that is not finite is the result of 'log' in layer 'sequential/dense_1'; ..."
Error divergence_error(const Divergence& found);

}  // namespace espalier::nn
