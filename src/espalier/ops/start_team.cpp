#include "espalier/ops/start_team.h"

#include <omp.h>

#include <algorithm>
#include <mutex>
#include <semaphore>
#include <system_error>
#include <thread>
#include <vector>

#include "espalier/base/cores.h"

namespace espalier::ops {
namespace {

// All at once, as OpenMP will need them. False when the system refuses one.
bool can_start(int threads) {
  std::counting_semaphore<> end(0);
  std::vector<std::thread> started;
  bool all = true;
  try {
    for (int i = 0; i < threads; ++i) started.emplace_back([&end] { end.acquire(); });
  } catch (const std::system_error&) {
    all = false;
  } catch (const std::bad_alloc&) {
    all = false;
  }
  end.release(static_cast<std::ptrdiff_t>(started.size()));
  for (std::thread& thread : started) thread.join();
  return all;
}

}  // namespace

void start_team(int threads) {
  threads = std::min(threads, omp_get_thread_limit());
  if (threads <= 1) return;
  static std::mutex turn;  // one caller's trial must not take the room that another's has found
  std::lock_guard lock(turn);
  if (!can_start(threads - 1)) refuse_threads(threads);
#pragma omp parallel num_threads(threads)
  {}
}

}  // namespace espalier::ops
