#include "espalier/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "espalier/base/cores.h"
#include "espalier/ops/parallel.h"
#include "espalier/ops/start_team.h"
#include "espalier/runtime/run.h"

namespace espalier {

struct Executor::State {
  std::shared_ptr<const DeviceMesh> mesh;
  ExecutorOptions options;
  int workers = 1;
  // Of each device: what the largest program loaded needs, and how much of it is state.
  std::vector<int64_t> arena_bytes, state_bytes, communicated;
  std::shared_ptr<Arenas> arenas;
  std::unique_ptr<Team> team;
  std::shared_ptr<Run> run;  // the last one, reused while the program stays the same
  bool lost = false;         // a worker did not come back
  bool loaded = false;       // a program, since arenas were allocated
  int kernel_threads = 1;    // that each worker has started for its kernels

  bool null() const { return options.mode == ExecutionMode::kNull; }
  void on_each_worker(const std::function<void(int)>& f);
  void start_kernel_threads(int threads);
  std::byte* arena(int64_t device);
  std::byte* buffer(const Executable& executable, ValueId value, int64_t device);
};

namespace {

// The first of the exceptions that several threads may meet.
class FirstCause {
 public:
  template <class F>
  void run(const F& f) noexcept {
    try {
      f();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (cause_ == nullptr) cause_ = std::current_exception();
    }
  }
  void require() const {
    if (cause_ != nullptr) std::rethrow_exception(cause_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr cause_;
};

class OnEachWorker : public Task {
 public:
  explicit OnEachWorker(const std::function<void(int)>& f) : f_(f) {}
  void work(int worker) noexcept override {
    cause_.run([&] { f_(worker); });
  }
  void require() const { cause_.require(); }

 private:
  const std::function<void(int)>& f_;
  FirstCause cause_;
};

void count_messages(const Executable& executable, std::vector<int64_t>& received) {
  std::fill(received.begin(), received.end(), 0);
  for (const CollectiveCall& call : collective_calls(executable.graph())) {
    const Transfer transfer = plan_transfer(call.type, call.from, call.to, executable.mesh());
    for (size_t d = 0; d < received.size(); ++d) received[d] += received_bytes(transfer, executable.mesh(), static_cast<int64_t>(d));
  }
}

}  // namespace

Executor::Executor(std::shared_ptr<const DeviceMesh> mesh, ExecutorOptions options) : state_(std::make_unique<State>()) {
  if (options.workers < 0)
    usage_error(fmt::format("{} workers cannot run anything", options.workers), "executor", "give 1 or more; 0 is one a core");
  const std::vector<int> cores = available_cores();
  const auto devices = static_cast<int>(mesh->size());
  state_->workers = std::min(options.workers == 0 ? static_cast<int>(cores.size()) : options.workers, devices);
  state_->arena_bytes.assign(static_cast<size_t>(devices), 0);
  state_->state_bytes = state_->communicated = state_->arena_bytes;
  if (options.mode == ExecutionMode::kCompute) {
    // One worker alone may use all cores inside its kernels and must not sit on one.
    const bool pinned = state_->workers > 1 && state_->workers == static_cast<int>(cores.size());
    state_->arenas = std::make_shared<Arenas>(devices);
    state_->team = std::make_unique<Team>(state_->workers, pinned ? cores : std::vector<int>());
  }
  state_->mesh = std::move(mesh);
  state_->options = options;
}

Executor::~Executor() = default;

std::shared_ptr<const Executable> Executor::load(std::shared_ptr<const Compiled> compiled) {
  if (compiled->graph.mesh == nullptr || *compiled->graph.mesh != *state_->mesh)
    usage_error(fmt::format("program '{}' is compiled for another mesh", compiled->graph.name), to_string(*state_->mesh),
                "compile it for the mesh of the executor");
  auto executable = std::make_shared<const Executable>(compiled, state_->workers, state_->options.mode);
  for (size_t d = 0; d < state_->arena_bytes.size(); ++d) {
    const auto device = static_cast<int64_t>(d);
    state_->arena_bytes[d] = std::max(state_->arena_bytes[d], executable->memory(device).arena_bytes);
    state_->state_bytes[d] = std::max(state_->state_bytes[d], executable->state(device).bytes);
  }
  state_->loaded = true;
  return executable;
}

// Allocates what has been loaded since the last time.
std::byte* Executor::State::arena(int64_t device) {
  if (lost) throw Error(ErrorKind::kDevice, "an earlier run left a device that did not come back", "executor", "make a new executor");
  // For whichever device it is asked: growing moves all arenas, and what has been fed to one must not be lost by asking for another.
  if (loaded) arenas->grow(arena_bytes, state_bytes);
  loaded = false;
  return arenas->data(device);
}

std::byte* Executor::State::buffer(const Executable& executable, ValueId value, int64_t device) {
  if (null()) return nullptr;
  const Value& entry = executable.graph().value(value);
  if (local_shape(entry.sharding, entry.type.shape, *mesh, device).volume() == 0) return nullptr;
  return arena(device) + executable.memory(device).value_offset[static_cast<size_t>(value)];
}

void Executor::State::on_each_worker(const std::function<void(int)>& f) {
  auto task = std::make_shared<OnEachWorker>(f);
  team->start(task);
  team->work(*task);
  for (int64_t n = 0; team->busy(); ++n) back_off(n);
  task->require();
}

// Every worker splits its kernels over threads of its own.
void Executor::State::start_kernel_threads(int threads) {
  if (threads <= kernel_threads) return;
  on_each_worker([&](int) { ops::start_team(threads); });
  kernel_threads = threads;
}

void Executor::run(const Executable& executable) {
  State& state = *state_;
  if (state.null()) return count_messages(executable, state.communicated);
  state.start_kernel_threads(executable.compiled().threads);
  for (int64_t d = 0; d < state.mesh->size(); ++d) state.arena(d);
  if (state.run == nullptr || &state.run->executable() != &executable)
    state.run = std::make_shared<Run>(executable.shared_from_this(), state.arenas, state.workers, state.options.deadline_seconds,
                                      state.options.trace);
  Run& run = *state.run;
  run.reset();
  state.team->start(state.run);
  state.team->work(run);
  if (!run.join(*state.team)) {
    state.lost = true;
    state.team->give_up();
    std::rethrow_exception(run.first_cause());
  }
  for (size_t d = 0; d < state.communicated.size(); ++d)
    state.communicated[d] = executable.communicator().received_bytes(static_cast<int64_t>(d));
  if (run.first_cause() != nullptr) std::rethrow_exception(run.first_cause());
}

void* Executor::input(const Executable& executable, int input, int64_t device) {
  return state_->buffer(executable, executable.graph().inputs.at(static_cast<size_t>(input)).value, device);
}

const void* Executor::output(const Executable& executable, int output, int64_t device) {
  const Output& entry = executable.graph().outputs.at(static_cast<size_t>(output));
  // State is read where it lives: that is where the run has put it.
  if (entry.role == Role::kVariable || entry.role == Role::kOptimizer) return state(executable, entry.name, device);
  return state_->buffer(executable, entry.value, device);
}

void* Executor::state(const Executable& executable, const std::string& name, int64_t device) {
  const std::map<std::string, int64_t>& offsets = executable.state(device).offset;
  auto found = offsets.find(name);
  if (found == offsets.end()) usage_error(fmt::format("there is no state '{}'", name), executable.graph().name, "see: espalier inspect");
  return state_->null() ? nullptr : state_->arena(device) + found->second;
}

int64_t Executor::allocated_bytes(int64_t device) const {
  return state_->null() ? state_->arena_bytes[static_cast<size_t>(device)] : state_->arenas->bytes(device);
}

int64_t Executor::communicated_bytes(int64_t device) const { return state_->communicated[static_cast<size_t>(device)]; }

int Executor::workers() const { return state_->workers; }

int Executor::hands() const {
  if (state_->null()) return 1;
  return state_->workers > 1 ? state_->workers : state_->kernel_threads;
}

void Executor::side_by_side(const std::function<void(int)>& f) {
  if (hands() == 1) return f(0);
  if (state_->workers > 1) return state_->on_each_worker(f);
  FirstCause cause;
  ops::parallel_for(hands(), hands(), ops::kParallelElements, [&](int64_t begin, int64_t end) {
    for (int64_t hand = begin; hand < end; ++hand) cause.run([&] { f(static_cast<int>(hand)); });
  });
  cause.require();
}

}  // namespace espalier
