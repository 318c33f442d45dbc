#include "espalier/checkpoint/json_outline.h"

#include <nlohmann/json.hpp>
#include <set>

namespace espalier {
namespace {

using Json = nlohmann::json;

// Each event returns whether to go on.
class Outliner : public nlohmann::json_sax<Json> {
 public:
  explicit Outliner(size_t deepest) : deepest_(deepest) {}
  JsonOutline result;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool start_object(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) {
      result.twice = key;
      return false;
    }
    if (keys_.size() == 1) result.keys.push_back(key);
    return true;
  }

 private:
  bool enter() {
    result.too_deep = keys_.size() == deepest_;
    keys_.emplace_back();
    return !result.too_deep;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  size_t deepest_;
  std::vector<std::set<std::string>> keys_;  // one entry an open bracket
};

}  // namespace

JsonOutline outline_json(const std::string& text, size_t deepest) {
  Outliner outliner(deepest);
  Json::sax_parse(text, &outliner);
  return std::move(outliner.result);
}

}  // namespace espalier
