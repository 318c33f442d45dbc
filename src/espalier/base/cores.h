#pragma once
// The cores this process may use, and keeping a thread on one of them.
#include <memory>
#include <vector>

namespace espalier {

// Core numbers in the affinity mask of the calling thread, ascending; at least one. Those of all OpenMP's places too, where OMP_PROC_BIND
// had it bind the first thread to one of them before the program began.
std::vector<int> available_cores();

// Error(kMemory): the system has no room for so many threads.
[[noreturn]] void refuse_threads(int threads);

// Keeps the calling thread on one core while it lives, and gives it its old cores back afterwards. A system that refuses is no error:
// the thread then simply moves.
class PinnedThread {
 public:
  explicit PinnedThread(int core);
  ~PinnedThread();
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

 private:
  struct Mask;
  std::unique_ptr<Mask> before_;
};

}  // namespace espalier
