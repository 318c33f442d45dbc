#pragma once
// Runs compiled programs on all devices of a mesh inside this process. A device is a program counter: a worker thread (one a core) runs
// a device until it meets a collective whose peers have not arrived, then goes on with its next device; nothing blocks inside a
// collective. One arena a device, shared by all programs of a model, so that state stays where it is from run to run.
//
// Thread rule: one run at a time; `run` returns when every device has finished or the first failure has stopped all of them. A failure
// leaves the executor usable, but state that the program writes may be half updated: the error says so. Only a kernel that does not
// return makes it unusable, and then every later run says that.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/passes/pipeline.h"
#include "espalier/runtime/trace.h"

namespace espalier {

// kCompute runs kernels; kNull runs none, moves nothing and allocates nothing, but counts memory and messages (for tests and for `plan`).
enum class ExecutionMode { kCompute, kNull };

struct ExecutorOptions {
  int workers = 0;  // threads; 0: one a core, at most one a device. As many as there are cores: each stays on its own.
  // When no device has finished a step for so long, the run ends with Error(kDeadline) naming who was waited for.
  double deadline_seconds = 60;
  ExecutionMode mode = ExecutionMode::kCompute;
  Trace* trace = nullptr;  // where to record what ran when; outlives the executor
};

// A program bound to every device: kernels prepared, offsets resolved.
class Executable;

class Executor {
 public:
  Executor(std::shared_ptr<const DeviceMesh> mesh, ExecutorOptions options = {});
  ~Executor();

  // Prepares kernels of every device. Arenas are allocated by the first run or access to a buffer, and grown, keeping the state, when a
  // program needs larger ones: pointers from below are good until another program is loaded. All programs of an executor have the
  // same state. Errors: a program for another mesh; kMemory.
  std::shared_ptr<const Executable> load(std::shared_ptr<const Compiled> compiled);

  // Errors: the first cause, naming device and op: that of a kernel, kDevice for what is no Error; kDeadline; kMismatch.
  void run(const Executable& executable);

  // The buffer of an input or output on one device, of the local shape: fill data inputs before each run (their memory is reused), read
  // results after it. State may be read and written between runs. Null in kNull mode; not to be followed where the device has no element.
  void* input(const Executable& executable, int input, int64_t device);
  const void* output(const Executable& executable, int output, int64_t device);
  void* state(const Executable& executable, const std::string& name, int64_t device);

  int64_t allocated_bytes(int64_t device) const;     // of its arena
  int64_t communicated_bytes(int64_t device) const;  // received from peers in the last run, as counted while moving
  int workers() const;

  // Between runs: calls f(0) to f(hands() - 1), side by side on the threads that run programs. Rethrows the first exception when all have
  // ended.
  int hands() const;
  void side_by_side(const std::function<void(int)>& f);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace espalier
