// Uses: data
// What the program says before anything is trained, as a user or a script meets it: help, errors in words, plans, drawings, prices; and
// that the README shows what it prints.
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "program.h"

namespace espalier {
namespace {

void expect_80_columns(const Finished& finished) {
  for (const std::string& line : lines_of(finished.out)) EXPECT_LE(columns_of(line), 80) << line;
}

const Words kCommands = {"train", "evaluate", "predict", "plan", "inspect", "explain", "verify"};

// --- help and errors ---------------------------------------------------------------------------------------------------------------

// A new flag is a decision: this list changes with it, and so do docs/program.md and the README.
TEST(Cli, FlagsArePinned) {
  std::set<std::string> seen;
  for (const std::string& command : kCommands) {
    Finished help = espalier({command, "--help"});
    const std::regex flag("\n  (--[a-z-]+)");
    for (std::sregex_iterator at(help.out.begin(), help.out.end(), flag), end; at != end; ++at) seen.insert((*at)[1]);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"--batch-axis",   "--batch-size", "--data",     "--device-memory", "--devices",   "--epochs",
                                         "--help",         "--json",       "--layout",   "--learning-rate", "--loss",      "--mesh",
                                         "--metrics",      "--momentum",   "--nesterov", "--on-nan",        "--optimizer", "--out",
                                         "--quiet",        "--samples",    "--save",     "--seed",          "--shuffle",   "--skip-pass",
                                         "--steps",        "--strict",     "--threads",  "--tolerance",     "--trace",     "--version",
                                         "--weight-decay", "--weights"}));
}

TEST(Cli, HelpTeachesWithinEightyColumns) {
  for (const std::string& command : kCommands) {
    Finished help = espalier({command, "--help"});
    EXPECT_EQ(help.code, 0);
    expect_80_columns(help);
    expect_has(help.out, "usage: espalier " + command + " MODEL");
    expect_has(help.out, "\nexamples:\n");
    expect_has(help.out.substr(help.out.find("\nexamples:\n")), "\n  espalier " + command + " model.json");
    EXPECT_EQ(help.out, espalier({"help", command}).out);
  }
  Finished help = espalier({"--help"});
  EXPECT_EQ(help.code, 0);
  expect_80_columns(help);
  for (const std::string& command : kCommands) expect_has(help.out, "\n  " + command);
  EXPECT_EQ(espalier({"--version"}).out.rfind("espalier ", 0), 0u);
}

struct Wrong {
  Words words;
  std::string message;  // part of the first line
  int code = 2;
};

