#pragma once
// The command line. options.cpp is the one place that declares every command and every option; help and the list that a test pins come from
// the same tables. Every command takes the options of `train`, so that a line is changed from `train` to `plan` by one word.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "espalier/nn/non_finite.h"

namespace espalier::cli {

enum class Command { kTrain, kEvaluate, kPredict, kPlan, kInspect, kExplain, kVerify };

struct Options {
  Command command = Command::kTrain;
  std::string model;  // "-": standard input
  std::string name;   // explain: a variable, layer or op

  std::string mesh;                  // "data=2,model=4"; "": one device
  std::vector<std::string> devices;  // empty: cpu:0 to cpu:n-1
  std::string layout;                // a file; "": everything replicated
  std::optional<std::string> batch_axis;
  bool strict = false;

  std::string data;                // "": none given
  std::optional<int64_t> samples;  // all; 1024 of synthetic
  int64_t batch_size = 32, epochs = 1;
  int64_t steps = 0;  // 0: no limit
  bool shuffle = true;
  uint64_t seed = 0;

  // What is not given comes from the model file's compile_config, else from Keras' defaults.
  std::optional<std::string> optimizer, loss;
  std::optional<std::vector<std::string>> metrics;
  std::optional<double> learning_rate, momentum, weight_decay;
  std::optional<bool> nesterov;

  nn::OnNan on_nan = nn::OnNan::kStop;

  std::string weights, save, out, trace;
  int64_t device_memory = 0;  // bytes; 0: this machine's over the devices
  int threads = 0;            // 0: all cores
  std::set<std::string> skip_passes;
  double tolerance = 1e-5;  // verify
  bool json = false, quiet = false;

  std::vector<std::string> without_effect;  // options that were given and that this command does not look at
};

// What the first words ask for. help and version: the text to print, nothing else is to be done.
struct Request {
  Options options;
  std::string text;
};

// Errors (kUsage): unknown command or option (with the nearest), a value that is not of the option's kind, an option twice, missing words.
Request read_options(int argc, const char* const* argv);

// "--mesh", "--devices", ... in the order of the help.
std::vector<std::string> option_flags();

}  // namespace espalier::cli
