#include "espalier/base/cores.h"

#include <fmt/format.h>
#include <omp.h>
#include <sched.h>

#include <cstddef>
#include <new>
#include <set>

#include "espalier/base/error.h"

namespace espalier {

// A fixed mask of 8,192 cores: cpu_set_t holds 1,024, and the kernel refuses a mask smaller than its own.
struct PinnedThread::Mask {
  cpu_set_t sets[8];
};

namespace {

constexpr size_t kMaskBytes = 8 * sizeof(cpu_set_t);

void add_places(std::set<int>& cores) {
  if (omp_get_proc_bind() == omp_proc_bind_false) return;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    cores.insert(ids.begin(), ids.end());
  }
}

}  // namespace

std::vector<int> available_cores() {
  cpu_set_t mask[8];
  std::set<int> cores;
  if (sched_getaffinity(0, kMaskBytes, mask) == 0)
    for (int core = 0; core < static_cast<int>(8 * kMaskBytes); ++core)
      if (CPU_ISSET_S(static_cast<size_t>(core), kMaskBytes, mask)) cores.insert(core);
  add_places(cores);
  if (cores.empty()) cores.insert(0);
  return {cores.begin(), cores.end()};
}

void refuse_threads(int threads) {
  throw Error(ErrorKind::kMemory, fmt::format("the system has no room for {} threads", threads), "",
              "use fewer with --threads, or raise the limits of memory and processes (ulimit -v, ulimit -u)");
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
