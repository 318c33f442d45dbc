#pragma once
// Runs compiled programs on all devices of a mesh inside this process. A device is a program counter: a worker thread (one a core) runs
// a device until it meets a collective whose peers have not arrived, then goes on with its next device; nothing blocks inside a
// collective. One arena a device, shared by all programs of a model, so that state stays where it is from run to run.
//
// Thread rule: one run at a time; `run` returns when every device has finished or the first failure has stopped all of them.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/passes/pipeline.h"

namespace espalier {

// kCompute runs kernels; kNull runs none and moves nothing, but counts memory and messages (for tests and for `plan`).
enum class ExecutionMode { kCompute, kNull };

struct ExecutorOptions {
  int workers = 0;  // threads; 0: one a core, at most one a device
  double deadline_seconds = 60;  // a wait longer than this ends the run with Error(kDeadline) naming who was waited for
  ExecutionMode mode = ExecutionMode::kCompute;
};

// A program bound to every device: kernels prepared, offsets resolved.
class Executable;

class Executor {
 public:
  Executor(std::shared_ptr<const DeviceMesh> mesh, ExecutorOptions options = {});
  ~Executor();

  // Prepares kernels of every device. The first run allocates the arenas; loading a program that needs a larger arena grows it and
  // keeps the state.
  std::shared_ptr<const Executable> load(std::shared_ptr<const Compiled> compiled);

  void run(const Executable& executable);

  // The buffer of an input or output on one device, of the local shape: fill data inputs before a run, read results after it. State may
  // be read and written between runs.
  void* input(const Executable& executable, int input, int64_t device);
  const void* output(const Executable& executable, int output, int64_t device);
  void* state(const Executable& executable, const std::string& name, int64_t device);

  int64_t allocated_bytes(int64_t device) const;      // of its arena
  int64_t communicated_bytes(int64_t device) const;   // received from peers in the last run, as counted while moving
  int workers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace espalier
