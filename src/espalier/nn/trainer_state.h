#pragma once
// The inside of a Trainer: what its sources share. Nothing else includes this.
#include <map>

#include "espalier/nn/shards.h"
#include "espalier/nn/trainer.h"

namespace espalier::nn {

// A traced and compiled step; bound to the devices when first run.
struct Program {
  Step step;
  std::shared_ptr<const Compiled> compiled;
  std::shared_ptr<const Executable> executable;
};

struct Trainer::State {
  State(Model m, Compilation c, Distribution d, TrainerOptions o)
      : model(std::move(m)), compilation(std::move(c)), distribution(std::move(d)), options(std::move(o)) {}

  Model model;
  Compilation compilation;
  Distribution distribution;
  TrainerOptions options;
  std::shared_ptr<const DeviceMesh> mesh;
  std::vector<VariableReport> variables;
  std::vector<std::string> warnings, notes;
  std::vector<StateVariable> state;  // variables, then optimizer slots, with their shardings
  int cores = 1;

  std::map<std::pair<int, int64_t>, Program> programs;  // by kind and batch; kind -1: initialization
  espalier::Trace trace;                                // of one run, while somebody wants to know
  std::unique_ptr<Executor> executor;
  int64_t updates = 0;
  std::atomic<bool> stop = false;
  const Program* last = nullptr;  // what ran last

  void resolve_layouts();
  Pins pins_for(const Graph& graph) const;
  Sharding sharding_of_state(const std::string& name) const;
  const VariableReport& variable(const std::string& path) const;
  std::shared_ptr<const Compiled> compile_step(const Graph& graph) const;
  Program& program(int kind, int64_t batch);
  Program& ready(int kind, int64_t batch);
  void feed(const Program& program, const Dataset* data, std::span<const int64_t> samples);
  void run(Program& program, const Dataset* data, std::span<const int64_t> samples);
  std::optional<std::string> find_bad_variable(const Executable& executable) const;
  Divergence find_divergence(const Program& program, const Dataset& data, std::span<const int64_t> samples);
  void report_run(const Program& program);
  double scalar_result(const Program& program, const std::string& name);
  BatchResult batch_result(const Program& program, int64_t samples);
  std::vector<float> gather(const Value& value, const ShardOf& shard);
  Logs evaluate(const Dataset& data, Callback* progress);
};

constexpr int kInitialization = -1;  // the kind of the program that gives all state its first value

}  // namespace espalier::nn
