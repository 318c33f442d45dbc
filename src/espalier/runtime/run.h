#pragma once
// One run of a program by a team of workers: each drives its block of devices, one until it blocks, then the next.
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "espalier/runtime/arena.h"
#include "espalier/runtime/executable.h"
#include "espalier/runtime/team.h"
#include "espalier/runtime/trace.h"

namespace espalier {

class Run final : public Task {
 public:
  Run(std::shared_ptr<const Executable> executable, std::shared_ptr<Arenas> arenas, int workers, double deadline_seconds, Trace* trace);

  const Executable& executable() const { return *executable_; }
  void reset();
  void work(int worker) noexcept override;
  // Worker 0, its own devices finished: waits for the others. False when one does not come back.
  bool join(const Team& team) noexcept;
  std::exception_ptr first_cause() const { return cause_; }

 private:
  // Where a device stands. Touched by its worker only, each on its own cache line.
  struct alignas(64) Place {
    int32_t step = 0, drained = 0;
    bool started = false;
    int64_t begin_ns = 0, received = 0;  // of the collective it is in
  };
  // What others may look at to tell slow from stuck.
  struct alignas(64) Worker {
    std::atomic<uint64_t> steps{0};
    std::atomic<int64_t> device{-1};  // the one it is running, and where that is
    std::atomic<int32_t> step{0};
    std::vector<void*> buffers;  // of one kernel call
  };
  // Tells when nobody has finished a step for longer than the deadline.
  struct Watch;

  enum class Outcome : uint8_t { kFinished, kBlocked };
  Outcome advance(int64_t device, int worker);
  bool ready(int64_t device, const Program& program, const Step& step, Place& place, Trace* trace);
  void perform(int64_t device, const Program& program, const Step& step, Worker& worker);
  void record(int64_t device, const Step& step, const Place& place, int64_t begin_ns, int worker);
  void fail(int64_t device, std::exception_ptr cause) noexcept;
  std::exception_ptr named(int64_t device, std::exception_ptr cause) const;
  std::exception_ptr stuck_error() const;
  uint64_t total_steps() const;

  std::shared_ptr<const Executable> executable_;
  std::shared_ptr<Arenas> arenas_;
  double deadline_;
  Trace* trace_;
  std::vector<Place> places_;
  std::vector<Worker> workers_;
  std::atomic<bool> cancelled_{false};
  std::mutex cause_mutex_;  // taken on failure only
  std::exception_ptr cause_;
};

}  // namespace espalier
