// Uses: cli
// The file of `train --trace`: read back, it says what ran where, what was received, and in which step.
#include "espalier/cli/trace_file.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "espalier/data/synthetic.h"
#include "espalier/distribution/model_parallel.h"
#include "espalier/nn/layers.h"
#include "expect_error.h"
#include "faulty_file_system.h"
#include "scratch.h"
#include "texts.h"

namespace espalier::cli {
namespace {

using Json = nlohmann::json;
using nn::Dense;
using nn::Input;
using nn::StepKind;

constexpr int64_t kBatch = 12, kSteps = 3;

// Two dense layers, cut by columns over `model`, the batch over `data`.
nn::Trainer trainer_for(const std::string& mesh_text, std::function<void(const nn::RunTrace&)> on_run) {
  DeviceMesh mesh = DeviceMesh::parse(mesh_text);
  LayoutMap map(mesh);
  if (mesh.find_axis("model")) map.insert(".*/kernel", {std::nullopt, "model"});
  nn::TrainerOptions options{.batch_size = kBatch};
  options.on_run = std::move(on_run);
  nn::Compilation compilation{.optimizer = nn::SGD(0.1), .loss = "sparse_categorical_crossentropy"};
  return {nn::Sequential({Input({7}), Dense(9, {.activation = "relu"}), Dense(5, {.activation = "softmax"})}), compilation,
          ModelParallel(map, mesh.find_axis("data") ? "data" : "none"), options};
}

// What the file of a few steps holds; `counted`: bytes received by each device in one step.
Json traced(const std::string& mesh, const std::string& path, std::vector<int64_t>* counted = nullptr) {
  TraceFile file(local_files(), path, DeviceMesh::parse(mesh));
  nn::Trainer trainer = trainer_for(mesh, [&](const nn::RunTrace& run) { file.add(run); });
  auto data = make_synthetic_dataset(trainer.fields(StepKind::kTrain), kBatch, 1);
  std::vector<int64_t> samples(static_cast<size_t>(kBatch));
  std::iota(samples.begin(), samples.end(), 0);
  trainer.initialize();
  for (int64_t step = 0; step < kSteps; ++step) trainer.train_batch(*data, samples);
  if (counted != nullptr) *counted = trainer.communicated_bytes();
  trainer.evaluate_batch(*data, samples);
  file.commit();
  return Json::parse(content_of(path)).at("traceEvents");
}

const char* const kMeshes[] = {"data=1", "data=2", "model=3", "data=2,model=2"};

TEST(TraceFile, RowsAreNamedOnceAndEveryEventHasOne) {
  Scratch scratch;
  for (const char* mesh : kMeshes) {
    std::map<std::pair<int, int>, std::string> rows;
    std::set<int> ids;
    std::set<std::string> devices;
    const Json events = traced(mesh, scratch / "trace.json");
    for (const Json& event : events) {
      const int pid = event.at("pid"), tid = event.at("tid");
      if (event.at("ph") == "M" && event.at("name") == "process_name") devices.insert(event.at("args").at("name").get<std::string>());
      if (event.at("ph") == "M" && event.at("name") == "thread_name") {
        EXPECT_TRUE(rows.try_emplace({pid, tid}, event.at("args").at("name").get<std::string>()).second);
        EXPECT_TRUE(ids.insert(tid).second) << "a row's number stands for another device too";
      }
      if (event.at("ph") == "X") {
        ASSERT_EQ(rows.count({pid, tid}), 1u) << event;
        EXPECT_EQ((rows[{pid, tid}]), event.at("cat")) << event;
      }
    }
    EXPECT_EQ(std::ssize(devices), DeviceMesh::parse(mesh).size());
    EXPECT_EQ(std::ssize(rows), 2 * DeviceMesh::parse(mesh).size());
    if (mesh == std::string("data=2,model=2")) {
      EXPECT_EQ(devices.count("cpu:3 (data=1, model=1)"), 1u);
    }
  }
}

TEST(TraceFile, EventsOfARowDoNotOverlapAndStepsFollowEachOther) {
  Scratch scratch;
  for (const char* mesh : kMeshes) {
    std::map<int, double> end_of_row;
    std::map<std::pair<std::string, int64_t>, std::pair<double, double>> span_of_step;
    for (const Json& event : traced(mesh, scratch / "trace.json")) {
      if (event.at("ph") != "X") continue;
      const double begin = event.at("ts"), duration = event.at("dur");
      EXPECT_GE(begin, 0);
      EXPECT_GE(duration, 0);
      double& end = end_of_row[event.at("tid")];
      EXPECT_GE(begin, end - 1e-6) << mesh << ": " << event;
      end = begin + duration;
      auto [at, fresh] = span_of_step.try_emplace({event.at("args").at("run"), event.at("args").at("step")}, begin, end);
      at->second.second = std::max(at->second.second, end);
    }
    ASSERT_EQ(std::ssize(span_of_step), kSteps + 2);  // initialize, the steps, evaluate
    for (int64_t step = 1; step < kSteps; ++step)
      EXPECT_LE((span_of_step.at({"train", step}).second), (span_of_step.at({"train", step + 1}).first) + 1e-6);
    EXPECT_LE((span_of_step.at({"initialize", 0}).second), (span_of_step.at({"train", 1}).first) + 1e-6);
    EXPECT_EQ(span_of_step.count({"evaluate", kSteps}), 1u);
  }
}

TEST(TraceFile, BytesOfAStepAreThoseCounted) {
  Scratch scratch;
  for (const char* mesh : kMeshes) {
    std::vector<int64_t> counted;
    std::map<int64_t, std::vector<int64_t>> traced_bytes;  // by step
    const Json events = traced(mesh, scratch / "trace.json", &counted);
    for (const Json& event : events) {
      if (event.at("ph") != "X" || event.at("args").at("run") != "train") continue;
      std::vector<int64_t>& bytes = traced_bytes[event.at("args").at("step")];
      bytes.resize(counted.size());
      bytes[event.at("pid").get<size_t>() - 1] += event.at("args").at("bytes").get<int64_t>();
      if (event.at("cat") == "compute") {
        EXPECT_EQ(event.at("args").at("bytes"), 0) << event;
      }
    }
    ASSERT_EQ(std::ssize(traced_bytes), kSteps);
    for (const auto& [step, bytes] : traced_bytes) EXPECT_EQ(bytes, counted) << mesh << ", step " << step;
    EXPECT_EQ(counted.front() > 0, DeviceMesh::parse(mesh).size() > 1);
  }
}

// Each op of the program once a step and device, with its layer and phase.
TEST(TraceFile, EventsNameOpLayerPhaseAndBody) {
  Scratch scratch;
  std::set<std::string> layers, phases, bodies, reasons, results;
  std::map<int64_t, int> products;  // of device 0, by step
  const Json events = traced("data=2,model=2", scratch / "trace.json");
  for (const Json& event : events) {
    if (event.at("ph") != "X" || event.at("args").at("run") != "train") continue;
    const Json& args = event.at("args");
    EXPECT_NE(find_op(event.at("name")), nullptr) << event;
    layers.insert(args.at("layer").get<std::string>());
    phases.insert(args.at("phase").get<std::string>());
    if (args.contains("body")) bodies.insert(args.at("body").get<std::string>());
    if (event.at("cat") == "communication") reasons.insert(args.at("reason").get<std::string>());
    results.insert(args.at("result").get<std::string>());
    EXPECT_GE(args.at("worker"), 0);
    if (event.at("pid") == 1 && event.at("name").get<std::string>().starts_with("matmul")) ++products[args.at("step")];
  }
  EXPECT_EQ(layers.count("sequential/dense"), 1u);
  EXPECT_EQ(layers.count("sequential/dense_1"), 1u);
  EXPECT_EQ(phases, (std::set<std::string>{"forward", "backward", "update"}));
  EXPECT_FALSE(bodies.empty());
  EXPECT_EQ(reasons.count(""), 0u);
  EXPECT_FALSE(reasons.empty());
  EXPECT_EQ(results.count("f32[6,5]"), 1u) << "the first part of 9 columns over 2, of 6 samples";
  ASSERT_EQ(std::ssize(products), kSteps);
  for (const auto& [step, count] : products) EXPECT_EQ(count, 5) << "two forward, one for an input, two for weights";
}

// --- files ------------------------------------------------------------------------------------------------------------------------

// One event of the first op of a program, again and again: a training of many steps without its time.
nn::RunTrace run_of(const Compiled& program, int64_t events) {
  nn::RunTrace run{program, "train", 1, {}};
  for (int64_t i = 0; i < events; ++i) run.events.push_back({.device = 0, .op = 0, .worker = 0, .begin_ns = 10 * i, .end_ns = 10 * i + 9});
  return run;
}

TEST(TraceFile, IsRefusedOrWholeNeverHalf) {
  Scratch scratch;
  const DeviceMesh mesh = DeviceMesh::parse("data=1");
  nn::Trainer trainer = trainer_for("data=1", {});
  const Compiled& program = trainer.program(StepKind::kTrain, kBatch);
  const std::string path = scratch.write("trace.json", "old");
  expect_error(ErrorKind::kStorage, {scratch / "none/trace.json"}, [&] { TraceFile(local_files(), scratch / "none/trace.json", mesh); });
  expect_error(ErrorKind::kStorage, {scratch.path()}, [&] { TraceFile(local_files(), scratch.path(), mesh); });
  FaultyFileSystem full;
  full.set_capacity(int64_t{1} << 20);
  expect_error(ErrorKind::kStorage, {path, "No space left"}, [&] {
    TraceFile file(full, path, mesh);
    for (int i = 0; i < 100; ++i) file.add(run_of(program, 1000));
    file.commit();
  });
  { TraceFile abandoned(local_files(), path, mesh); }
  EXPECT_EQ(content_of(path), "old");
  EXPECT_EQ(scratch.file_count(), 1u);
}

// Memory does not grow with the steps: text is written while they run.
TEST(TraceFile, IsWrittenAsItComes) {
  Scratch scratch;
  nn::Trainer trainer = trainer_for("data=1", {});
  const Compiled& program = trainer.program(StepKind::kTrain, kBatch);
  FaultyFileSystem files;
  const std::string path = scratch / "trace.json";
  TraceFile file(files, path, DeviceMesh::parse("data=1"));
  for (int i = 0; i < 20; ++i) file.add(run_of(program, 1000));
  const int64_t writes = files.calls(FileCall::kWrite);
  file.commit();
  EXPECT_EQ(files.calls(FileCall::kWrite), writes + 1);
  const std::string text = content_of(path);
  EXPECT_GE(writes, static_cast<int64_t>(text.size() / (kTraceBuffer + 1024)));
  int64_t events = 0;
  const Json whole = Json::parse(text);
  for (const Json& event : whole.at("traceEvents")) events += event.at("ph") == "X";
  EXPECT_EQ(events, 20000);
}

}  // namespace
}  // namespace espalier::cli
