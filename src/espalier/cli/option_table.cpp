#include "espalier/cli/option_table.h"

#include "espalier/base/error.h"
#include "espalier/base/text.h"
#include "espalier/cli/values.h"

namespace espalier::cli {
namespace {

using Specs = std::vector<OptionSpec>;

void add(Specs& specs, const Specs& more) { specs.insert(specs.end(), more.begin(), more.end()); }

Specs mesh_options() {
  const std::string group = "The mesh, and how the model is cut";
  return {
      {"--mesh", "NAME=SIZE,...", group, "axes of the mesh in order, as in data=2,model=4; one device without it",
       [](Options& o, const std::string& word) { o.mesh = word; }},
      {"--devices", "NAME,...", group, "the mesh's devices, row-major: any number of virtual ones; cpu:0 to cpu:n-1 without it",
       [](Options& o, const std::string& word) { o.devices = read_list("--devices", word); }},
      {"--layout", "FILE", group,
       "which variable is cut how: a JSON object from a variable's path, or a regular expression for whole paths, to a list with one entry "
       "a "
       "dim: null, \"axis\" or [\"axis\", \"axis\"]; everything is replicated without it",
       [](Options& o, const std::string& word) { o.layout = word; }},
      {"--batch-axis", "NAME", group, "the axis that cuts the batch, or none; without it the axis called data or batch, else the first",
       [](Options& o, const std::string& word) { o.batch_axis = word; }},
      {"--strict", "", group, "a variable that no rule matches is an error", [](Options& o, const std::string&) { o.strict = true; }},
  };
}

Specs data_options() {
  const std::string group = "Samples";
  return {
      {"--data", "NAME", group,
       "fashion-mnist, a directory of IDX files, an .npz file with x and y (or arrays named as the model's inputs and outputs), or "
       "synthetic",
       [](Options& o, const std::string& word) { o.data = word; }},
      {"--samples", "N", group, "use the first N; all without it, 1024 of synthetic",
       [](Options& o, const std::string& word) { o.samples = read_integer("--samples", word, 1); }},
      {"--batch-size", "N", group, "samples of one step over all devices (32); the last batch of an epoch may be smaller",
       [](Options& o, const std::string& word) { o.batch_size = read_integer("--batch-size", word, 1); }},
      {"--epochs", "N", group, "times that training sees every sample (1)",
       [](Options& o, const std::string& word) { o.epochs = read_integer("--epochs", word, 1); }},
      {"--steps", "N", group, "stop after N updates in all; verify compares 3 without it",
       [](Options& o, const std::string& word) { o.steps = read_integer("--steps", word, 1); }},
      {"--shuffle", "BOOL", group, "a new order of samples each epoch (true)",
       [](Options& o, const std::string& word) { o.shuffle = read_bool("--shuffle", word); }},
      {"--seed", "N", group, "decides initial weights, order and dropout, on every mesh alike (0)",
       [](Options& o, const std::string& word) { o.seed = static_cast<uint64_t>(read_integer("--seed", word, 0)); }},
  };
}

Specs training_options() {
  const std::string group = "Training (what is not given stands in the model file, else is Keras' default)";
  return {
      {"--optimizer", "NAME", group, "sgd, adam or adamw", [](Options& o, const std::string& word) { o.optimizer = word; }},
      {"--learning-rate", "X", group, "step size",
       [](Options& o, const std::string& word) { o.learning_rate = read_number("--learning-rate", word, 0); }},
      {"--momentum", "X", group, "of sgd", [](Options& o, const std::string& word) { o.momentum = read_number("--momentum", word, 0); }},
      {"--nesterov", "BOOL", group, "of sgd with momentum",
       [](Options& o, const std::string& word) { o.nesterov = read_bool("--nesterov", word); }},
      {"--weight-decay", "X", group, "decoupled decay, each step",
       [](Options& o, const std::string& word) { o.weight_decay = read_number("--weight-decay", word, 0); }},
      {"--loss", "NAME", group, "as sparse_categorical_crossentropy or mse; for several outputs one for all, or output=name,output=name",
       [](Options& o, const std::string& word) { o.loss = word; }},
      {"--metrics", "NAME,...", group, "as accuracy or mae; none for none",
       [](Options& o, const std::string& word) { o.metrics = word == "none" ? std::vector<std::string>{} : read_list("--metrics", word); }},
      {"--on-nan",
       "WORD",
       group,
       "when the loss becomes nan or infinite: stop names the first tensor that did and keeps the weights of the step before, warn goes on "
       "(stop)",
       [](Options& o, const std::string& word) {
         o.on_nan = read_word("--on-nan", word, {"stop", "warn"}) == 0 ? nn::OnNan::kStop : nn::OnNan::kWarn;
       },
       {Command::kTrain, Command::kPlan}},
  };
}

Specs file_options() {
  const std::string group = "Weights and results";
  return {
      {"--weights",
       "FILE",
       group,
       "start from these weights: safetensors, one whole tensor for each variable path",
       [](Options& o, const std::string& word) { o.weights = word; },
       {Command::kTrain, Command::kEvaluate, Command::kPredict, Command::kVerify}},
      {"--save",
       "FILE",
       group,
       "write the trained weights, as safetensors, also when Ctrl-C ends the training",
       [](Options& o, const std::string& word) { o.save = word; },
       {Command::kTrain}},
      {"--trace",
       "FILE",
       group,
       "write what ran when on every device, as a Chrome trace that ui.perfetto.dev opens; takes about 300 bytes an op",
       [](Options& o, const std::string& word) { o.trace = word; },
       {Command::kTrain}},
      {"--out",
       "FILE.npy",
       group,
       "where predict writes; with several outputs one file each, FILE.OUTPUT.npy",
       [](Options& o, const std::string& word) { o.out = word; },
       {Command::kPredict}},
      {"--tolerance",
       "X",
       group,
       "what verify lets pass: difference relative to the tensor (1e-5)",
       [](Options& o, const std::string& word) { o.tolerance = read_number("--tolerance", word, 0); },
       {Command::kVerify}},
      {"--json", "", group, "print one JSON object instead of text", [](Options& o, const std::string&) { o.json = true; }},
      {"--quiet", "", group, "no progress and no notes", [](Options& o, const std::string&) { o.quiet = true; }},
  };
}

Specs machine_options() {
  const std::string group = "The machine";
  return {
      {"--device-memory", "SIZE", group,
       "of each device, as 4GiB or 500MB; what does not fit is refused before anything is allocated; without it this machine's memory over "
       "the devices",
       [](Options& o, const std::string& word) { o.device_memory = parse_bytes(word, "--device-memory"); }},
      {"--threads", "N", group, "cores used by all devices together; all of them without it",
       [](Options& o, const std::string& word) {
         o.threads = static_cast<int>(std::min<int64_t>(read_integer("--threads", word, 1), 4096));
       }},
      {"--skip-pass",
       "NAME",
       group,
       "leave out an optimisation of the compiler, to find the one at fault; may be repeated",
       [](Options& o, const std::string& word) {
         for (const std::string& name : read_list("--skip-pass", word)) o.skip_passes.insert(name);
       },
       {},
       true},
  };
}

}  // namespace

const Specs& option_table() {
  static const Specs table = [] {
    Specs specs;
    for (const Specs& group : {mesh_options(), data_options(), training_options(), file_options(), machine_options()}) add(specs, group);
    return specs;
  }();
  return table;
}

const std::vector<CommandSpec>& command_table() {
  static const std::vector<CommandSpec> table = {
      {Command::kTrain,
       "train",
       "MODEL",
       "trains a model over the mesh",
       "Trains MODEL on the samples of --data. Progress goes to standard error, a summary to standard output. After each epoch the test "
       "samples of the data set, where it has some, give the val_ figures. Ctrl-C ends after the step in progress; --save is then still "
       "written.",
       {{"espalier train model.json --data fashion-mnist --epochs 5", "on one device"},
        {"espalier train model.json --mesh data=2,model=4 --layout layout.json --data fashion-mnist --save weights.safetensors",
         "split over eight devices; the weights are saved whole"},
        {"espalier train model.json --data mine.npz --loss mse --optimizer adam --learning-rate 0.01",
         "a model file without a compile section"}}},
      {Command::kEvaluate,
       "evaluate",
       "MODEL",
       "loss and metrics on samples",
       "Computes loss and metrics of MODEL, with the weights of --weights, on the test samples of --data, or on all of them where there is "
       "no such split.",
       {{"espalier evaluate model.json --weights weights.safetensors --data fashion-mnist", "loss and metrics of saved weights"},
        {"espalier evaluate model.json --weights weights.safetensors --data mine.npz --mesh data=3", "the same figures on any mesh"}}},
      {Command::kPredict,
       "predict",
       "MODEL",
       "writes the model's outputs for samples",
       "Writes the outputs of MODEL for the samples of --data to --out, in the order of the samples, as numpy reads them. Takes the test "
       "samples where the data set has some.",
       {{"espalier predict model.json --weights weights.safetensors --data mine.npz --out outputs.npy", "one row for each sample"}}},
      {Command::kPlan,
       "plan",
       "MODEL",
       "all that train would do, without doing it",
       "Compiles what train would run and prints it: what each device holds, its peak memory, every collective with its bytes and the "
       "reason "
       "for it. The figures are those of the run. Exits 9 when the model does not fit, and names a layout that does.",
       {{"espalier plan model.json --mesh model=4 --layout layout.json --batch-size 64 --device-memory 4GiB",
         "does it fit, and what is sent"},
        {"espalier plan model.json --mesh data=1024 --batch-size 65536", "as many devices as you like"}}},
      {Command::kInspect,
       "inspect",
       "MODEL",
       "how every variable and the batch are cut, drawn",
       "Prints and draws the sharding of each variable of MODEL, and of the batch.",
       {{"espalier inspect model.json --mesh model=4 --layout layout.json", "boxes with device names"},
        {"espalier inspect model.json", "the paths that layout rules match"}}},
      {Command::kExplain,
       "explain",
       "MODEL NAME",
       "why something has its layout, what else it costs",
       "NAME is a variable, a layer or an op. Says which rule or which price decided its layout, which collectives follow from it, and "
       "what "
       "the alternatives would cost in bytes received and in memory.",
       {{"espalier explain model.json sequential/dense/kernel --mesh data=2,model=4 --layout layout.json", "a variable"},
        {"espalier explain model.json sequential/dense --mesh data=2,model=4 --layout layout.json", "a layer"}}},
      {Command::kVerify,
       "verify",
       "MODEL",
       "proves that the split run equals the unsplit one",
       "Trains MODEL on the mesh and on one device from the same seed and compares the loss, every gradient and every weight after each "
       "step. Names the first that differs by more than --tolerance and exits 1. Takes synthetic samples without --data.",
       {{"espalier verify model.json --mesh data=2,model=4 --layout layout.json", "three steps on synthetic samples"},
        {"espalier verify model.json --mesh data=3 --data fashion-mnist --steps 50 --batch-size 128", "more steps, real samples"}}},
  };
  return table;
}

const CommandSpec& spec_of(Command command) {
  for (const CommandSpec& spec : command_table())
    if (spec.command == command) return spec;
  ESPALIER_ASSERT(!"every command stands in the table");
  return command_table().front();
}

}  // namespace espalier::cli
