#pragma once
// Runs single ops on whole tensors and on shards, for the op test. A buffer is exactly as large as its tensor, filled with a pattern and
// fenced, so that what a kernel leaves unwritten, or writes past the end, is seen.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "espalier/ir/graph.h"
#include "espalier/mesh/sharding.h"
#include "espalier/ops/make_kernel.h"

namespace espalier::test {

struct Tensor {
  TensorType type;
  std::vector<uint32_t> words;

  Tensor() = default;
  explicit Tensor(TensorType t) : type(t), words(static_cast<size_t>(t.shape.volume())) {}
  int64_t size() const { return static_cast<int64_t>(words.size()); }
  double at(int64_t i) const {
    uint32_t word = words[static_cast<size_t>(i)];
    return type.dtype == DType::kF32 ? static_cast<double>(std::bit_cast<float>(word)) : static_cast<double>(std::bit_cast<int32_t>(word));
  }
  void set(int64_t i, double value) {
    words[static_cast<size_t>(i)] = type.dtype == DType::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                                              : std::bit_cast<uint32_t>(static_cast<int32_t>(value));
  }
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

using Tensors = std::vector<Tensor>;

inline std::vector<TensorType> types_of(const Tensors& tensors) {
  std::vector<TensorType> types;
  for (const Tensor& tensor : tensors) types.push_back(tensor.type);
  return types;
}

inline LocalTensor whole(const TensorType& type) { return {type.dtype, type.shape, Dims::filled(type.shape.rank(), 0), type.shape}; }

inline LocalOp whole_op(const OpDef& def, const Attrs& attrs, const Tensors& operands, int threads = 1) {
  LocalOp op{.attrs = &attrs, .operands = {}, .results = {}, .threads = threads};
  std::vector<TensorType> types = types_of(operands);
  for (const TensorType& type : types) op.operands.push_back(whole(type));
  for (const TensorType& type : result_types(def, {attrs, types, def.name})) op.results.push_back(whole(type));
  return op;
}

inline constexpr uint32_t kUnwritten = 0xFFC5A5A5;  // a NaN no kernel computes
inline constexpr size_t kFence = 16;                // words on either side of a result

// Runs the kernel. `alias`: the operand in whose buffer result 0 (or result `aliased_result`) is written, -1 for none.
inline Tensors run_op(const OpDef& def, const LocalOp& op, const Tensors& operands, int alias = -1, int aliased_result = 0) {
  Kernel kernel = ops::make_kernel(def, op);
  std::vector<uint32_t> scratch(static_cast<size_t>(kernel.scratch_bytes) / 4 + 16);
  Tensors inputs = operands;
  std::vector<std::vector<uint32_t>> buffers;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(inputs[i].words.data());
  for (const LocalTensor& result : op.results) {
    buffers.emplace_back(static_cast<size_t>(result.shape.volume()) + 2 * kFence, kUnwritten);
    out.push_back(buffers.back().data() + kFence);
  }
  if (alias >= 0) out[static_cast<size_t>(aliased_result)] = inputs[static_cast<size_t>(alias)].words.data();
  kernel.run({in.data(), out.data(), scratch.data()});
  Tensors results;
  for (size_t r = 0; r < out.size(); ++r) {
    Tensor result({op.results[r].dtype, op.results[r].shape});
    if (!result.words.empty()) std::memcpy(result.words.data(), out[r], result.words.size() * 4);
    results.push_back(result);
    for (size_t i = 0; i < kFence; ++i) {
      EXPECT_EQ(buffers[r][i], kUnwritten) << def.name << " writes before result " << r;
      EXPECT_EQ(buffers[r][buffers[r].size() - 1 - i], kUnwritten) << def.name << " writes past result " << r;
    }
    for (uint32_t word : result.words)
      if (word == kUnwritten) {
        ADD_FAILURE() << def.name << " leaves elements of result " << r << " of shape " << to_string(result.type.shape) << " unwritten";
        break;
      }
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(static_cast<int>(i) == alias || inputs[i] == operands[i]) << def.name << " writes into operand " << i;
  return results;
}

inline Tensors run_whole(const OpDef& def, const Attrs& attrs, const Tensors& operands, int threads = 1) {
  return run_op(def, whole_op(def, attrs, operands, threads), operands);
}

// The value of every output of a graph, run op by op on one device.
inline std::vector<Tensor> run_graph(const Graph& graph, const Tensors& inputs) {
  std::vector<Tensor> values(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(graph.inputs[i].value)] = inputs[i];
  for (const Op& op : graph.ops) {
    Tensors operands;
    for (ValueId id : op.operands) operands.push_back(values[static_cast<size_t>(id)]);
    Tensors results = run_whole(*op.def, op.attrs, operands);
    for (size_t r = 0; r < results.size(); ++r) values[static_cast<size_t>(op.results[r])] = results[r];
  }
  return values;
}

// Visits every element of a box: visit(index in the box, index in the tensor of `shape`), both row-major.
template <class Visit>
void visit_box(const Box& box, const Dims& shape, const Visit& visit) {
  const Dims strides = row_major_strides(shape);
  const int64_t count = box.shape.volume();
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at = 0;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      at += (box.offset[d] + rest % box.shape[d]) * strides[d];
      rest /= box.shape[d];
    }
    visit(i, at);
  }
}

inline Tensor cut(const Tensor& tensor, const Box& box) {
  Tensor part({tensor.type.dtype, box.shape});
  visit_box(box, tensor.type.shape,
            [&](int64_t i, int64_t at) { part.words[static_cast<size_t>(i)] = tensor.words[static_cast<size_t>(at)]; });
  return part;
}

// Whether a and b agree to `tolerance`, relative to the larger of |b| and `scale`; infinities and NaN have to be the same.
inline bool close(double a, double b, double tolerance, double scale = 1) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max(scale, std::abs(b));
}

