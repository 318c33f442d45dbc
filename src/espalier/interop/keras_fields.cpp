#include "espalier/interop/keras_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "espalier/base/error.h"

namespace espalier::keras {
namespace {

const Json& empty_object() {
  static const Json kEmpty = Json::object();
  return kEmpty;
}

// Whole numbers are whole in JSON whether they are written 64 or 64.0.
std::optional<int64_t> whole(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return number <= static_cast<uint64_t>(INT64_MAX) ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  return std::floor(number) == number && std::abs(number) < 9e15 ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
}

std::string range_text(int64_t low, int64_t high) { return fmt::format("give a whole number from {} to {}", low, high); }

}  // namespace

Fields::Fields(const Json& object, std::string place) : object_(object.is_object() ? object : empty_object()), place_(std::move(place)) {}

const Json* Fields::find(const std::string& name) {
  read_.insert(name);
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

void Fields::wrong(const std::string& name, const Json& value, const std::string& todo) const {
  usage_error(fmt::format("'{}' is {}", name, shown(value)), place_, todo);
}

int64_t Fields::integer(const std::string& name, std::optional<int64_t> fallback, int64_t low, int64_t high) {
  const Json* value = find(name);
  if (!value && fallback) return *fallback;
  if (!value) usage_error(fmt::format("there is no '{}'", name), place_, range_text(low, high));
  const auto number = whole(*value);
  if (!number || *number < low || *number > high) wrong(name, *value, range_text(low, high));
  return *number;
}

double Fields::number(const std::string& name, std::optional<double> fallback) {
  const Json* value = find(name);
  if (!value && fallback) return *fallback;
  if (!value) usage_error(fmt::format("there is no '{}'", name), place_, "give a number");
  if (!value->is_number() || !std::isfinite(value->get<double>())) wrong(name, *value, "give a number");
  return value->get<double>();
}

bool Fields::truth(const std::string& name, bool fallback) {
  const Json* value = find(name);
  if (!value) return fallback;
  if (!value->is_boolean()) wrong(name, *value, "give true or false");
  return value->get<bool>();
}

std::string Fields::word(const std::string& name, const std::string& fallback) {
  const Json* value = find(name);
  if (!value) return fallback;
  if (!value->is_string()) wrong(name, *value, "give a string");
  return value->get<std::string>();
}

std::vector<int64_t> Fields::integers(const std::string& name, int64_t low, int64_t high) {
  std::vector<int64_t> result;
  const Json* value = find(name);
  if (!value) return result;
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& entry : list) {
    const auto number = whole(entry);
    if (!number || *number < low || *number > high) wrong(name, *value, fmt::format("give whole numbers from {} to {}", low, high));
    result.push_back(*number);
  }
  return result;
}

void Fields::skip(std::initializer_list<const char*> names) {
  for (const char* name : names) read_.insert(name);
}

void Fields::require(const std::string& name, std::initializer_list<Json> harmless) {
  const Json* value = find(name);
  if (!value) return;
  std::string allowed = "null";
  for (const Json& one : harmless) {
    if (*value == one) return;
    allowed += " or " + one.dump();
  }
  usage_error(fmt::format("'{}' is {}, which Espalier does not have", name, shown(*value)), place_,
              fmt::format("only {} can be read", allowed));
}

void Fields::finish() const {
  for (const auto& [name, value] : object_.items()) {
    if (read_.count(name) || value.is_null() || value == Json(false)) continue;
    usage_error(fmt::format("'{}' is {}, a field that Espalier does not know", name, shown(value)), place_,
                "take it out, or give null if it changes nothing");
  }
}

Dims sample_shape(const Json& shape, const std::string& field, const std::string& place, int64_t* batch) {
  const auto fail = [&](const std::string& todo) { usage_error(fmt::format("'{}' is {}", field, shown(shape)), place, todo); };
  if (!shape.is_array() || shape.empty()) fail("give a list of sizes, the batch first");
  if (shape.size() > static_cast<size_t>(kMaxRank)) fail(fmt::format("at most {} dims can be had", kMaxRank));
  Dims dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_null() && i == 0) continue;
    if (shape[i].is_null()) fail("every dim but the batch needs a size; give it in keras.Input");
    const auto size = whole(shape[i]);
    if (!size || *size < 1 || *size > kMaxSize) fail(fmt::format("sizes are whole numbers from 1 to {}", kMaxSize));
    if (i == 0) {
      *batch = *size;
    } else {
      dims.push_back(*size);
    }
  }
  return dims;
}

}  // namespace espalier::keras
