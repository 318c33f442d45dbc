#include "espalier/comm/communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace espalier {

void deadline_error(const Communicator& communicator, const DeviceMesh& mesh, int64_t device, double seconds) {
  auto name = [&](int64_t d) { return fmt::format("'{}'", mesh.devices()[static_cast<size_t>(d)]); };
  const int64_t peer = communicator.waits_for(device);
  std::string what = fmt::format("device {} waited {:g} s for {}", name(device), seconds, peer < 0 ? "its peers" : "device " + name(peer));
  int64_t last = peer;
  for (int64_t hops = 0; last >= 0 && hops < mesh.size() && communicator.waits_for(last) >= 0; ++hops) last = communicator.waits_for(last);
  if (last != peer) what += fmt::format(", which waits in turn for device {}", name(last));
  throw Error(ErrorKind::kDeadline, what, communicator.describe(device), "look at that device first, or allow a longer deadline");
}

void wait(Communicator& communicator, const DeviceMesh& mesh, int64_t device, double deadline_seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (communicator.poll(device) == Progress::kBlocked) {
    if (std::chrono::duration<double>(Clock::now() - begin).count() > deadline_seconds)
      deadline_error(communicator, mesh, device, deadline_seconds);
    std::this_thread::yield();
  }
}

}  // namespace espalier
