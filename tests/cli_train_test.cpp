// Uses: data
// Training, evaluation, prediction and verification by the program: what it reports and writes, on meshes and on one device, in a terminal,
// into a pipe, and when a signal ends it.
#include <cmath>
#include <cstring>
#include <set>

#include "program.h"

namespace espalier {
namespace {

// --- training ----------------------------------------------------------------------------------------------------------------------

const Words kMesh8 = {"--mesh", "data=2,model=4"};

TEST(CliTrain, TrainReportsWhatItPlannedAndWhatItDid) {
  Scratch scratch;
  const Words words = synthetic("train") + kMesh8 + Words{"--layout", columns_layout(scratch), "--epochs", "2"};
  Json train = report(words);
  EXPECT_EQ(train["steps"], 6);
  EXPECT_EQ(train["step_losses"].size(), 6u);
  EXPECT_EQ(train["history"]["loss"].size(), 2u);
  EXPECT_EQ(train["history"]["accuracy"].size(), 2u);
  EXPECT_EQ(train["batch"]["size"], 32);
  for (const Json& memory : train["memory"]) EXPECT_EQ(memory["allocated"], memory["peak"]);
  EXPECT_EQ(train["communication_bytes_counted"], train["communication_bytes"]);
  EXPECT_GT(train["communication_bytes"][0].get<int64_t>(), 0);
  EXPECT_GT(train["samples_per_second"].get<double>(), 0.0);
  EXPECT_LE(train["step_ms"]["min"].get<double>(), train["step_ms"]["median"].get<double>());
  EXPECT_LE(train["step_ms"]["median"].get<double>(), train["step_ms"]["max"].get<double>());
  EXPECT_GT(train["peak_resident_bytes"].get<int64_t>(), 1 << 20);
  // `plan` said the same before.
  Words as_plan = words;
  as_plan[0] = "plan";
  Json plan = report(as_plan);
  EXPECT_EQ(plan["communication_bytes"], train["communication_bytes"]);
  EXPECT_EQ(plan["collectives"], train["collectives"]);
  EXPECT_FALSE(train["collectives"].empty());
  EXPECT_EQ(plan["variables"], train["variables"]);
  EXPECT_EQ(field_of(plan["memory"], "peak"), field_of(train["memory"], "peak"));
}

TEST(CliTrain, FewerSamplesThanABatchAreOneSmallerBatch) {
  Json train = report({"train", kTwoDense, "--data", "synthetic", "--samples", "5", "--mesh", "data=2", "--steps", "3", "--epochs", "9"});
  EXPECT_EQ(train["steps"], 3);
  EXPECT_EQ(train["batch"], Json::parse(R"({"axis": "data", "size": 5, "per_device": [3, 2]})"));
  EXPECT_EQ(train["communication_bytes_counted"], train["communication_bytes"]);
}

TEST(CliTrain, TheMeshDoesNotShowInLossesWeightsAndPredictions) {
  Scratch scratch;
  const std::string layout = columns_layout(scratch);
  const std::vector<Words> meshes = {{"--mesh", "data=1"},
                                     {"--mesh", "data=3"},
                                     {"--mesh", "model=4", "--layout", layout, "--batch-axis", "none"},
                                     {"--mesh", "data=2,model=4", "--layout", layout},
                                     {"--mesh", "model=3,one=1,data=2", "--layout", layout}};
  std::vector<double> reference;
  std::vector<float> outputs;
  Json evaluated;
  for (const Words& mesh : meshes) {
    SCOPED_TRACE(mesh[1]);
    const std::string weights = scratch / "w.safetensors", out = scratch / "out.npy";
    Json train = report(synthetic("train") + mesh + Words{"--epochs", "3", "--save", weights});
    std::vector<double> losses = train["step_losses"].get<std::vector<double>>();
    Json predict = report(synthetic("predict") + mesh + Words{"--weights", weights, "--out", out});
    EXPECT_EQ(predict["outputs"][0]["shape"], Json::parse("[75, 10]"));
    std::string npy = content_of(out);
    std::vector<float> values(75 * 10);
    ASSERT_GE(npy.size(), values.size() * 4);
    std::memcpy(values.data(), npy.data() + npy.size() - values.size() * 4, values.size() * 4);
    Json evaluate = report(synthetic("evaluate") + mesh + Words{"--weights", weights});
    EXPECT_EQ(evaluate["samples"], 75);
    if (reference.empty()) evaluated = evaluate;
    for (const char* name : {"loss", "accuracy"})
      EXPECT_NEAR(evaluate[name].get<double>(), evaluated[name].get<double>(), 1e-5 * evaluated["loss"].get<double>()) << name;
    if (reference.empty()) reference = losses, outputs = values;
    ASSERT_EQ(losses.size(), reference.size());
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], reference[i], 1e-5 * reference[i]);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], outputs[i], 1e-5);
  }
}

