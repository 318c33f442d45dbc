#include "espalier/ops/reduction.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::ops {
namespace {

bool named(const std::vector<int64_t>& dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

// Offset of the index'th place of the given dims, row-major.
int64_t offset_of(int64_t index, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t d = sizes.size(); d-- > 0;) {
    offset += index % sizes[d] * strides[d];
    index /= sizes[d];
  }
  return offset;
}

}  // namespace

Dims kept_shape(const Dims& shape, const std::vector<int64_t>& dims) {
  Dims kept = shape;
  for (int64_t dim : dims) kept[static_cast<int>(dim)] = 1;
  return kept;
}

FactorRule reduction_rule(const OpSignature& signature, Reduction reduction) {
  const Dims& shape = signature.operands[0].shape;
  const std::vector<int64_t>& dims = signature.attrs.integers("dims");
  const int64_t keep = signature.attrs.integer("keep");
  if (keep != 0 && keep != 1) usage_error(fmt::format("'keep' is {}", keep), signature.where, "give 0 or 1");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= shape.rank())
      usage_error(fmt::format("there is no dim {} in the shape {}", dims[i], to_string(shape)), signature.where, "count dims from 0");
    if (std::count(dims.begin(), dims.end(), dims[i]) > 1) usage_error(fmt::format("dim {} is named twice", dims[i]), signature.where);
  }
  FactorRule rule{.factors = {}, .operands = {{}}, .results = {{}}, .reduction = reduction};
  for (int d = 0; d < shape.rank(); ++d) {
    bool reduced = named(dims, d);
    rule.factors.push_back({static_cast<char>('a' + d), reduced ? FactorKind::kReduce : FactorKind::kPass, shape[d]});
    rule.operands[0].push_back({static_cast<int8_t>(d)});
    if (!reduced)
      rule.results[0].push_back({static_cast<int8_t>(d)});
    else if (keep == 1)
      rule.results[0].push_back({});
  }
  return rule;
}

int64_t ReductionWalk::first_result(int64_t unit) const {
  if (!rows) return unit;
  int64_t blocks = (inner + width - 1) / width;
  return unit / blocks * inner + unit % blocks * width;
}

int64_t ReductionWalk::results(int64_t unit) const {
  if (!rows) return 1;
  int64_t blocks = (inner + width - 1) / width;
  return std::min(width, inner - unit % blocks * width);
}

int64_t ReductionWalk::first_element(int64_t unit) const {
  if (elements == 0) return 0;  // sums of nothing
  if (!rows) return offset_of(unit, kept_sizes, kept_strides);
  int64_t blocks = (inner + width - 1) / width;
  return offset_of(unit / blocks, kept_sizes, kept_strides) + unit % blocks * width;
}

ReductionWalk reduction_walk(const Dims& shape, const std::vector<int64_t>& dims) {
  struct Merged {
    int64_t size, stride;
    bool reduced;
  };
  std::vector<Merged> merged;  // innermost first
  int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (shape[d] != 1) {
      bool reduced = named(dims, d);
      if (!merged.empty() && merged.back().reduced == reduced)
        merged.back().size *= shape[d];
      else
        merged.push_back({shape[d], stride, reduced});
    }
    stride *= shape[d];
  }
  ReductionWalk walk{.units = 1, .elements = shape.volume()};
  size_t outer = merged.empty() ? 0 : 1;
  if (outer > 0 && merged[0].reduced) walk.run = merged[0].size;
  if (outer > 0 && !merged[0].reduced) {
    walk.rows = true;
    walk.inner = merged[0].size;
    walk.width = std::min(kReductionWidth, std::max<int64_t>(walk.inner, 1));
    walk.units = (walk.inner + walk.width - 1) / walk.width;
  }
  for (size_t i = merged.size(); i-- > outer;) {
    const bool reduced = merged[i].reduced;
    (reduced ? walk.reduced_sizes : walk.kept_sizes).push_back(merged[i].size);
    (reduced ? walk.reduced_strides : walk.kept_strides).push_back(merged[i].stride);
    if (!merged[i].reduced) walk.units *= merged[i].size;
  }
  return walk;
}

std::vector<OpSample> reduction_samples() {
  auto sample = [](Dims shape, std::vector<int64_t> dims, int64_t keep) {
    return OpSample{{shape}, {{"dims", std::move(dims)}, {"keep", keep}}};
  };
  return {sample({7, 13}, {1}, 0),   sample({7, 13}, {0}, 0),   sample({7, 13}, {1}, 1), sample({3, 5, 4}, {0, 2}, 0),
          sample({3, 5, 4}, {1}, 1), sample({5, 7}, {0, 1}, 0), sample({13}, {0}, 0),    sample({2, 1, 3}, {1}, 0),
          sample({1}, {0}, 1),       sample({0, 3}, {1}, 0)};
}

}  // namespace espalier::ops
