#pragma once
// The program, run as a user or a script runs it, and what tests ask of what it says.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "process.h"
#include "scratch.h"
#include "texts.h"

namespace espalier {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

inline const std::string kModels = std::string(ESPALIER_TEST_DIR) + "/models/";
inline const std::string kTwoDense = kModels + "two_dense.json";

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline Finished espalier(const Words& words, const ProcessOptions& options = {}) {
  return run_process(Words{ESPALIER_PROGRAM} + words, options);
}

// A command on three batches of data that every model has.
inline Words synthetic(const std::string& command, const std::string& model = kTwoDense) {
  return {command, model, "--data", "synthetic", "--samples", "75", "--batch-size", "32"};
}

// A layout file by which every dense layer is cut by columns over the axis model.
inline std::string columns_layout(const Scratch& scratch) {
  return scratch.write("columns.json", R"({".*/kernel": [null, "model"], ".*/bias": ["model"]})");
}

// The report of a command that has to end with `code`.
inline Json report(const Words& words, int code = 0, const ProcessOptions& options = {}) {
  Finished finished = espalier(words + Words{"--json"}, options);
  EXPECT_EQ(finished.code, code) << finished.err;
  return Json::parse(finished.out, nullptr, false);
}

inline std::vector<Json> field_of(const Json& list, const std::string& name) {
  std::vector<Json> values;
  for (const Json& entry : list) values.push_back(entry[name]);
  return values;
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
}

}  // namespace espalier
