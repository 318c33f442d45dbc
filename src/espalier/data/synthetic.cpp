#include "espalier/data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "espalier/base/philox.h"
#include "espalier/base/runs.h"

namespace espalier {
namespace {

constexpr uint32_t kSampleStream = 0x73616d70;  // "samp": apart from the small numbers that variables and layers use

class SyntheticDataset : public Dataset {
 public:
  SyntheticDataset(std::vector<FieldSpec> specs, int64_t size, uint64_t seed) : Dataset(std::move(specs), size), seed_(seed) {}

  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, float* out) const override {
    read_as(field, samples, offset, shape, out);
  }
  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, int32_t* out) const override {
    read_as(field, samples, offset, shape, out);
  }

 private:
  template <class T>
  void read_as(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, T* out) const {
    const FieldSpec& spec = fields()[static_cast<size_t>(field)];
    for (int64_t sample : samples) {
      ESPALIER_ASSERT(sample >= 0 && sample < size());
      for_each_run(spec.shape, offset, shape, [&](int64_t at_whole, int64_t at_part, int64_t count) {
        fill(spec, static_cast<uint32_t>(field), sample, at_whole, count, out + at_part);
      });
      out += shape.volume();
    }
  }

  // Elements `begin` to `begin + count` of a sample. Each block of four words belongs to four neighbours of one sample.
  template <class T>
  void fill(const FieldSpec& spec, uint32_t field, int64_t sample, int64_t begin, int64_t count, T* out) const {
    int64_t row = spec.values == Values::kOneHot ? std::max<int64_t>(spec.shape.rank() > 0 ? spec.shape.back() : 1, 1) : 1;
    int64_t draws = spec.shape.volume() / row, blocks = (draws + 3) / 4, held = -1;
    std::array<float, 4> values{};
    for (int64_t i = begin; i < begin + count; ++i) {
      int64_t draw = i / row;
      if (draw / 4 != held) {
        held = draw / 4;
        values = draw_four(spec, row, random_block(seed_, kSampleStream, field, static_cast<uint64_t>(sample * blocks + held)));
      }
      float value = values[static_cast<size_t>(draw % 4)];
      *out++ = static_cast<T>(spec.values == Values::kOneHot ? (static_cast<int64_t>(value) == i % row ? 1.0f : 0.0f) : value);
    }
  }

  static std::array<float, 4> draw_four(const FieldSpec& spec, int64_t row, const PhiloxBlock& block) {
    std::array<float, 4> values;
    auto classes = static_cast<uint64_t>(spec.values == Values::kOneHot                      ? row
                                         : spec.values == Values::kClass && spec.classes > 0 ? spec.classes
                                                                                             : 2);
    for (size_t i = 0; i < 4; ++i) {
      if (spec.values != Values::kReal) {
        values[i] = static_cast<float>(uint64_t{block[i]} * classes >> 32);
      } else if (spec.role == FieldRole::kInput) {
        values[i] = (2.0f * to_uniform(block[i]) - 1.0f) * std::numbers::sqrt3_v<float>;
      } else {  // Box-Muller on the pair (i, i ^ 1); 1 - u keeps the logarithm finite
        float radius = std::sqrt(-2.0f * std::log(1.0f - to_uniform(block[i & ~size_t{1}])));
        float angle = 2.0f * std::numbers::pi_v<float> * to_uniform(block[i | 1]);
        values[i] = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
      }
    }
    return values;
  }

  uint64_t seed_;
};

// Small data sets are drawn once: drawing a batch again each step would take longer than copying it, and show in every measurement.
constexpr int64_t kRememberedValues = 4 << 20;

std::unique_ptr<Dataset> remembered(const Dataset& drawn) {
  std::vector<int64_t> samples(static_cast<size_t>(drawn.size()));
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<FieldSource> sources;
  for (size_t f = 0; f < drawn.fields().size(); ++f) {
    Dims shape = {drawn.size()};
    for (int64_t size : drawn.fields()[f].shape) shape.push_back(size);
    const Array array = allocate_array(NumberType::kF32, shape, "synthetic");
    drawn.read(static_cast<int>(f), samples, reinterpret_cast<float*>(array.values.get()));
    sources.push_back({array, "synthetic"});
  }
  return make_dataset(drawn.fields(), std::move(sources), drawn.size());
}

}  // namespace

std::unique_ptr<Dataset> make_synthetic_dataset(std::vector<FieldSpec> fields, int64_t samples, uint64_t seed) {
  if (fields.empty()) usage_error("no fields to make samples for", "synthetic", "name at least one input");
  if (samples < 1) usage_error(fmt::format("'{}' samples", samples), "synthetic", "use at least 1");
  int64_t values = 0;  // of a sample
  for (const FieldSpec& field : fields) values += field.shape.volume();
  auto drawn = std::make_unique<SyntheticDataset>(std::move(fields), samples, seed);
  if (values <= kRememberedValues / samples) return remembered(*drawn);
  return drawn;
}

}  // namespace espalier
