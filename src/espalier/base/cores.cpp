#include "espalier/base/cores.h"

#include <sched.h>

#include <cstddef>
#include <new>

namespace espalier {

// A fixed mask of 8,192 cores: cpu_set_t holds 1,024, and the kernel refuses a mask smaller than its own.
struct PinnedThread::Mask {
  cpu_set_t sets[8];
};

namespace {

constexpr size_t kMaskBytes = 8 * sizeof(cpu_set_t);

}  // namespace

std::vector<int> available_cores() {
  cpu_set_t mask[8];
  std::vector<int> cores;
  if (sched_getaffinity(0, kMaskBytes, mask) == 0)
    for (int core = 0; core < static_cast<int>(8 * kMaskBytes); ++core)
      if (CPU_ISSET_S(static_cast<size_t>(core), kMaskBytes, mask)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

PinnedThread::PinnedThread(int core) : before_(new (std::nothrow) Mask) {
  if (before_ == nullptr) return;  // no error, as when the system refuses
  if (sched_getaffinity(0, kMaskBytes, before_->sets) != 0) {
    before_.reset();
    return;
  }
  Mask only;
  CPU_ZERO_S(kMaskBytes, only.sets);
  CPU_SET_S(static_cast<size_t>(core), kMaskBytes, only.sets);
  sched_setaffinity(0, kMaskBytes, only.sets);
}

PinnedThread::~PinnedThread() {
  if (before_ != nullptr) sched_setaffinity(0, kMaskBytes, before_->sets);
}

}  // namespace espalier
