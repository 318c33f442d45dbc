#include "espalier/runtime/run.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

namespace espalier {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Run::Watch {
  uint64_t steps = 0;
  int64_t since_ns = now_ns();

  double idle_seconds(uint64_t total) {
    const int64_t now = now_ns();
    if (total != steps) steps = total, since_ns = now;
    return static_cast<double>(now - since_ns) * 1e-9;
  }
};

Run::Run(std::shared_ptr<const Executable> executable, std::shared_ptr<Arenas> arenas, int workers, double deadline_seconds, Trace* trace)
    : executable_(std::move(executable)),
      arenas_(std::move(arenas)),
      deadline_(deadline_seconds),
      trace_(trace),
      places_(static_cast<size_t>(executable_->mesh().size())),
      workers_(static_cast<size_t>(workers)) {
  int most = 0;
  for (int64_t d = 0; d < executable_->mesh().size(); ++d) most = std::max(most, executable_->program(d).max_buffers);
  for (Worker& worker : workers_) worker.buffers.resize(static_cast<size_t>(most));
}

void Run::reset() {
  executable_->communicator().reset();
  std::fill(places_.begin(), places_.end(), Place());
  for (Worker& worker : workers_) worker.device.store(-1, std::memory_order_relaxed);
  cancelled_.store(false, std::memory_order_relaxed);
  cause_ = nullptr;
  if (trace_ != nullptr) trace_->begin(static_cast<int>(workers_.size()));
}

void Run::work(int worker) noexcept {
  Worker& self = workers_[static_cast<size_t>(worker)];
  const Range mine = part(static_cast<int64_t>(places_.size()), static_cast<int64_t>(workers_.size()), worker);
  int64_t open = mine.size, empty_looks = 0;
  Watch watch;
  while (open > 0) {
    const uint64_t before = self.steps.load(std::memory_order_relaxed);
    int64_t blocked = -1;
    open = 0;
    for (int64_t device = mine.offset; device < mine.offset + mine.size; ++device) {
      if (cancelled_.load(std::memory_order_relaxed)) return;
      self.device.store(device, std::memory_order_relaxed);
      try {
        if (advance(device, worker) == Outcome::kFinished) continue;
        ++open, blocked = device;
      } catch (...) {
        return fail(device, std::current_exception());
      }
    }
    self.device.store(-1, std::memory_order_relaxed);
    if (open == 0) return;
    empty_looks = self.steps.load(std::memory_order_relaxed) == before ? empty_looks + 1 : 0;
    if (empty_looks == 0) continue;
    back_off(empty_looks);
    if (empty_looks % 64 != 0) continue;
    if (const double idle = watch.idle_seconds(total_steps()); idle > deadline_) try {
        deadline_error(executable_->communicator(), executable_->mesh(), blocked, deadline_);
      } catch (...) {
        return fail(blocked, std::current_exception());
      }
  }
}

bool Run::join(const Team& team) noexcept {
  Watch watch;
  bool given_notice = false;
  for (int64_t n = 0; team.busy(); ++n) {
    back_off(n);
    if (n % 64 != 63 || watch.idle_seconds(total_steps()) <= deadline_) continue;
    if (cancelled_.load(std::memory_order_relaxed) && given_notice) return false;
    fail(-1, stuck_error());
    given_notice = true;
    watch = Watch();
  }
  return true;
}

// Names the step of a worker that has one. Only atomics: that worker is still running.
std::exception_ptr Run::stuck_error() const {
  std::string what = "a worker", where = executable_->graph().name;
  for (const Worker& worker : workers_) {
    const int64_t device = worker.device.load(std::memory_order_relaxed);
    if (device < 0) continue;
    what = fmt::format("device '{}'", executable_->mesh().devices()[static_cast<size_t>(device)]);
    const std::vector<Step>& steps = executable_->program(device).steps;
    const auto step = static_cast<size_t>(worker.step.load(std::memory_order_relaxed));
    if (step < steps.size()) where = executable_->describe(steps[step]);
  }
  return std::make_exception_ptr(Error(ErrorKind::kDeadline, fmt::format("{} did not come back within {:g} s", what, deadline_), where,
                                       "look at that device first, or allow a longer deadline"));
}

uint64_t Run::total_steps() const {
  uint64_t total = 0;
  for (const Worker& worker : workers_) total += worker.steps.load(std::memory_order_relaxed);
  return total;
}

// Runs a device until it blocks.
Run::Outcome Run::advance(int64_t device, int worker) {
  Worker& self = workers_[static_cast<size_t>(worker)];
  const Program& program = executable_->program(device);
  Place& place = places_[static_cast<size_t>(device)];
  while (place.step < static_cast<int32_t>(program.steps.size())) {
    const Step& step = program.steps[static_cast<size_t>(place.step)];
    self.step.store(place.step, std::memory_order_relaxed);
    if (!ready(device, program, step, place, trace_)) return Outcome::kBlocked;
    if (step.kind == StepKind::kCollective) {
      if (executable_->communicator().poll(device) == Progress::kBlocked) return Outcome::kBlocked;
      if (trace_ != nullptr) record(device, step, place, place.begin_ns, worker);
    } else if (trace_ != nullptr) {
      const int64_t begin = now_ns();
      perform(device, program, step, self);
      record(device, step, place, begin, worker);
    } else {
      perform(device, program, step, self);
    }
    ++place.step;
    place.drained = 0;
    place.started = false;
    self.steps.store(self.steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (cancelled_.load(std::memory_order_relaxed)) return Outcome::kBlocked;
  }
  return Outcome::kFinished;
}

// Announces a collective, then waits until no peer reads what the step overwrites: peers that wait for the announcement are not kept
// waiting.
bool Run::ready(int64_t device, const Program& program, const Step& step, Place& place, Trace* trace) {
  Communicator& communicator = executable_->communicator();
  if (step.kind == StepKind::kCollective && !place.started) {
    if (trace != nullptr) place.begin_ns = now_ns(), place.received = communicator.received_bytes(device);
    std::byte* arena = arenas_->data(device);
    const int64_t* offset = program.offsets.data() + step.buffers;
    communicator.start(device, step.collective, arena + offset[0], arena + offset[1]);
    place.started = true;
  }
  for (; place.drained < step.drains; ++place.drained)
    if (communicator.drained(device, program.drains[static_cast<size_t>(step.first_drain + place.drained)]) == Progress::kBlocked)
      return false;
  return true;
}

void Run::perform(int64_t device, const Program& program, const Step& step, Worker& worker) {
  std::byte* arena = arenas_->data(device);
  const int64_t* offset = program.offsets.data() + step.buffers;
  if (step.kind == StepKind::kCopy) {
    std::memcpy(arena + offset[1], arena + offset[0], static_cast<size_t>(step.bytes));
    return;
  }
  void** buffers = worker.buffers.data();
  for (int32_t i = 0; i < step.operands + step.results; ++i) buffers[i] = arena + offset[i];
  executable_->kernel(device, step).run({buffers, buffers + step.operands, arena + step.scratch});
}

void Run::record(int64_t device, const Step& step, const Place& place, int64_t begin_ns, int worker) {
  const bool collective = step.kind == StepKind::kCollective;
  trace_->record({.device = static_cast<int32_t>(device),
                  .op = step.op,
                  .worker = worker,
                  .begin_ns = begin_ns,
                  .end_ns = now_ns(),
                  .bytes = collective ? executable_->communicator().received_bytes(device) - place.received : 0});
}

void Run::fail(int64_t device, std::exception_ptr cause) noexcept {
  {
    std::lock_guard lock(cause_mutex_);
    if (cause_ == nullptr) try {
        cause_ = named(device, cause);
      } catch (...) {  // no memory left for the words
        cause_ = cause;
      }
  }
  cancelled_.store(true, std::memory_order_relaxed);
}

// What a kernel threw, with device and op; what the waits throw names them already.
std::exception_ptr Run::named(int64_t device, std::exception_ptr cause) const {
  if (device < 0) return cause;
  const Program& program = executable_->program(device);
  const auto at = static_cast<size_t>(places_[static_cast<size_t>(device)].step);
  const bool in_kernel = at < program.steps.size() && program.steps[at].kind != StepKind::kCollective;
  const std::string where =
      fmt::format("device '{}', {}", executable_->mesh().devices()[static_cast<size_t>(device)],
                  at < program.steps.size() ? executable_->describe(program.steps[at]) : std::string("end of the program"));
  const std::string todo = program.writes_state ? "its state may be half updated: initialise or load it again before going on" : "";
  try {
    std::rethrow_exception(cause);
  } catch (const Error& error) {
    const bool waited = !in_kernel || error.kind() == ErrorKind::kDeadline;
    return waited ? cause : std::make_exception_ptr(Error(error.kind(), error.what(), where, todo));
  } catch (const std::exception& error) {
    return std::make_exception_ptr(Error(ErrorKind::kDevice, error.what(), where, todo));
  } catch (...) {
    return std::make_exception_ptr(Error(ErrorKind::kDevice, "a kernel failed", where, todo));
  }
}

}  // namespace espalier
