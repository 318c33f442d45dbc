#include "espalier/runtime/team.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "espalier/base/cores.h"
#include "espalier/base/error.h"

namespace espalier {

struct Team::Shared {
  std::atomic<uint32_t> epoch{0};  // one more for each task
  std::atomic<int> busy{0};
  std::atomic<bool> stop{false};
  std::shared_ptr<Task> task;  // written before an epoch, read in it
  std::vector<std::thread> threads;
};

void back_off(int64_t n) {
  // 64 looks of some 50 ns bridge a peer that is about to arrive; 2,000 yields are about a millisecond on an idle core.
  if (n < 64) return;
  if (n < 2000) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Team::Team(int workers, std::vector<int> cores) : workers_(workers), cores_(std::move(cores)), shared_(std::make_shared<Shared>()) {
  ESPALIER_ASSERT(workers >= 1 && (cores_.empty() || static_cast<int>(cores_.size()) == workers));
  try {
    start_threads();
  } catch (const std::exception&) {  // one could not be started: those that could would wait forever
    end_threads();
    refuse_threads(workers);
  }
}

void Team::start_threads() {
  for (int worker = 1; worker < workers_; ++worker)
    shared_->threads.emplace_back([shared = shared_, worker, core = cores_.empty() ? -1 : cores_[static_cast<size_t>(worker)]] {
      std::optional<PinnedThread> pinned;
      if (core >= 0) pinned.emplace(core);
      for (uint32_t seen = 0;;) {
        for (int64_t n = 0; n < 200 && shared->epoch.load(std::memory_order_acquire) == seen; ++n)
          back_off(n);  // steps follow each other fast
        shared->epoch.wait(seen, std::memory_order_acquire);
        if (shared->stop.load(std::memory_order_relaxed)) return;
        seen = shared->epoch.load(std::memory_order_acquire);
        std::shared_ptr<Task> task = shared->task;
        task->work(worker);
        task.reset();
        shared->busy.fetch_sub(1, std::memory_order_release);
      }
    });
}

Team::~Team() { end_threads(); }

void Team::end_threads() {
  shared_->stop.store(true, std::memory_order_relaxed);
  shared_->epoch.fetch_add(1, std::memory_order_release);
  shared_->epoch.notify_all();
  for (std::thread& thread : shared_->threads)
    if (thread.joinable()) thread.join();
}

void Team::start(std::shared_ptr<Task> task) {
  if (workers_ == 1) return;
  ESPALIER_ASSERT(!busy());
  shared_->task = std::move(task);
  shared_->busy.store(workers_ - 1, std::memory_order_relaxed);
  shared_->epoch.fetch_add(1, std::memory_order_release);
  shared_->epoch.notify_all();
}

void Team::work(Task& task) const {
  std::optional<PinnedThread> pinned;
  if (!cores_.empty()) pinned.emplace(cores_[0]);
  task.work(0);
}

bool Team::busy() const { return shared_->busy.load(std::memory_order_acquire) > 0; }

void Team::give_up() {
  for (std::thread& thread : shared_->threads) thread.detach();
}

}  // namespace espalier