TEST(Cli, WrongWordsSayWhatWhereAndWhatToDo) {
  Scratch scratch;
  const std::string broken = scratch.write("broken.json", "{\"a\": [null"),
                    twice = scratch.write("twice.json", R"({"a": [null], "a": []})"),
                    near = scratch.write("near.json", R"({"sequential/dens/kernel": [null, "data"]})"),
                    number = scratch.write("number.json", R"({"sequential/dense/kernel": [null, 1]})"),
                    text = scratch.write("text.json", R"({"sequential/dense/kernel": "data"})"), list = scratch.write("list.json", "[]"),
                    empty = scratch.write("empty.json", R"({"sequential/dense/kernel": [[]]})"),
                    axis = scratch.write("axis.json", R"({"sequential/dense/kernel": ["dat"]})"),
                    long_one = scratch.write("long.json", R"({"sequential/dense/bias": [null, "data"]})"),
                    weights = scratch.write("weights.safetensors", "not safetensors");
  const Words train = {"train", kTwoDense, "--data", "synthetic"}, plan = {"plan", kTwoDense, "--mesh", "data=2"};
  const std::vector<Wrong> table = {
      {{}, "no command is given"},
      {{"trian", kTwoDense}, "unknown command 'trian'; did you mean 'train'?"},
      {{"train"}, "no model is given"},
      {{"train", "missing.json"}, "no such model file: 'missing.json'"},
      {{"train", scratch.path()}, "the model is a directory"},
      {{"train", kTwoDense}, "no samples are given; give --data"},
      {{"train", kTwoDense, "more"}, "unexpected argument 'more'"},
      {{"explain", kTwoDense}, "no name is given"},
      {{"explain", kTwoDense, "sequential/dens"},
       "there is no variable, layer or op 'sequential/dens': model 'sequential'; did you mean "
       "'sequential/dense'?"},
      {{"predict", kTwoDense, "--data", "synthetic"}, "give --out FILE.npy"},
      {plan + Words{"--layot", broken}, "unknown option '--layot'; did you mean '--layout'?"},
      {plan + Words{"--layout"}, "'--layout' is followed by '--quiet' instead of a value"},
      {plan + Words{"--mesh", "data=2"}, "--mesh is given 2 times"},
      {plan + Words{"--layout", broken}, "the layout file is not JSON: '" + broken + "', line 1, column 12"},
      {plan + Words{"--layout", twice}, "key 'a' stands twice: layout file '" + twice + "'"},
      {plan + Words{"--layout", near}, "did you mean 'sequential/dense/kernel'?"},
      {plan + Words{"--layout", number}, "'1' is no entry of a layout: entry 1 of layout rule 'sequential/dense/kernel' in '" + number},
      {plan + Words{"--layout", text}, "'\"data\"' is no layout: layout rule 'sequential/dense/kernel'"},
      {plan + Words{"--layout", list}, "the layout file holds no object"},
      {plan + Words{"--layout", empty}, "'[]' names no axis: entry 0"},
      {plan + Words{"--layout", axis}, "did you mean 'data'?"},
      {plan + Words{"--layout", long_one}, "'sequential/dense/bias'"},
      {plan + Words{"--layout", "missing.json"}, "no such layout file: 'missing.json'"},
      {plan + Words{"--strict"}, "4 variables match no layout rule"},
      {plan + Words{"--batch-axis", "date"}, "did you mean 'data'?"},
      {plan + Words{"--devices", "cpu:0,gpu:1"}, "unknown device 'gpu:1'"},
      {plan + Words{"--devices", "cpu:0"}, "the mesh has 2 places"},
      {plan + Words{"--devices", "cpu:0,,cpu:1"}, "--devices takes words separated by commas"},
      {plan + Words{"--skip-pass", "fuze"}, "did you mean 'fuse'?"},
      {plan + Words{"--device-memory", "4GB2"}, "'4GB2' is not a memory size"},
      {{"plan", kTwoDense, "--mesh", ""}, "--mesh is given an empty value"},
      {{"plan", kTwoDense, "--mesh", "data"}, "mesh 'data'"},
      {{"plan", kTwoDense, "--mesh", "data=0"}, "data"},
      {train + Words{"--batch-size", "0"}, "--batch-size takes a whole number of at least 1: '0'"},
      {train + Words{"--epochs", "1.5"}, "--epochs takes a whole number"},
      {train + Words{"--seed", "-1"}, "--seed takes a whole number of at least 0: '-1'"},
      {train + Words{"--samples", "99999999999999999999"}, "--samples takes a whole number"},
      {train + Words{"--learning-rate", "nan"}, "--learning-rate takes a number"},
      {train + Words{"--shuffle", "maybe"}, "--shuffle takes true or false: 'maybe'"},
      {train + Words{"--optimizer", "adm"}, "did you mean 'adam'?"},
      {train + Words{"--optimizer", "adam", "--momentum", "0.9"}, "Adam has no momentum"},
      {train + Words{"--loss", "mze"}, "did you mean 'mae'?"},
      {train + Words{"--loss", "head=mse"}, "'head'"},
      {train + Words{"--metrics", "acuracy"}, "did you mean 'accuracy'?"},
      {{"train", kTwoDense, "--data", "fashion-mnits"}, "fashion-mnist"},
      {{"train", kModels + "regression.json", "--data", "synthetic"}, "give --loss"},
      {train + Words{"--weights", "missing.safetensors"}, "'missing.safetensors'", 3},
      {train + Words{"--weights", weights}, "weights.safetensors", 3},
      {train + Words{"--save", scratch.path() + "/no/where"}, "cannot create a file", 4},
      {train + Words{"--device-memory", "1KB"}, "the model does not fit: device 'cpu:0' needs", 9},
      {{"plan", "-"}, "standard input"},
  };
  for (const Wrong& wrong : table) {
    Finished finished = espalier(wrong.words + Words{"--quiet"});
    if (wrong.words.empty()) finished = espalier({});
    SCOPED_TRACE(wrong.message);
    EXPECT_EQ(finished.code, wrong.code) << finished.err;
    EXPECT_EQ(first_line(finished.err).rfind("error: ", 0), 0u) << finished.err;
    expect_has(first_line(finished.err), wrong.message);
    EXPECT_EQ(lines_of(finished.err).size(), 1u) << finished.err;
    EXPECT_EQ(finished.out, "");
  }
}

