#include "espalier/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "espalier/base/runs.h"
#include "espalier/base/text.h"

namespace espalier {
namespace {

class ArrayDataset : public Dataset {
 public:
  ArrayDataset(std::vector<FieldSpec> fields, std::vector<Array> arrays, int64_t size)
      : Dataset(std::move(fields), size), arrays_(std::move(arrays)) {}

  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, float* out) const override {
    read_as(field, samples, offset, shape, out);
  }
  void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, int32_t* out) const override {
    read_as(field, samples, offset, shape, out);
  }

 private:
  template <class T>
  void read_as(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, T* out) const {
    const Array& array = arrays_[static_cast<size_t>(field)];
    const Dims& whole = fields()[static_cast<size_t>(field)].shape;
    const int64_t width = size_of(array.type), sample_bytes = whole.volume() * width;
    struct Run {
      int64_t from, to, count;
    };
    std::vector<Run> runs;  // of every sample alike
    for_each_run(whole, offset, shape, [&](int64_t at_whole, int64_t at_part, int64_t count) {
      runs.push_back({at_whole * width, at_part, count});
    });
    for (int64_t sample : samples) {
      ESPALIER_ASSERT(sample >= 0 && sample < size());
      const std::byte* from = array.values.get() + sample * sample_bytes;
      for (const Run& run : runs) convert(array.type, from + run.from, run.count, out + run.to);
      out += shape.volume();
    }
  }

  std::vector<Array> arrays_;
};

Dims without_ones(const Dims& shape) {
  Dims rest;
  for (int64_t size : shape)
    if (size != 1) rest.push_back(size);
  return rest;
}

bool fits(const Dims& sample, const FieldSpec& field) {
  return without_ones(sample) == without_ones(field.shape) || (field.shape.rank() == 1 && sample.volume() == field.shape[0]);
}

std::string wanted(const FieldSpec& field) {
  return fmt::format("the model's {} '{}'", field.role == FieldRole::kInput ? "input" : "output", field.name);
}

void check_shape(const FieldSpec& field, const FieldSource& source) {
  const Dims& shape = source.array.shape;
  if (shape.rank() == 0) usage_error("a single number has no samples", source.where, "save an array whose first dim counts samples");
  Dims sample(shape.begin() + 1, shape.end());
  if (fits(sample, field)) return;
  std::string todo = "reshape the array, or change the model's shape";
  if (field.values == Values::kClass && sample.volume() > 1) todo = "one-hot rows need the loss categorical_crossentropy";
  if (field.values == Values::kOneHot && sample.volume() == 1) todo = "class numbers need the loss sparse_categorical_crossentropy";
  const std::string takes = field.values == Values::kClass ? "class numbers" : to_string(field.shape);
  usage_error(fmt::format("samples of shape {} do not fit {}, which takes {}", to_string(sample), wanted(field), takes), source.where,
              todo);
}

// What is wrong with a value, or null.
const char* problem(double value, const FieldSpec& field) {
  if (!std::isfinite(static_cast<float>(value))) return "is not a finite 32-bit number";
  if (field.values != Values::kClass) return nullptr;
  int64_t classes = field.classes > 0 ? field.classes : std::numeric_limits<int32_t>::max();
  return value == std::floor(value) && value >= 0 && value < static_cast<double>(classes) ? nullptr : "is not a class number";
}

[[noreturn]] void refuse_value(const FieldSpec& field, const FieldSource& source, int64_t index, double value) {
  std::string range;
  if (field.values == Values::kClass && field.classes > 0) range = fmt::format(" of {} classes, 0 to {}", field.classes, field.classes - 1);
  usage_error(fmt::format("value '{}' {}{}", value, problem(value, field), range),
              fmt::format("sample {} of {}", index / field.shape.volume(), source.where),
              fmt::format("clean the data for {}", wanted(field)));
}

void check_values(const FieldSpec& field, const FieldSource& source, int64_t samples) {
  const Array& array = source.array;
  if (is_integer(array.type) && field.values != Values::kClass) return;  // integers are always finite
  constexpr int64_t kChunk = 4096;                                       // 32 KiB of doubles stay in the first cache
  std::vector<double> values(static_cast<size_t>(kChunk));
  int64_t total = samples * field.shape.volume();
  for (int64_t begin = 0; begin < total; begin += kChunk) {
    int64_t count = std::min(kChunk, total - begin);
    convert(array.type, array.values.get() + begin * size_of(array.type), count, values.data());
    for (int64_t i = 0; i < count; ++i)
      if (problem(values[static_cast<size_t>(i)], field) != nullptr) refuse_value(field, source, begin + i, values[static_cast<size_t>(i)]);
  }
}

}  // namespace

std::unique_ptr<Dataset> make_dataset(std::vector<FieldSpec> fields, std::vector<FieldSource> sources, int64_t samples) {
  if (fields.empty() || fields.size() != sources.size())
    usage_error(fmt::format("{} arrays for {} fields", sources.size(), fields.size()), "make_dataset", "give one array a field");
  if (samples < 1) usage_error(fmt::format("'{}' samples", samples), "the number of samples to use", "use at least 1");
  for (size_t i = 0; i < fields.size(); ++i) check_shape(fields[i], sources[i]);
  int64_t count = sources[0].array.shape[0];
  for (const FieldSource& source : sources)
    if (source.array.shape[0] != count)
      usage_error(fmt::format("{}, but {} has {}", counted(source.array.shape[0], "sample"), sources[0].where, format_count(count)),
                  source.where, "inputs and targets need one entry a sample");
  if (count == 0) usage_error("no samples", sources[0].where, "give at least one");
  samples = std::min(samples, count);
  std::vector<Array> arrays;
  for (size_t i = 0; i < fields.size(); ++i) {
    check_values(fields[i], sources[i], samples);
    arrays.push_back(std::move(sources[i].array));
  }
  return std::make_unique<ArrayDataset>(std::move(fields), std::move(arrays), samples);
}

}  // namespace espalier