TEST(CliTrain, TwoRunsGiveTheSameBits) {
  Scratch scratch;
  const std::string a = scratch / "a.safetensors", b = scratch / "b.safetensors";
  const Words words = synthetic("train", kModels + "uneven.json") + Words{"--mesh", "data=3", "--epochs", "2"};
  Json first = report(words + Words{"--save", a}), second = report(words + Words{"--save", b});
  EXPECT_EQ(first["step_losses"], second["step_losses"]);
  EXPECT_EQ(content_of(a), content_of(b));
  EXPECT_NE(report(words + Words{"--seed", "7"})["step_losses"], first["step_losses"]);
}

TEST(CliTrain, SavedWeightsAreWholeTensorsThatLoadOnAnyMesh) {
  Scratch scratch;
  const std::string a = scratch / "a.safetensors", b = scratch / "b.safetensors";
  report(synthetic("train") + kMesh8 + Words{"--layout", columns_layout(scratch), "--save", a});
  // A learning rate of zero changes nothing: what was loaded is saved again, from another mesh.
  report(synthetic("train") + Words{"--mesh", "data=3", "--weights", a, "--save", b, "--learning-rate", "0", "--steps", "1"});
  EXPECT_EQ(content_of(a), content_of(b));
  const std::string text = content_of(a);
  uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  Json header = Json::parse(text.substr(8, length));
  EXPECT_EQ(header["sequential/dense/kernel"]["shape"], Json::parse("[32, 64]"));
  EXPECT_EQ(header["sequential/dense_1/bias"]["dtype"], "F32");
}

TEST(CliTrain, OptionsReplaceWhatTheModelFileSays) {
  const Words words = synthetic("train") + Words{"--steps", "4", "--shuffle", "false"};
  auto losses = [&](const Words& more) { return report(words + more)["step_losses"]; };
  const Json file = losses({});
  EXPECT_EQ(file, losses({"--optimizer", "sgd"}));  // the file's optimizer is sgd(0.1): its learning rate stays
  EXPECT_EQ(file, losses({"--learning-rate", "0.1"}));
  EXPECT_NE(file, losses({"--learning-rate", "0.2"}));
  EXPECT_NE(file, losses({"--momentum", "0.9"}));
  EXPECT_NE(losses({"--momentum", "0.9"}), losses({"--momentum", "0.9", "--nesterov", "true"}));
  EXPECT_EQ(losses({"--optimizer", "adam"}), losses({"--optimizer", "adam", "--learning-rate", "0.001"}));
  EXPECT_NE(losses({"--optimizer", "adamw"}), losses({"--optimizer", "adamw", "--weight-decay", "0.5"}));
  Json other = report(words + Words{"--metrics", "sparse_categorical_crossentropy,accuracy"});
  EXPECT_EQ(other["history"].size(), 3u);
  EXPECT_EQ(report(words + Words{"--metrics", "none"})["history"].size(), 1u);
}

