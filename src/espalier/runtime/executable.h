#pragma once
// A program bound to the devices of this process: what Executor::load makes. Immutable but for the communicator's state of the run in
// progress.
#include <deque>
#include <memory>
#include <vector>

#include "espalier/comm/local_communicator.h"
#include "espalier/runtime/executor.h"
#include "espalier/runtime/program.h"

namespace espalier {

class Executable : public std::enable_shared_from_this<Executable> {
 public:
  // Prepares kernels for `workers` threads, each of which drives one contiguous block of devices: devices of one worker share a kernel
  // where all local shapes and offsets agree, so a kernel is never called by two threads at once. No kernels and no communicator in kNull
  // mode.
  Executable(std::shared_ptr<const Compiled> compiled, int workers, ExecutionMode mode);

  const Graph& graph() const { return compiled_->graph; }
  const DeviceMesh& mesh() const { return *compiled_->graph.mesh; }
  const Compiled& compiled() const { return *compiled_; }
  const MemoryPlan& memory(int64_t device) const { return compiled_->memory[device_class(device)]; }
  const StateRegion& state(int64_t device) const { return compiled_->state[device_class(device)]; }
  const Program& program(int64_t device) const { return programs_[program_of_[static_cast<size_t>(device)]]; }
  const Kernel& kernel(int64_t device, const Step& step) const {
    return *kernels_[static_cast<size_t>(device)][static_cast<size_t>(step.op)];
  }
  Communicator& communicator() const { return *communicator_; }

  // "'matmul' of 'sequential/dense'", for errors.
  std::string describe(const Step& step) const;

 private:
  size_t device_class(int64_t device) const { return static_cast<size_t>(compiled_->device_class[static_cast<size_t>(device)]); }
  void prepare_kernels(int workers);
  void prepare_programs();

  std::shared_ptr<const Compiled> compiled_;
  std::vector<Program> programs_;                    // devices share one where their classes and all offsets agree
  std::vector<size_t> program_of_;                   // by device
  std::deque<Kernel> pool_;                          // owns; addresses stay
  std::vector<std::vector<const Kernel*>> kernels_;  // device, op; null where an op needs none
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace espalier
