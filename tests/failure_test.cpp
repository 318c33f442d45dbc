// Uses: data
// What goes wrong in the middle of a run of the program: a loss that is not finite, a full disk, a place that nobody may write, a signal,
// no memory. One cause is told, in one line, and no partial file stays. A device that throws: runtime_failures_test; a data set that does:
// train_test.
#include <fcntl.h>

#include <algorithm>
#include <filesystem>

#include "adversity_files.h"
#include "program.h"
#include "sanitizers.h"

namespace espalier {
namespace {

// --- a loss that is not finite -------------------------------------------------------------------------------------------------------

// With this rate the first update is finite and the second loss is not.
const Words kSteep = {"--learning-rate", "1e38", "--epochs", "2"};

TEST(OnNan, StopNamesTheCauseAndSavesTheWeightsOfTheStepBefore) {
  for (const Words& mesh : {Words{}, Words{"--mesh", "data=3"}}) {
    Scratch scratch;
    const std::string stopped = scratch / "stopped.safetensors", before = scratch / "before.safetensors";
    const Finished run = espalier(synthetic("train") + kSteep + mesh + Words{"--save", stopped, "--json"});
    EXPECT_EQ(run.code, 10);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err, "note: the weights after step 1 are saved in '" + stopped +
                           "'\nerror: loss is nan in step 2: the first value that is not finite is the result of 'matmul' in layer "
                           "'sequential/dense_1'; lower the learning rate '1e+38' or clip the gradients\n");
    ASSERT_EQ(espalier(synthetic("train") + kSteep + mesh + Words{"--save", before, "--steps", "1"}).code, 0);
    EXPECT_EQ(content_of(stopped), content_of(before));
    EXPECT_EQ(scratch.file_count(), 2u);
  }
}

// One step of a rate at which the update itself overflows: no loss shows it.
Words overflowing(Scratch& scratch) {
  const std::string data = scratch.write("data.npz", zip({{"x.npy", npy("<f4", "(2, 10)", bytes_of(std::vector<float>(20, 1e3f)))},
                                                          {"y.npy", npy("<f4", "(2, 2)", bytes_of(std::vector<float>(4, -1e3f)))}}));
  return {kModels + "regression.json", "--data", data, "--loss", "mse", "--learning-rate", "3e38", "--quiet"};
}

// The steps that led there are what one wants to see; the one that failed wrote nothing.
TEST(OnNan, StopWritesTheTrace) {
  Scratch scratch;
  const std::string path = scratch / "trace.json";
  const Finished run = espalier(synthetic("train") + kSteep + Words{"--mesh", "data=3", "--trace", path});
  EXPECT_EQ(run.code, 10);
  expect_has(run.err, "note: the trace is written to '" + path + "'\nerror: loss is nan in step 2: ");
  int64_t last = 0;
  const Json trace = Json::parse(content_of(path));
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["args"]["run"] == "train") last = std::max<int64_t>(last, event["args"]["step"]);
  EXPECT_EQ(last, 1);
}

// Two runs that are NaN are equal in nothing.
TEST(OnNan, VerifyRefusesToCompareRunsWithoutNumbers) {
  const Finished steep = espalier(synthetic("verify") + Words{"--mesh", "data=3", "--learning-rate", "1e38"});
  EXPECT_EQ(steep.code, 10);
  EXPECT_EQ(steep.out, "");
  expect_has(steep.err,
             "error: loss is nan in step 2, on the mesh and on one device alike; compare fewer steps or lower the learning rate\n");
  Scratch scratch;
  const Finished update = espalier(Words{"verify", "--mesh", "data=2", "--steps", "1"} + overflowing(scratch));
  EXPECT_EQ(update.code, 10);
  EXPECT_EQ(update.err.rfind("error: variable '", 0), 0u) << update.err;
  expect_has(update.err, " in step 1, on the mesh and on one device alike; ");
}

