#pragma once
// The fields of one object of a Keras file, read once each with type, range and default. What nobody has read by `finish` is an error
// unless it is null or false: a field that a newer Keras added and left unused is skipped, one that is used is not.
// All errors (kUsage) name the file, the layer and the field: "'units' is '-3': 'm.json', layer 'dense' (Dense); ...".
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "espalier/base/dims.h"
#include "espalier/interop/keras_text.h"

namespace espalier::keras {

// No dim in the field comes near this; two of them multiplied still fit in 64 bits.
inline constexpr int64_t kMaxSize = (int64_t{1} << 31) - 1;

class Fields {
 public:
  // `object` outlives this; anything but an object counts as one without fields. `place`: "'m.json', layer 'dense' (Dense)".
  Fields(const Json& object, std::string place);

  const std::string& place() const { return place_; }
  // The value of a field, or null when it is absent or null. It counts as read.
  const Json* find(const std::string& name);

  int64_t integer(const std::string& name, std::optional<int64_t> fallback, int64_t low, int64_t high);
  double number(const std::string& name, std::optional<double> fallback);  // finite
  bool truth(const std::string& name, bool fallback);
  std::string word(const std::string& name, const std::string& fallback);
  // A list of whole numbers; a single one counts as a list of one.
  std::vector<int64_t> integers(const std::string& name, int64_t low, int64_t high);

  void skip(std::initializer_list<const char*> names);
  // The field may be absent, null or one of `harmless`; anything else is refused as not supported.
  void require(const std::string& name, std::initializer_list<Json> harmless);
  void finish() const;

  [[noreturn]] void wrong(const std::string& name, const Json& value, const std::string& todo) const;

 private:
  const Json& object_;
  std::string place_;
  std::set<std::string> read_;
};

// A shape as Keras writes it, without its batch dim: [null, 28, 28] -> (28, 28). `batch` gets a fixed batch, else 0.
// Errors: not a list, empty, a dim of unknown size, out of range, too many dims. The product is the caller's to check.
Dims sample_shape(const Json& shape, const std::string& field, const std::string& place, int64_t* batch);

}  // namespace espalier::keras