// "" when equal within the tolerance, else where they differ. `exact`: bit for bit.
inline std::string difference(const Tensor& got, const Tensor& want, double tolerance, bool exact) {
  if (!(got.type == want.type)) return "types differ: " + to_string(got.type) + " and " + to_string(want.type);
  for (int64_t i = 0; i < want.size(); ++i) {
    auto w = static_cast<size_t>(i);
    if (exact || want.type.dtype == DType::kI32 ? got.words[w] != want.words[w] : !close(got.at(i), want.at(i), tolerance))
      return "element " + std::to_string(i) + " of " + to_string(want.type) + " is " + std::to_string(got.at(i)) + " instead of " +
             std::to_string(want.at(i));
  }
  return "";
}

inline Tensors draw(const OpSample& sample, const OpDef& def, std::mt19937_64& random) {
  Tensors operands;
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    Tensor tensor({i < def.operand_dtypes.size() ? def.operand_dtypes[i] : DType::kF32, sample.operands[i]});
    for (int64_t e = 0; e < tensor.size(); ++e)
      tensor.set(e, tensor.type.dtype == DType::kF32 ? std::uniform_real_distribution<double>(sample.low, sample.high)(random)
                                                     : static_cast<double>(random() % static_cast<uint64_t>(sample.integer_limit[i])));
    operands.push_back(tensor);
  }
  return operands;
}

inline void prepare(const OpSample& sample, Tensors& operands) {
  if (sample.prepare == nullptr) return;
  std::vector<void*> buffers;
  for (Tensor& operand : operands) buffers.push_back(operand.words.data());
  sample.prepare(sample, buffers);
}

inline std::vector<OpSample> samples_of(const OpDef& def) {
  std::vector<OpSample> samples = def.samples;
  if (def.more_samples != nullptr)
    for (const OpSample& sample : def.more_samples()) samples.push_back(sample);
  return samples;
}

}  // namespace espalier::test
