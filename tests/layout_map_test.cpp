// Uses: mesh
// LayoutMap: which rule meets which variable, and each way in which a map can be wrong.
#include "espalier/mesh/layout_map.h"

#include <gtest/gtest.h>

#include <chrono>

#include "expect_error.h"

namespace espalier {
namespace {

using std::nullopt;
using Strings = std::vector<std::string>;

const std::vector<VariableShape> kModel = {{"sequential/dense/kernel", {784, 512}},
                                           {"sequential/dense/bias", {512}},
                                           {"sequential/dense_1/kernel", {512, 10}},
                                           {"sequential/dense_1/bias", {10}}};

DeviceMesh mesh_2x4() { return DeviceMesh({2, 4}, {"data", "model"}); }

Strings keys(const LayoutMap& map) {
  Strings keys;
  for (const LayoutRule& rule : map) keys.push_back(rule.key);
  return keys;
}

std::string resolve_error(const LayoutMap& map, std::span<const VariableShape> variables, Unmatched unmatched = Unmatched::kReplicate) {
  return error_text([&] { map.resolve(variables, unmatched); });
}

TEST(LayoutMap, KeepsInsertionOrder) {
  LayoutMap map(mesh_2x4());
  map.insert("z", {"model"});
  map.insert("a", {"data"});
  map.insert("m", {});
  EXPECT_EQ(keys(map), (Strings{"z", "a", "m"}));
  map.erase("z");
  EXPECT_EQ(keys(map), (Strings{"a", "m"}));
  map.insert("z", {nullopt, "model"});
  EXPECT_EQ(keys(map), (Strings{"a", "m", "z"}));
  EXPECT_EQ(map.find("z")->layout, (TensorLayout{nullopt, "model"}));
  EXPECT_EQ(map.size(), 3u);
}

TEST(LayoutMap, RefusesDuplicatesAndUnknownKeys) {
  LayoutMap map(mesh_2x4());
  map.insert("dense/kernel", {"model"});
  EXPECT_EQ(error_text([&] { map.insert("dense/kernel", {"data"}); }),
            "layout rule 'dense/kernel' is given twice; erase the first, or join them");
  EXPECT_EQ(error_text([&] { map.erase("dens/kernel"); }), "there is no layout rule 'dens/kernel' to erase; did you mean 'dense/kernel'?");
  EXPECT_EQ(error_text([&] { map.insert("", {"data"}); }),
            "a layout rule has an empty key; give a variable's path or a regular expression");
  EXPECT_EQ(map.find("dense/kernel")->layout, TensorLayout{"model"});
  EXPECT_EQ(map.size(), 1u);
}

TEST(LayoutMap, RefusesUnknownAxesWhenInserted) {
  LayoutMap map(mesh_2x4());
  EXPECT_EQ(error_text([&] {
              map.insert(".*kernel", {nullopt, "modle"});
            }),
            "the mesh {'data': 2, 'model': 4} has no axis 'modle': layout rule '.*kernel'; did you mean 'model'?");
  EXPECT_EQ(error_text([&] {
              map.insert(".*kernel", {nullopt, "model"}, 1);
            }),
            "layout (None, 'model') of rank 2 is longer than the rule's rank 1: layout rule '.*kernel'; give at most one entry a dim");
  EXPECT_TRUE(map.empty());
}

TEST(LayoutMap, RefusesBrokenRegexesWithTheirPosition) {
  LayoutMap map(mesh_2x4());
  auto text = [&](const std::string& key) {
    std::string text = error_text([&] { map.insert(key, {}); });
    return text.substr(0, text.find(';'));
  };
  EXPECT_EQ(text("dense/[a/kernel"),
            "layout rule 'dense/[a/kernel' is a broken regular expression: missing ]: [a/kernel, at position 6: '[a/kernel'");
  EXPECT_EQ(text("a/(b|(c)/kernel"),
            "layout rule 'a/(b|(c)/kernel' is a broken regular expression: missing ): a/(b|(c)/kernel, at position 2: '(b|(c)/kernel'");
  EXPECT_EQ(text("a[)]\\)b)/kernel"),
            "layout rule 'a[)]\\)b)/kernel' is a broken regular expression: unexpected ): a[)]\\)b)/kernel, at position 7: ')/kernel'");
  EXPECT_EQ(text("a/**"), "layout rule 'a/**' is a broken regular expression: bad repetition operator: **, at position 2: '**'");
  EXPECT_EQ(text("*"), "layout rule '*' is a broken regular expression: no argument for repetition operator: *, at position 0: '*'");
  EXPECT_EQ(text("ab{99999}"),
            "layout rule 'ab{99999}' is a broken regular expression: invalid repetition size: {99999}, at position 2: "
            "'{99999}'");
  EXPECT_NE(text("\xff\xfe"), "no error");
  EXPECT_TRUE(map.empty());
}

TEST(LayoutMap, ExactBeatsRegexAndRegexIsWhole) {
  LayoutMap map(mesh_2x4());
  map.insert("sequential/dense.*/kernel", {nullopt, "model"});
  map.insert("sequential/dense/kernel", {"model"});
  EXPECT_EQ(map.find("sequential/dense/kernel")->layout, (TensorLayout{"model"}));
  EXPECT_EQ(map.find("sequential/dense_1/kernel")->layout, (TensorLayout{nullopt, "model"}));
  EXPECT_EQ(map.find("sequential/dense_1/kernels"), nullptr);
  EXPECT_EQ(map.find("my/sequential/dense_1/kernel"), nullptr);
}

TEST(LayoutMap, ResolvesAModel) {
  LayoutMap map(mesh_2x4());
  map.insert("sequential/dense.*/kernel", {nullopt, "model"});
  map.insert("sequential/dense/bias", {{"data", "model"}});
  Resolution resolution = map.resolve(kModel);
  ASSERT_EQ(resolution.variables.size(), 4u);
  EXPECT_EQ(resolution.variables[0].rule, "sequential/dense.*/kernel");
  EXPECT_EQ(resolution.variables[0].layout, (TensorLayout{nullopt, "model"}));
  EXPECT_EQ(local_shape(resolution.variables[0].sharding, {784, 512}, map.mesh(), 7), (Dims{784, 128}));
  EXPECT_EQ(local_shape(resolution.variables[1].sharding, {512}, map.mesh(), 7), (Dims{64}));
  EXPECT_EQ(local_shape(resolution.variables[2].sharding, {512, 10}, map.mesh(), 7), (Dims{512, 2}));
  EXPECT_EQ(resolution.variables[3].rule, nullopt);
  EXPECT_EQ(resolution.variables[3].layout, (TensorLayout{nullopt}));
  EXPECT_TRUE(resolution.variables[3].sharding.replicated());
  EXPECT_EQ(resolution.notes, (Strings{"1 variable matches no layout rule and is replicated: 'sequential/dense_1/bias' (40 B)"}));
  EXPECT_TRUE(resolution.warnings.empty());
}

TEST(LayoutMap, AnEmptyMapReplicatesWithoutRemark) {
  Resolution resolution = LayoutMap(mesh_2x4()).resolve(kModel);
  EXPECT_TRUE(resolution.notes.empty());
  for (const ResolvedVariable& variable : resolution.variables) EXPECT_TRUE(variable.sharding.replicated());
}

TEST(LayoutMap, UnmatchedVariablesAreListedOrRefused) {
  LayoutMap map(mesh_2x4());
  map.insert(".*kernel", {nullopt, "model"});
  EXPECT_EQ(
      map.resolve(kModel).notes,
      (Strings{
          "2 variables match no layout rule and are replicated: 'sequential/dense/bias' (2.0 KiB), 'sequential/dense_1/bias' (40 B)"}));
  EXPECT_EQ(
      resolve_error(map, kModel, Unmatched::kRefuse),
      "2 variables match no layout rule: 'sequential/dense/bias' (2.0 KiB), 'sequential/dense_1/bias' (40 B); add rules for them, or do "
      "not ask for --strict");
  std::vector<VariableShape> many = kModel;
  for (int i = 0; i < 30; ++i) many.push_back({"v" + std::to_string(i), {4}});
  EXPECT_NE(map.resolve(many).notes[0].find("'v9' (16 B), 20 more"), std::string::npos) << map.resolve(many).notes[0];
  map.insert(".*bias", {});
  EXPECT_EQ(resolve_error(map, kModel, Unmatched::kRefuse), "no error");
}

TEST(LayoutMap, ARuleThatMatchesNothingNamesTheNearestPath) {
  LayoutMap map(mesh_2x4());
  map.insert("sequential/dens/kernel", {nullopt, "model"});
  EXPECT_EQ(resolve_error(map, kModel),
            "layout rule 'sequential/dens/kernel' matches no variable; did you mean 'sequential/dense/kernel'? (4 variables, see: espalier "
            "inspect)");
  EXPECT_EQ(resolve_error(map, {}), "layout rule 'sequential/dens/kernel' matches no variable; the model has none");
}

TEST(LayoutMap, ARuleForAPartOfThePathIsToldSo) {
  auto told = [](const std::string& key) {
    LayoutMap map(mesh_2x4());
    map.insert(key, {});
    return resolve_error(map, kModel);
  };
  const std::string whole = "matches no variable; a key has to match the whole path; it would match as ";
  EXPECT_EQ(told("dense.*kernel"), "layout rule 'dense.*kernel' " + whole +
                                       "'.*dense.*kernel', for example 'sequential/dense/kernel' (4 variables, see: espalier inspect)");
  EXPECT_EQ(told("sequential/dense_1"), "layout rule 'sequential/dense_1' " + whole +
                                            "'sequential/dense_1.*', for example 'sequential/dense_1/kernel' (4 variables, see: espalier "
                                            "inspect)");
  EXPECT_EQ(told("dense_1"), "layout rule 'dense_1' " + whole +
                                 "'.*dense_1.*', for example 'sequential/dense_1/kernel' (4 variables, see: espalier inspect)");
  EXPECT_EQ(told("bias|kernel"), "layout rule 'bias|kernel' " + whole +
                                     "'.*(?:bias|kernel)', for example 'sequential/dense/kernel' (4 variables, see: espalier inspect)");
}

TEST(LayoutMap, TwoRegexesOnOneVariableAreRefused) {
  LayoutMap map(mesh_2x4());
  map.insert(".*kernel", {nullopt, "model"});
  map.insert("sequential/dense/.*", {"model"});
  EXPECT_EQ(
      resolve_error(map, kModel),
      "two layout rules match variable 'sequential/dense/kernel': '.*kernel' and 'sequential/dense/.*'; make one of them narrower, or "
      "give the path itself as a key");
  map.insert("sequential/dense/kernel", {});
  EXPECT_EQ(resolve_error(map, kModel), "no error");
}

TEST(LayoutMap, ALayoutLongerThanTheRankIsRefused) {
  LayoutMap map(mesh_2x4());
  map.insert("sequential/dense/.*", {nullopt, "model"});
  EXPECT_EQ(resolve_error(map, kModel),
            "layout (None, 'model') of rank 2 is longer than the shape (512,) of rank 1: variable 'sequential/dense/bias', layout rule "
            "'sequential/dense/.*'; give at most one entry a dim; missing trailing entries mean whole");
  LayoutMap scalar(mesh_2x4());
  scalar.insert("scale", {"model"});
  EXPECT_EQ(resolve_error(scalar, std::vector<VariableShape>{{"scale", {}}}),
            "layout ('model',) of rank 1 is longer than the shape () of rank 0: layout rule 'scale'; give at most one entry a dim; missing "
            "trailing entries mean whole");
}

TEST(LayoutMap, AShorterLayoutLeavesTheTrailingDimsWhole) {
  LayoutMap map(mesh_2x4());
  map.insert(".*", {"model"});
  Resolution resolution = map.resolve(kModel);
  EXPECT_EQ(resolution.variables[0].layout, (TensorLayout{"model", nullopt}));
  EXPECT_EQ(resolution.variables[3].layout, (TensorLayout{"model"}));
  LayoutMap pairs(mesh_2x4());
  pairs.insert("expert", {"data", "model"});
  EXPECT_EQ(pairs.resolve(std::vector<VariableShape>{{"expert", {4, 8, 16}}}).variables[0].layout,
            (TensorLayout{"data", "model", nullopt}));
}

TEST(LayoutMap, ARegexOfRank2ThatMeetsRank3IsRefused) {
  const std::vector<VariableShape> variables = {{"dense/kernel", {8, 16}}, {"expert/kernel", {4, 8, 16}}};
  LayoutMap map(mesh_2x4());
  map.insert(".*kernel", {nullopt, "model"});
  EXPECT_EQ(
      resolve_error(map, variables),
      "layout rule '.*kernel' of rank 2 meets 'expert/kernel' of shape (4, 8, 16), rank 3: it fits 'dense/kernel' of shape (8, 16); limit "
      "the rule to one rank, or write a rule for each");
  map.erase(".*kernel");
  map.insert(".*kernel", {nullopt, "model"}, 2);
  Resolution resolution = map.resolve(variables);
  EXPECT_EQ(resolution.variables[0].rule, ".*kernel");
  EXPECT_EQ(resolution.variables[1].rule, nullopt);
}

TEST(LayoutMap, ARuleCanBeLimitedByRank) {
  const std::vector<VariableShape> attention = {{"query/kernel", {64, 8, 8}}, {"query/lora_b", {8, 40}}};
  DeviceMesh mesh(16, "model");
  LayoutMap free(mesh);
  free.insert("query/.*", {"model"});
  Resolution resolution = free.resolve(attention);
  std::vector<int64_t> rows;
  for (int64_t device = 0; device < 16; ++device) rows.push_back(local_shape(resolution.variables[1].sharding, {8, 40}, mesh, device)[0]);
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(
      resolution.warnings,
      (Strings{
          "layout rule 'query/.*' cuts dim 0 (size 8) of 'query/lora_b' (8, 40) into 16 parts, 8 of them empty; dim 1 (size 40) is the "
          "better one to cut"}));
  LayoutMap limited(mesh);
  limited.insert("query/.*", {"model"}, 3);
  resolution = limited.resolve(attention);
  EXPECT_EQ(resolution.variables[0].rule, "query/.*");
  EXPECT_EQ(resolution.variables[1].rule, nullopt);
  EXPECT_TRUE(resolution.warnings.empty());
  LayoutMap idle(mesh);
  idle.insert("query/kernel", {"model"}, 2);
  EXPECT_EQ(
      resolve_error(idle, attention),
      "layout rule 'query/kernel' is for rank 2 but 'query/kernel' of shape (64, 8, 8) has rank 3; leave the rank out, or write a rule for "
      "that rank");
}

TEST(LayoutMap, ACutThatLeavesEmptyShardsIsWarnedWithTheBetterDim) {
  DeviceMesh mesh(8, "model");
  LayoutMap map(mesh);
  map.insert("conv.*", {"model"});
  auto warning = [&](Dims shape) { return map.resolve(std::vector<VariableShape>{{"conv/kernel", shape}}).warnings; };
  EXPECT_EQ(
      warning({1, 2048, 256}),
      (Strings{
          "layout rule 'conv.*' cuts dim 0 (size 1) of 'conv/kernel' (1, 2048, 256) into 8 parts, 7 of them empty; dim 1 (size 2048) is "
          "the better one to cut"}));
  EXPECT_NE(warning({1, 2049, 256})[0].find("dim 2 (size 256)"), std::string::npos);
  EXPECT_EQ(warning({3, 2})[0], "layout rule 'conv.*' cuts dim 0 (size 3) of 'conv/kernel' (3, 2) into 8 parts, 5 of them empty");
  EXPECT_TRUE(warning({8, 2}).empty());
  EXPECT_TRUE(warning({0, 2}).empty());
}

TEST(LayoutMap, ARuleWithoutEffectIsWarned) {
  LayoutMap map(mesh_2x4());
  map.insert("a.*", {"model"});
  map.insert("a/kernel", {"data"});
  Resolution resolution = map.resolve(std::vector<VariableShape>{{"a/kernel", {8, 8}}});
  EXPECT_EQ(resolution.variables[0].rule, "a/kernel");
  EXPECT_EQ(resolution.warnings, (Strings{"layout rule 'a.*' has no effect: each variable that it matches is a key itself"}));
}

// Row and column statistics of a factored optimizer have shapes, paths and layouts of their own; a kernel's rule does not reach them.
TEST(LayoutMap, AKernelsRuleDoesNotHitAnOptimizersStatistics) {
  LayoutMap map(mesh_2x4());
  map.insert(".*/kernel", {nullopt, "model"});
  EXPECT_EQ(map.find("optimizer/dense/kernel_row"), nullptr);
  EXPECT_EQ(map.find("optimizer/dense/kernel/column"), nullptr);
  map.insert("optimizer/.*_row", {"data"});
  std::vector<VariableShape> slots = {
      {"dense/kernel", {8, 12}}, {"optimizer/dense/kernel_row", {8}}, {"optimizer/dense/kernel_column", {12}}};
  Resolution resolution = map.resolve(slots);
  EXPECT_EQ(resolution.variables[1].layout, (TensorLayout{"data"}));
  EXPECT_EQ(resolution.variables[2].layout, (TensorLayout{nullopt}));
}

// A backtracking matcher needs 2^60 steps for this one.
TEST(LayoutMap, NoKeyTakesMuchMoreMemoryThanItsLength) {
  LayoutMap map(DeviceMesh({2}, {"data"}));
  EXPECT_NE(error_text([&] { map.insert("(\\pL{500}){9}", {}); }).find("layout rule '(\\pL{500}){9}' is a broken regular expression"),
            std::string::npos);
  std::string together;
  for (int i = 0; i < 10000 && together.empty(); ++i) {
    const std::string error = error_text([&] { map.insert("a{999}" + std::to_string(i), {}); });
    if (error != "no error") together = error;
  }
  EXPECT_EQ(together.substr(0, together.find(':')), "the layout rules are too large together");
  EXPECT_LT(map.size(), 2000u);
  std::string alternatives = "(first";
  for (int i = 0; i < 2000; ++i) alternatives += "|block_" + std::to_string(i) + "/attention/query/kernel";
  LayoutMap long_keys(DeviceMesh({2}, {"data"}));
  long_keys.insert(alternatives + ")", {});
  EXPECT_NE(long_keys.find("block_1999/attention/query/kernel"), nullptr);
}

TEST(LayoutMap, ManyRulesAreQuickAndBounded) {
  LayoutMap map(DeviceMesh({2}, {"data"}));
  std::string error = "no error";
  for (int i = 0; i <= 65536 && error == "no error"; ++i) error = error_text([&] { map.insert(std::to_string(i), {}); });
  EXPECT_EQ(error, "there are more than 65536 layout rules: layout rule '65536'; join them into fewer");
}

TEST(LayoutMap, NoKeyHangs) {
  LayoutMap map(mesh_2x4());
  map.insert("(a*)*(a|aa)+(a*)*b", {});
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(map.find(std::string(5000, 'a')), nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(LayoutMap, CopiesAreIndependent) {
  LayoutMap map(mesh_2x4());
  map.insert("a", {"model"});
  LayoutMap copy = map;
  copy.erase("a");
  EXPECT_NE(map.find("a"), nullptr);
  EXPECT_EQ(copy.find("a"), nullptr);
}

}  // namespace
}  // namespace espalier
