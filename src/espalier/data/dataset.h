#pragma once
// Samples for a model's inputs and targets. A device's part of a batch is filled straight from here: any samples, in any order, whole or
// cut, converted on the way; nothing holds a whole batch that it does not own.
//
// A dataset is bound to what the model wants: its fields are the request's fields, in that order, and every value has been checked.
// Datasets never change and may be read by several threads at once.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/dims.h"
#include "espalier/data/array.h"

namespace espalier {

enum class FieldRole { kInput, kTarget };
// What the numbers mean: any finite number, a class from 0 to classes - 1, a row with a single 1, or 0 and 1.
enum class Values { kReal, kClass, kOneHot, kBinary };

// One input or target of a model.
struct FieldSpec {
  std::string name;  // of the model's input or output layer
  FieldRole role = FieldRole::kInput;
  Dims shape;  // of one sample, without the batch: (28, 28); () for a class number
  Values values = Values::kReal;
  int64_t classes = 0;  // for kClass; 0 checks only that labels are whole and not negative
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  int64_t size() const { return size_; }  // samples, at least 1
  const std::vector<FieldSpec>& fields() const { return fields_; }

  // The given samples of fields()[field], each the part at `offset` of `shape` (row-major, in the field's dims), one after the other:
  // samples.size() * shape.volume() numbers. Samples are numbers from 0 to size() - 1, in any order, repeated if need be.
  virtual void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, float* out) const = 0;
  virtual void read(int field, std::span<const int64_t> samples, const Dims& offset, const Dims& shape, int32_t* out) const = 0;
  // Whole samples.
  template <class T>
  void read(int field, std::span<const int64_t> samples, T* out) const {
    const Dims& shape = fields_[static_cast<size_t>(field)].shape;
    read(field, samples, Dims(shape.rank(), 0), shape, out);
  }

 protected:
  Dataset(std::vector<FieldSpec> fields, int64_t size) : fields_(std::move(fields)), size_(size) {}

 private:
  std::vector<FieldSpec> fields_;
  int64_t size_;
};

// An array for one field, and how messages name it: "array 'x' of 'data.npz'".
struct FieldSource {
  Array array;  // (samples, sample's dims)
  std::string where;
};

// A dataset of arrays in memory, sources[i] for fields[i], of the first `samples` samples (all when there are fewer).
// An array's sample fits a field of the same shape, up to dims of size 1, and a flat field of the same volume: images (28, 28) feed an
// input (784). Errors (kUsage), naming the source: no samples, counts that differ, a shape that does not fit, NaN or infinite values,
// labels out of range; the last two with the first such sample.
std::unique_ptr<Dataset> make_dataset(std::vector<FieldSpec> fields, std::vector<FieldSource> sources, int64_t samples);

}  // namespace espalier