TEST(CliTrain, EverySkippedPassStillTrains) {
  Json whole = report(synthetic("train") + kMesh8);
  for (const char* pass : {"simplify", "share_collectives", "fuse", "schedule"}) {
    SCOPED_TRACE(pass);
    Json train = report(synthetic("train") + kMesh8 + Words{"--skip-pass", pass});
    for (size_t i = 0; i < whole["step_losses"].size(); ++i)
      EXPECT_NEAR(train["step_losses"][i].get<double>(), whole["step_losses"][i].get<double>(), 1e-5);
    for (const Json& memory : train["memory"]) EXPECT_EQ(memory["allocated"], memory["peak"]);
  }
}

// --- verify and explain ------------------------------------------------------------------------------------------------------------

TEST(CliTrain, VerifyFindsEveryModelEqual) {
  Scratch scratch;
  const std::string layout = columns_layout(scratch);
  for (const std::string model : {"two_dense", "branches", "uneven", "fashion_mnist"}) {
    SCOPED_TRACE(model);
    Json verify = report({"verify", kModels + model + ".json", "--mesh", "data=2,model=3", "--layout", layout});
    EXPECT_EQ(verify["equal"], true) << verify;
    EXPECT_EQ(verify["steps"], 3);
    EXPECT_EQ(verify["tolerance"], 1e-5);
    EXPECT_LE(verify["max_relative_difference"].get<double>(), 1e-5);
    EXPECT_EQ(verify["first_difference"], nullptr);
  }
}

TEST(CliTrain, VerifyNamesTheFirstDifference) {
  // Float sums over devices round differently than on one device, so a tolerance of zero finds something.
  Json verify = report({"verify", kTwoDense, "--mesh", "data=3", "--tolerance", "0"}, 1);
  EXPECT_EQ(verify["equal"], false);
  const Json& first = verify["first_difference"];
  EXPECT_EQ(first["step"], 1);
  EXPECT_TRUE(first["kind"] == "loss" || first["kind"] == "gradient") << first;
  EXPECT_NE(first["reference"], first["sharded"]);
  EXPECT_NEAR(first["reference"].get<double>(), first["sharded"].get<double>(), 1e-4);
  Finished text = espalier({"verify", kTwoDense, "--mesh", "data=3", "--tolerance", "0", "--quiet"});
  EXPECT_EQ(text.code, 1);
  expect_has(text.out, "not equal: ");
  // One device against itself has nothing to round.
  EXPECT_EQ(report({"verify", kTwoDense, "--tolerance", "0", "--steps", "5"})["max_relative_difference"], 0.0);
}

// --- the terminal, signals, pipes --------------------------------------------------------------------------------------------------

TEST(CliTrain, ALogGetsPlainLinesAndATerminalABar) {
  Finished lines = espalier(synthetic("train") + Words{"--epochs", "3"});
  EXPECT_EQ(lines_of(lines.err).size(), 3u) << lines.err;
  EXPECT_EQ(lines.err.find_first_of("\r\x1b"), std::string::npos);
  expect_has(lines.err, "epoch 3/3  ");
  expect_has(lines.err, "accuracy 0.");
  ProcessOptions terminal;
  terminal.stderr_to = ProcessOptions::Stderr::kTerminal;
  Finished bar = espalier({"train", kTwoDense, "--data", "synthetic", "--samples", "20000", "--epochs", "2"}, terminal);
  EXPECT_EQ(bar.code, 0);
  expect_has(bar.err, "╺");
  expect_has(bar.err, " left");
  expect_has(bar.err, "\r\x1b[K");
  EXPECT_EQ(espalier(synthetic("train") + Words{"--quiet"}, terminal).err, "");
}