TEST(Cli, AnErrorIsOneLineWhateverTheWordsHold) {
  Finished run = espalier({"plan", kTwoDense, "--mesh", "data=2\n\x1b[2J"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(lines_of(run.err).size(), 1u) << run.err;
  EXPECT_EQ(run.err.find('\x1b'), std::string::npos) << run.err;
}

TEST(Cli, OptionsWithoutEffectAreNoted) {
  Finished finished = espalier({"plan", kTwoDense, "--save", "x"});
  EXPECT_EQ(finished.code, 0);
  expect_has(finished.err, "note: --save has no effect on this command");
  EXPECT_EQ(espalier({"plan", kTwoDense, "--save", "x", "--quiet"}).err, "");
}

// --- plan and inspect --------------------------------------------------------------------------------------------------------------

Json variable_of(const Json& report, const std::string& path) {
  for (const Json& variable : report["variables"])
    if (variable["path"] == path) return variable;
  ADD_FAILURE() << "no variable " << path;
  return {};
}

TEST(Cli, PlanCutsUnevenlyAndNamesTheRule) {
  Scratch scratch;
  const std::string layout =
      scratch.write("layout.json", R"({"sequential/dense/kernel": [null, "model"], ".*dense_1/kernel": [null, "model"]})");
  Json plan = report({"plan", kTwoDense, "--mesh", "model=4", "--layout", layout});
  Json kernel = variable_of(plan, "sequential/dense/kernel"), last = variable_of(plan, "sequential/dense_1/kernel"),
       bias = variable_of(plan, "sequential/dense/bias");
  EXPECT_EQ(field_of(kernel["shards"], "shape"), (std::vector<Json>{{32, 16}, {32, 16}, {32, 16}, {32, 16}}));
  EXPECT_EQ(field_of(kernel["shards"], "offset"), (std::vector<Json>{{0, 0}, {0, 16}, {0, 32}, {0, 48}}));
  EXPECT_EQ(field_of(kernel["shards"], "device"), (std::vector<Json>{"cpu:0", "cpu:1", "cpu:2", "cpu:3"}));
  EXPECT_EQ(field_of(last["shards"], "shape"), (std::vector<Json>{{64, 3}, {64, 3}, {64, 2}, {64, 2}}));
  EXPECT_EQ(kernel["layout"], Json::parse(R"([null, "model"])"));
  EXPECT_EQ(kernel["rule"], "sequential/dense/kernel");
  EXPECT_EQ(last["rule"], ".*dense_1/kernel");
  EXPECT_EQ(bias["rule"], nullptr);
  EXPECT_EQ(bias["layout"], Json::parse("[null]"));
  EXPECT_EQ(kernel["bytes"], 32 * 64 * 4);
  EXPECT_EQ(kernel["dtype"], "float32");
  EXPECT_EQ(kernel["trainable"], true);
}

TEST(Cli, LayoutsOfSeveralAxesAndOfSizeOneKeepTheUsersWords) {
  Scratch scratch;
  const std::string layout = scratch.write("layout.json", R"({"sequential/dense/kernel": [["model", "data"], "x"]})");
  Json plan = report({"plan", kTwoDense, "--mesh", "data=2,x=1,model=3", "--layout", layout});
  Json kernel = variable_of(plan, "sequential/dense/kernel");
  EXPECT_EQ(kernel["layout"], Json::parse(R"([["model", "data"], "x"])"));
  EXPECT_EQ(kernel["shards"][1]["offset"], Json::parse("[12, 0]"));  // 32 over 6: 6, 6, 5, 5, 5, 5; device 1 is data 0, model 1
  EXPECT_EQ(kernel["shards"][1]["shape"], Json::parse("[5, 64]"));
  EXPECT_EQ(plan["mesh"], Json::parse(R"({"axis_names": ["data", "x", "model"], "shape": [2, 1, 3],
                                          "devices": ["cpu:0", "cpu:1", "cpu:2", "cpu:3", "cpu:4", "cpu:5"]})"));
}

TEST(Cli, PlanReportsTheBatchAndWhatIsSent) {
  Json plan = report({"plan", kModels + "fashion_mnist.json", "--mesh", "data=2", "--batch-size", "129"});
  EXPECT_EQ(plan["batch"], Json::parse(R"({"axis": "data", "size": 129, "per_device": [65, 64]})"));
  int64_t sum = 0;
  for (const Json& one : plan["collectives"]) {
    EXPECT_EQ(one["axes"], Json::parse(R"(["data"])"));
    EXPECT_TRUE(one["phase"] == "forward" || one["phase"] == "backward" || one["phase"] == "update") << one;
    EXPECT_GT(one["reason"].get<std::string>().size(), 10u);
    sum += one["bytes"].get<int64_t>();
  }
  // Each device updates half of a large kernel and receives the other half, 4 bytes a parameter over two. Merging the gradients would
  // double that (2 S (n-1)/n of an all-reduce): the activations and their gradients are less, since the batch is smaller than the layers.
  const int64_t large = 784 * 512 + 512 * 512, small = 512 + 512 + 512 * 10 + 10, parameters = large + small;
  EXPECT_GT(sum, 4 * large / 2 + 4 * small);
  EXPECT_LT(sum, 4 * parameters);
  EXPECT_EQ(plan["communication_bytes"].size(), 2u);
  EXPECT_EQ(plan["fits"], true);
  for (const Json& memory : plan["memory"]) {
    EXPECT_GE(memory["variables"].get<int64_t>(), 4 * parameters);
    // Two moments: those of the large kernels are cut over both devices, in whole rows.
    EXPECT_NEAR(static_cast<double>(memory["optimizer"].get<int64_t>()), static_cast<double>(8 * large / 2 + 8 * small), 12 * 64.0);
    int64_t parts = 0;
    for (const char* part : {"variables", "gradients", "optimizer", "activations", "communication"}) parts += memory[part].get<int64_t>();
    EXPECT_LE(parts, memory["peak"].get<int64_t>());
  }
}

TEST(Cli, DevicesAloneMakeAMesh) {
  Json plan = report({"plan", kTwoDense, "--devices", "cpu:3,cpu:1"});
  EXPECT_EQ(plan["mesh"]["devices"], Json::parse(R"(["cpu:3", "cpu:1"])"));
  EXPECT_EQ(plan["batch"]["per_device"], Json::parse("[16, 16]"));
  EXPECT_EQ(report({"plan", kTwoDense})["mesh"]["devices"], Json::parse(R"(["cpu:0"])"));
  EXPECT_EQ(report({"plan", kTwoDense, "--mesh", "data=2", "--batch-axis", "none"})["batch"],
            Json::parse(R"({"axis": null, "size": 32, "per_device": [32, 32]})"));
}

TEST(Cli, WhatDoesNotFitIsReportedAndAPlanThatFitsIsNamed) {
  const Words words = {"plan", kModels + "big_dense.json", "--mesh", "data=4", "--batch-size", "64", "--device-memory", "4GiB"};
  Finished refused = espalier(words + Words{"--json"});
  EXPECT_EQ(refused.code, 9);
  Json plan = Json::parse(refused.out);
  EXPECT_EQ(plan["fits"], false);
  EXPECT_EQ(plan["device_memory"], int64_t{4} << 30);
  EXPECT_GT(plan["memory"][0]["peak"].get<int64_t>(), int64_t{4} << 30);
  std::smatch proposal;
  const std::regex form(R"(^error: the model does not fit: device 'cpu:0' needs .* of 4\.0 GiB \(variables .*, gradients .*\); )"
                        R"(on these devices --mesh (\S+) with the layout (\{.*\}) fits, with \S+ \S+ on each\n$)");
  ASSERT_TRUE(std::regex_match(refused.err, proposal, form)) << refused.err;
  // The proposal holds what it says.
  Scratch scratch;
  Json fits = report({"plan", kModels + "big_dense.json", "--mesh", proposal[1], "--layout", scratch.write("layout.json", proposal[2]),
                      "--batch-size", "64", "--device-memory", "4GiB"});
  EXPECT_EQ(fits["fits"], true);
  // Training refuses before it allocates.
  Finished train = espalier({"train", kModels + "big_dense.json", "--mesh", "data=4", "--batch-size", "64", "--device-memory", "4GiB",
                             "--data", "synthetic", "--quiet"});
  EXPECT_EQ(train.code, 9);
  EXPECT_EQ(train.out, "");
  EXPECT_EQ(train.err, refused.err);
}

TEST(Cli, EveryModelIsPlannedAndDrawnWithinEightyColumns) {
  for (const std::string model : {"two_dense", "branches", "regression", "uneven", "fashion_mnist", "bench_dense", "big_dense"})
    for (const std::string mesh : {"data=1", "data=3", "data=2,model=2", "data=2,model=4,x=1", "model=7"}) {
      SCOPED_TRACE(model + " on " + mesh);
      const Words words = {kModels + model + ".json", "--mesh", mesh, "--loss", "mse", "--metrics", "none", "--device-memory", "64GiB"};
      Finished plan = espalier(Words{"plan"} + words), inspect = espalier(Words{"inspect"} + words);
      EXPECT_EQ(plan.code, 0) << plan.err;
      EXPECT_EQ(inspect.code, 0) << inspect.err;
      expect_80_columns(plan);
      expect_80_columns(inspect);
      expect_has(plan.out, "fits: ");
      expect_has(inspect.out, "NamedSharding(mesh={'");
    }
}

TEST(Cli, InspectDrawsEveryVariableAndTheBatch) {
  Scratch scratch;
  const std::string layout = scratch.write("layout.json", R"({"sequential/dense/kernel": [null, "model"]})");
  Finished inspect = espalier({"inspect", kTwoDense, "--mesh", "model=4", "--layout", layout, "--batch-axis", "none"});
  expect_has(inspect.out, "NamedSharding(mesh={'model': 4}, spec=(None, 'model'))\n");
  expect_has(inspect.out, "│ cpu:0 │ cpu:1 │ cpu:2 │ cpu:3 │");
  expect_has(inspect.out, "batch of 32, not cut: 32 samples on each device");
  for (const char* path : {"sequential/dense/kernel", "sequential/dense/bias", "sequential/dense_1/kernel", "sequential/dense_1/bias"})
    expect_has(inspect.out, path);
  expect_has(inspect.err, "note: 3 variables match no layout rule");
}

TEST(Cli, AModelMayComeFromStandardInput) {
  ProcessOptions options;
  options.input = content_of(kTwoDense);
  EXPECT_EQ(report({"plan", "-"}, 0, options), report({"plan", kTwoDense}));
}

TEST(Cli, AThousandDevicesArePlanned) {
  Json plan = report({"plan", kModels + "fashion_mnist.json", "--mesh", "data=1024", "--batch-size", "1000"});
  EXPECT_EQ(plan["memory"].size(), 1024u);
  EXPECT_EQ(plan["batch"]["per_device"][999], 1);
  EXPECT_EQ(plan["batch"]["per_device"][1000], 0);
}

TEST(Cli, ExplainPricesOtherLayouts) {
  Scratch scratch;
  const Words layout = {"--mesh", "data=2,model=4", "--layout", scratch.write("l.json", R"({"sequential/dense/kernel": [null, "model"]})")};
  Json kernel = report(Words{"explain", kTwoDense, "sequential/dense/kernel"} + layout);
  EXPECT_EQ(kernel["name"], "sequential/dense/kernel");
  EXPECT_EQ(kernel["layout"], Json::parse(R"([null, "model"])"));
  expect_has(kernel["reason"].get<std::string>(), "layout rule 'sequential/dense/kernel' matches it");
  ASSERT_FALSE(kernel["alternatives"].empty());
  std::vector<Json> priced = kernel["alternatives"].get<std::vector<Json>>();
  priced.push_back(kernel);
  for (const Json& one : priced) {
    // What it says of a layout is what `plan` says of it.
    const std::string file = scratch.write("other.json", Json{{"sequential/dense/kernel", one["layout"]}}.dump());
    Json plan = report({"plan", kTwoDense, "--mesh", "data=2,model=4", "--layout", file});
    std::vector<int64_t> bytes = plan["communication_bytes"].get<std::vector<int64_t>>(), peaks;
    for (const Json& peak : field_of(plan["memory"], "peak")) peaks.push_back(peak);
    EXPECT_EQ(one["bytes"].get<int64_t>(), *std::max_element(bytes.begin(), bytes.end())) << one;
    EXPECT_EQ(one["memory"].get<int64_t>(), *std::max_element(peaks.begin(), peaks.end())) << one;
    const double latency = 16384.0 * static_cast<double>(plan["collectives"].size());
    EXPECT_EQ(one["cost"].get<double>(), one["bytes"].get<double>() + latency + one["flops"].get<double>()) << one;
  }
  for (const Json& other : kernel["alternatives"]) EXPECT_FALSE(other["why_not"].get<std::string>().empty());
  const std::vector<Json> costs = field_of(kernel["alternatives"], "cost");
  EXPECT_TRUE(std::is_sorted(costs.begin(), costs.end()));
  Json layer = report(Words{"explain", kTwoDense, "sequential/dense"} + layout);
  expect_has(layer["name"].get<std::string>(), "sequential/dense/");
  expect_has(layer["reason"].get<std::string>(), "costs least");
  ASSERT_FALSE(layer["alternatives"].empty());
  for (const Json& other : layer["alternatives"]) EXPECT_GE(other["cost"].get<double>(), layer["cost"].get<double>()) << other;
  Json bias = report(Words{"explain", kTwoDense, "sequential/dense_1/bias"} + layout);
  expect_has(bias["reason"].get<std::string>(), "no layout rule matches it");
  EXPECT_FALSE(bias["collectives"].empty());
  for (const char* name : {"sequential/dense/kernel", "sequential/dense", "sequential/dense_1/bias", "input_layer"})
    expect_80_columns(espalier(Words{"explain", kTwoDense, name} + layout));
}

// The batch axis decides how samples are cut; what another would cost is what it costs.
TEST(Cli, ExplainPricesOtherBatchAxes) {
  const Words words = {kTwoDense, "input_layer", "--mesh", "data=2,model=4"};
  const Json data = report(Words{"explain"} + words);
  expect_has(data["reason"].get<std::string>(), "the batch axis 'data' cuts the samples");
  EXPECT_EQ(data["layout"], Json::parse(R"(["data", null])"));
  std::set<std::string> layouts;
  for (const Json& other : data["alternatives"]) {
    layouts.insert(other["layout"].dump());
    const std::string axis = other["layout"][0].is_null() ? "none" : other["layout"][0].get<std::string>();
    const Json asked = report(Words{"explain"} + words + Words{"--batch-axis", axis});
    for (const char* figure : {"bytes", "memory", "flops", "cost"}) EXPECT_EQ(other[figure], asked[figure]) << axis << " " << figure;
  }
  EXPECT_EQ(layouts, (std::set<std::string>{R"(["model",null])", "[null,null]"}));
}

// --- the README ----------------------------------------------------------------------------------------------------------------------

struct Shown {
  Words words;
  std::vector<std::string> lines;  // printed, "..." where some are left out
};

// The commands of the README's code blocks, each with what stands below it.
std::vector<Shown> shown_in(const std::string& readme) {
  std::vector<Shown> all;
  bool inside = false, continued = false;
  for (std::string line : lines_of(readme)) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      if (inside) all.push_back({});
      continue;
    }
    if (!inside) continue;
    const bool begins = line.rfind("$ espalier ", 0) == 0;
    if (begins) all.push_back({});
    if (begins || continued) {
      continued = line.back() == '\\';
      std::istringstream text(begins ? line.substr(11) : line);
      for (std::string word; text >> word;)
        if (word != "\\") all.back().words.push_back(word);
    } else {
      all.back().lines.push_back(line);
    }
  }
  std::erase_if(all, [](const Shown& shown) { return shown.words.empty(); });
  return all;
}