TEST(OnNan, WarnIsToldOnceAndGoesOn) {
  const Finished run = espalier(synthetic("train") + kSteep + Words{"--on-nan", "warn", "--json"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err.rfind("note: loss is nan in step 2; training goes on, see --on-nan\n", 0), 0u) << run.err;
  EXPECT_EQ(run.err.find("note: ", 1), std::string::npos) << run.err;
  const Json report = Json::parse(run.out);
  EXPECT_EQ(report["steps"], 6);
  EXPECT_TRUE(report["step_losses"][0].is_number());
  EXPECT_TRUE(report["step_losses"][1].is_null());
  EXPECT_EQ(espalier(synthetic("train") + kSteep + Words{"--on-nan", "warn", "--quiet"}).err, "");
}

// The weights of before are not replaced.
TEST(OnNan, WeightsThatAreNotFiniteAreNotSaved) {
  Scratch scratch;
  const std::string path = scratch.write("w.safetensors", "old");
  const Finished run = espalier(Words{"train", "--save", path} + overflowing(scratch));
  EXPECT_EQ(run.code, 10);
  EXPECT_EQ(run.err.rfind("error: variable '", 0), 0u) << run.err;
  expect_has(run.err, " after step 1, and nothing is saved; lower the learning rate or clip the gradients\n");
  EXPECT_EQ(content_of(path), "old");
  EXPECT_EQ(scratch.file_count(), 2u);
}

// --- storage ---------------------------------------------------------------------------------------------------------------------------

// A limit on the size of files stops a write in its middle, as a full disk does.
TEST(Storage, AFullDiskLeavesTheOldFile) {
  Scratch scratch;
  const std::string weights = scratch.write("w.safetensors", "old weights"), outputs = scratch.write("o.npy", "old outputs");
  ProcessOptions full;
  full.file_limit = 2048;
  for (const Words& words : {synthetic("train") + Words{"--save", weights}, synthetic("predict") + Words{"--out", outputs}}) {
    const Finished run = espalier(words + Words{"--quiet"}, full);
    EXPECT_EQ(run.code, 4);
    EXPECT_EQ(run.err, "error: cannot write (File too large): '" + words.back() + "'; check the disk and the path\n");
    EXPECT_EQ(run.out, "");
  }
  EXPECT_EQ(content_of(weights), "old weights");
  EXPECT_EQ(content_of(outputs), "old outputs");
  EXPECT_EQ(scratch.file_count(), 2u);
}

TEST(Storage, ADirectoryThatNobodyMayWriteIsToldBeforeTraining) {
  Scratch scratch;
  const std::string model = scratch.write("model.json", content_of(kModels + "two_dense.json")), path = scratch / "w.safetensors";
  std::filesystem::permissions(scratch.path(), std::filesystem::perms(0555));
  ProcessOptions nobody;
  nobody.user = ProcessOptions::User::kNobody;
  if (espalier({"--version"}, nobody).code != 0) GTEST_SKIP() << "another user cannot run the program where it stands";
  const Finished run = espalier({"train", model, "--data", "synthetic", "--save", path}, nobody);
  EXPECT_EQ(run.code, 4);
  EXPECT_EQ(run.err,
            "error: cannot create a file (Permission denied): '" + path + "'; check the permissions of the file and its directory\n");
  EXPECT_EQ(scratch.file_count(), 1u);
}

// --- signals ---------------------------------------------------------------------------------------------------------------------------

bool has_files_without_names(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

// That the first signal ends a training in order stands in cli_test.
TEST(Signals, AProgramThatIsKilledLeavesNothing) {
  Scratch scratch;
  if (!has_files_without_names(scratch.path())) GTEST_SKIP() << "this file system names every file at once";
  ProcessOptions killed;
  killed.signal = SIGKILL;
  killed.signal_at = "epoch 2/";
  const Words train = synthetic("train") + Words{"--epochs", "1000000", "--save", scratch / "w", "--trace", scratch / "t"};
  EXPECT_EQ(espalier(train, killed).code, 128 + SIGKILL);
  ProcessOptions interrupted;
  interrupted.signal = SIGINT;
  interrupted.signal_at = "predict";
  interrupted.stderr_to = ProcessOptions::Stderr::kTerminal;  // which shows that it has begun
  const Words predict = {"predict", kModels + "two_dense.json", "--data", "synthetic", "--samples", "100000000",
                         "--out",   scratch / "o.npy"};
  EXPECT_EQ(espalier(predict, interrupted).code, 128 + SIGINT);
  EXPECT_EQ(scratch.file_count(), 0u);
}

// --- memory ----------------------------------------------------------------------------------------------------------------------------

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// Whatever the limit, a run ends as it should or says that there is no memory. 72 MB: below, the libraries themselves do not start.
TEST(Memory, AMachineWithoutMemoryIsToldSo) {
  if (kSanitizesAddresses) GTEST_SKIP() << "the sanitizer needs terabytes of addresses";
  int refused = 0, trained = 0;
  for (const std::string mesh : {"data=1", "data=2"})
    for (int64_t megabytes : {72, 84, 100, 140, 180, 200, 216, 224, 232, 240, 264, 320, 360, 400, 1000}) {
      SCOPED_TRACE(mesh + " in " + std::to_string(megabytes) + " MB");
      Scratch scratch;
      ProcessOptions limited;
      limited.memory_limit = megabytes << 20;
      const Finished run = espalier({"train", kModels + "bench_dense.json", "--data", "synthetic", "--samples", "256", "--batch-size",
                                     "256", "--mesh", mesh, "--threads", "2", "--save", scratch / "w", "--quiet"},
                                    limited);
      trained += run.code == 0, refused += run.code == 9;
      EXPECT_TRUE(run.code == 0 || run.code == 9) << run.code << " " << run.err;
      EXPECT_EQ(scratch.file_count(), run.code == 0 ? 1u : 0u);
      if (run.code == 0) continue;
      EXPECT_EQ(run.out, "");
      EXPECT_EQ(run.err, last_line(run.err) + "\n");
      EXPECT_EQ(run.err.rfind("error: ", 0), 0u) << run.err;
    }
  EXPECT_GE(refused, 4);
  EXPECT_GE(trained, 2);
}

}  // namespace
}  // namespace espalier
