#pragma once
// A fixed team of threads, one a core, that work on one task at a time together with the thread that asks. The threads sleep between
// tasks. A thread that does not come back can be given up: it then keeps the task alive until it ends, if ever.
#include <cstdint>
#include <memory>
#include <vector>

namespace espalier {

class Task {
 public:
  virtual ~Task() = default;
  virtual void work(int worker) noexcept = 0;
};

class Team {
 public:
  // `workers` of at least 1, the asking thread included, which is worker 0. `cores`: where each worker stays while it works; empty:
  // anywhere. Errors (kMemory): the system cannot start so many threads.
  Team(int workers, std::vector<int> cores);
  ~Team();  // waits for its threads unless it was given up
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return workers_; }
  void start(std::shared_ptr<Task> task);  // wakes the others; the caller then does its own part: work(0)
  void work(Task& task) const;             // worker 0's part, on its core
  bool busy() const;                       // whether any other worker is still in the task
  void give_up();                          // busy threads are left to themselves; no start after this

 private:
  struct Shared;
  void start_threads();
  void end_threads();

  int workers_;
  std::vector<int> cores_;
  std::shared_ptr<Shared> shared_;
};

// What a waiting thread does on its n-th empty look: a pause of the core, later it offers the core to others, then it sleeps 50 us at a
// time.
void back_off(int64_t n);

}  // namespace espalier