// Each line that is shown is printed, in that order. Figures of memory depend on the processor and its library and are not compared.
void expect_shows(const Shown& shown, const std::string& printed) {
  const std::vector<std::string> lines = lines_of(printed);
  size_t at = 0;
  bool in_memory = false;
  for (const std::string& line : shown.lines) {
    if (line.rfind("memory of a device", 0) == 0) in_memory = true;
    const bool skip = in_memory || line == "..." || line.empty() || line.rfind("error: the model does not fit", 0) == 0;
    if (line.rfind("fits: ", 0) == 0) in_memory = false;
    if (skip) continue;
    while (at < lines.size() && lines[at] != line) ++at;
    EXPECT_LT(at, lines.size()) << "the program does not print (here): " << line << "\n" << printed;
  }
}

TEST(Cli, TheReadmeShowsWhatTheProgramPrints) {
  const std::filesystem::path root = std::filesystem::path(ESPALIER_TEST_DIR).parent_path(), before = std::filesystem::current_path();
  std::filesystem::current_path(root);
  int compared = 0;
  for (const Shown& shown : shown_in(content_of("README.md"))) {
    const bool refused = !shown.lines.empty() && shown.lines[0].rfind("error: ", 0) == 0;
    if (!refused && shown.words[0] != "inspect" && shown.words[0] != "plan" && shown.words[0] != "explain") continue;
    Finished finished = espalier(shown.words);
    SCOPED_TRACE(shown.words[0]);
    expect_shows(shown, refused ? finished.err : finished.out);
    ++compared;
  }
  std::filesystem::current_path(before);
  EXPECT_GE(compared, 5);
}

}  // namespace
}  // namespace espalier