TEST(CliTrain, SignalsEndTrainingAfterTheStepAndSaveTheWeights) {
  for (int number : {SIGINT, SIGTERM}) {
    Scratch scratch;
    ProcessOptions options;
    options.signal = number;
    options.signal_at = "epoch 2/";
    const std::string weights = scratch / "w.safetensors";
    Finished stopped = espalier(synthetic("train") + Words{"--epochs", "1000000", "--save", weights, "--json"}, options);
    EXPECT_EQ(stopped.code, 128 + number) << stopped.err;
    Json train = Json::parse(stopped.out);
    EXPECT_GE(train["steps"].get<int64_t>(), 6);
    EXPECT_LT(train["steps"].get<int64_t>(), 3000000);
    EXPECT_EQ(scratch.file_count(), 1u);
    EXPECT_EQ(espalier(synthetic("evaluate") + Words{"--weights", weights}).code, 0);
  }
}

TEST(CliTrain, StandardOutputMayGoAwayOrBeFull) {
  ProcessOptions closed, full;
  closed.stdout_to = ProcessOptions::Stdout::kClosedReader;
  full.stdout_to = ProcessOptions::Stdout::kFull;
  Finished gone = espalier({"plan", kTwoDense}, closed);
  EXPECT_EQ(gone.code, 128 + SIGPIPE);
  EXPECT_EQ(gone.err, "");
  Finished disk = espalier({"plan", kTwoDense}, full);
  EXPECT_EQ(disk.code, 4);
  EXPECT_EQ(disk.err.rfind("error: ", 0), 0u) << disk.err;
}

TEST(CliTrain, ALimitOnFileSizesIsAFailureOfStorage) {
  Scratch scratch;
  ProcessOptions limited;
  limited.file_limit = 4096;  // the weights take 11 KiB
  const std::string path = scratch / "w.safetensors";
  Finished run = espalier(synthetic("train") + Words{"--save", path, "--quiet"}, limited);
  EXPECT_EQ(run.code, 4);
  EXPECT_EQ(run.err.rfind("error: ", 0), 0u) << run.err;
  EXPECT_NE(run.err.find(path), std::string::npos) << run.err;
  EXPECT_EQ(scratch.file_count(), 0u);  // no temporary file stays behind
}

TEST(CliTrain, ATraceIsWrittenWhenTrainingEnds) {
  Scratch scratch;
  const std::string path = scratch / "trace.json";
  const Json train = report(synthetic("train") + Words{"--mesh", "data=2", "--trace", path});
  const Json trace = Json::parse(content_of(path));
  std::vector<int64_t> bytes(2);  // of step 1, by device
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["args"]["run"] == "train" && event["args"]["step"] == 1)
      bytes[event["pid"].get<size_t>() - 1] += event["args"]["bytes"].get<int64_t>();
  EXPECT_EQ(Json(bytes), train["communication_bytes_counted"]);
  EXPECT_GT(bytes[0], 0);

  ProcessOptions interrupted;
  interrupted.signal = SIGINT;
  interrupted.signal_at = "epoch 2/";
  EXPECT_EQ(espalier(synthetic("train") + Words{"--epochs", "1000000", "--trace", path}, interrupted).code, 128 + SIGINT);
  EXPECT_GT(Json::parse(content_of(path))["traceEvents"].size(), 12u);
}

TEST(CliTrain, ATraceThatCannotBeWrittenIsRefusedBeforeTraining) {
  Scratch scratch;
  Finished missing = espalier(synthetic("train") + Words{"--trace", scratch / "none/trace.json"});
  EXPECT_EQ(missing.code, 4);
  expect_has(first_line(missing.err), scratch / "none/trace.json");
  Finished twice = espalier(synthetic("train") + Words{"--trace", scratch / "x", "--save", scratch / "x"});
  EXPECT_EQ(twice.code, 2);
  expect_has(twice.err, "error: --trace and --save name the same file: '" + (scratch / "x") + "'; give two files");
  EXPECT_EQ(scratch.file_count(), 0u);
  ProcessOptions limited;
  limited.file_limit = 4096;
  EXPECT_EQ(espalier(synthetic("train") + Words{"--trace", scratch / "x", "--quiet"}, limited).code, 4);
  EXPECT_EQ(scratch.file_count(), 0u);
}

}  // namespace
}  // namespace espalier
