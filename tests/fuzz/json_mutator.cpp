#include "json_mutator.h"

#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);  // libFuzzer's own, on bytes

namespace espalier::fuzz {
namespace {

using Json = nlohmann::ordered_json;
using Random = std::minstd_rand;

constexpr int kDeepest = 64;  // brackets; copying and writing recurse over them

size_t below(Random& random, size_t n) { return random() % n; }

void collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (value.is_structured())
    for (Json& child : value) collect(child, all);
}

Json odd_value(Random& random) {
  static const std::vector<Json> values = {nullptr,
                                           true,
                                           false,
                                           0,
                                           1,
                                           -1,
                                           2,
                                           3,
                                           8,
                                           0.5,
                                           -0.0,
                                           1e-320,
                                           1e308,
                                           2147483647,
                                           2147483648,
                                           4294967296,
                                           std::numeric_limits<int64_t>::max(),
                                           std::numeric_limits<int64_t>::min(),
                                           std::numeric_limits<uint64_t>::max(),
                                           "",
                                           "x",
                                           Json::array(),
                                           Json::object(),
                                           {nullptr, 4},
                                           {{"class_name", "Dense"}, {"config", Json::object()}}};
  return values[below(random, values.size())];
}

void change_scalar(Json& value, Random& random) {
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    const size_t size = text.size();
    text.resize(size + 16);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
    value = text;
  } else if (value.is_number_integer()) {
    const int64_t number = value.get<int64_t>();
    const uint64_t changes[] = {static_cast<uint64_t>(number) + 1, static_cast<uint64_t>(number) - 1, -static_cast<uint64_t>(number),
                                static_cast<uint64_t>(number) * 1000};
    value = static_cast<int64_t>(changes[below(random, 4)]);
  } else {
    value = odd_value(random);
  }
}

void change_structure(Json& value, Random& random) {
  if (value.empty()) {
    value = odd_value(random);
    return;
  }
  const auto any = [&] { return std::next(value.begin(), static_cast<std::ptrdiff_t>(below(random, value.size()))); };
  const auto chosen = any(), other = any();
  switch (below(random, 3)) {
    case 0:
      value.erase(chosen);
      break;
    case 1:
      std::swap(*chosen, *other);
      break;
    default:
      if (value.is_array())
        value.push_back(Json(*chosen));
      else
        value[chosen.key() + (below(random, 2) == 0 ? "_1" : "s")] = Json(*chosen);
  }
}

void change(Json& document, Random& random) {
  std::vector<Json*> all;
  collect(document, all);
  Json& value = *all[below(random, all.size())];
  switch (below(random, 4)) {
    case 0:
      value = odd_value(random);
      break;
    case 1:
      value = Json(*all[below(random, all.size())]);
      break;
    default:
      value.is_structured() ? change_structure(value, random) : change_scalar(value, random);
  }
}

}  // namespace

std::string mutate_json(const std::string& text, unsigned seed, size_t most) {
  Random random(seed + 1);
  bool deep = false;
  auto watch = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  Json document = Json::parse(text, watch, false);
  if (deep || document.is_discarded()) return "";
  for (size_t changes = 1 + below(random, 3); changes > 0; --changes) change(document, random);
  std::string out = document.dump(-1, ' ', false, Json::error_handler_t::ignore);
  return out.size() <= most ? out : "";
}

}  // namespace espalier::fuzz
