#include "espalier/interop/keras_calls.h"

#include <fmt/format.h>

#include "espalier/base/error.h"

namespace espalier::keras {
namespace {

constexpr const char* kWriteAgain = "write the model again with Keras 3's model.to_json()";

// ["layer", call, output].
RawRef read_ref(const Json& history, const std::string& what, const std::string& place) {
  const bool good = history.is_array() && history.size() == 3 && history[0].is_string() && history[1].is_number_integer() &&
                    history[2].is_number_integer();
  if (!good) usage_error(fmt::format("{} is {}, not a layer, a call and an output", what, shown(history)), place, kWriteAgain);
  return {"", history[0].get<std::string>(), history[1].get<int64_t>(), history[2].get<int64_t>()};
}

bool is_tensor(const Json& value) { return value.is_object() && value.value("class_name", Json()) == "__keras_tensor__"; }

class CallReader {
 public:
  CallReader(const std::string& place, bool operation) : place_(place), operation_(operation) {}

  RawCall read(const Json& node) {
    if (!node.is_object() || !node.contains("args")) {
      usage_error(fmt::format("a call in 'inbound_nodes' is {}, without 'args'", shown(node)), place_, kWriteAgain);
    }
    argument(node["args"], "");
    if (node.contains("kwargs")) keywords(node["kwargs"]);
    return std::move(call_);
  }

 private:
  void argument(const Json& value, const std::string& key) {
    if (is_tensor(value)) {
      tensor(value, key);
    } else if (value.is_array()) {
      for (const Json& one : value) argument(one, key);
    } else if (value.is_object() && !value.contains("class_name")) {
      for (const auto& [name, one] : value.items()) argument(one, name);
    } else if (value.is_number() && operation_ && !call_.constant) {
      call_.constant = value.get<double>();
      call_.constant_first = call_.inputs.empty();
    } else if (!value.is_null() && value != Json(false)) {
      usage_error(fmt::format("the layer is called with {}", shown(value)), place_, "only tensors can be passed to a layer");
    }
  }

  void tensor(const Json& value, const std::string& key) {
    const Json config = value.value("config", Json());
    const Json history = config.is_object() ? config.value("keras_history", Json()) : Json();
    RawRef ref = read_ref(history, "'keras_history'", place_);
    ref.key = key;
    call_.inputs.push_back(std::move(ref));
  }

  // Masks that are null and training=False change nothing. Keras passes the tensor by name when the user did.
  void keywords(const Json& kwargs) {
    if (!kwargs.is_object()) return;
    for (const auto& [name, value] : kwargs.items()) {
      if (says_nothing(value)) continue;
      const bool first_argument = name == "inputs" || name == "x" || name == "x1" || name == "x2";
      if (first_argument) {
        argument(value, "");
      } else if (name == "training") {
        usage_error(fmt::format("the layer is called with training={}", value.dump()), place_, "leave it to train and evaluate to set it");
      } else {
        usage_error(fmt::format("the layer is called with '{}' = {}", name, is_tensor(value) ? "a tensor" : shown(value)), place_,
                    "Espalier's layers take one argument");
      }
    }
  }

  static bool says_nothing(const Json& value) {
    if (value.is_null() || value == Json(false)) return true;
    if (!value.is_array() && !(value.is_object() && !value.contains("class_name"))) return false;
    for (const Json& one : value) {
      if (!says_nothing(one)) return false;
    }
    return true;
  }

  const std::string& place_;
  bool operation_;
  RawCall call_;
};

void collect_ends(const Json& ends, const std::string& key, const std::string& field, const std::string& place, std::vector<RawRef>& into) {
  if (ends.is_object()) {
    for (const auto& [name, one] : ends.items()) collect_ends(one, name, field, place, into);
  } else if (ends.is_array() && !ends.empty() && !ends[0].is_string()) {
    for (const Json& one : ends) collect_ends(one, key, field, place, into);
  } else {
    into.push_back(read_ref(ends, "'" + field + "'", place));
    into.back().key = key;
  }
}

}  // namespace

std::vector<RawCall> read_calls(const Json& nodes, const std::string& place, const std::string& class_name) {
  std::vector<RawCall> calls;
  if (class_name == "InputLayer") return {RawCall{}};
  if (nodes.is_null()) return calls;
  if (!nodes.is_array()) usage_error(fmt::format("'inbound_nodes' is {}", shown(nodes)), place, kWriteAgain);
  for (const Json& node : nodes) {
    calls.push_back(CallReader(place, class_name.starts_with("operation ")).read(node));
    if (calls.back().inputs.empty()) usage_error("the layer is called without a tensor", place, kWriteAgain);
  }
  return calls;
}

std::vector<RawRef> read_ends(const Json& ends, const std::string& field, const std::string& place) {
  std::vector<RawRef> result;
  if (ends.is_null() || ends.empty()) usage_error(fmt::format("there is no '{}'", field), place, kWriteAgain);
  collect_ends(ends, "", field, place, result);
  return result;
}

}  // namespace espalier::keras
