#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "bench/clock.h"
#include "bench/kernels.h"
#include "espalier/base/cores.h"
#include "espalier/base/pages.h"
#include "espalier/comm/local_communicator.h"

namespace espalier::bench {
namespace {

using Mesh = std::shared_ptr<const DeviceMesh>;

Sharding cut(int dim) {
  Sharding sharding(2);
  if (dim >= 0) sharding.dims[static_cast<size_t>(dim)].push_back(0);
  return sharding;
}

Sharding pending() {
  Sharding sharding(2);
  sharding.pending = 1;
  return sharding;
}

struct Kind {
  const char* name;
  Sharding from, to;
};

// Devices of one collective, again and again, each driven by the thread that owns its block, as the executor does.
class Devices {
 public:
  Devices(const Mesh& mesh, const Kind& kind, const Dims& shape, int repeats)
      : mesh_(mesh), repeats_(repeats), communicator_(mesh, calls(kind, shape, repeats)) {
    for (int64_t device = 0; device < mesh->size(); ++device)
      for (const Sharding& sharding : {kind.from, kind.to}) {
        const int64_t bytes = local_shape(sharding, shape, *mesh, device).volume() * 4;
        buffers_.emplace_back(bytes);
        std::fill_n(reinterpret_cast<float*>(buffers_.back().data()), bytes / 4, 1.0f);
      }
  }

  // Seconds of one collective, all devices together.
  double run(int threads) {
    communicator_.reset();
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> team;
    const std::vector<int> cores = available_cores();
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        PinnedThread pinned(cores[static_cast<size_t>(t) % cores.size()]);
        ++ready;
        while (!go) {
        }
        drive(part(mesh_->size(), threads, t));
      });
    while (ready < threads) std::this_thread::yield();
    const double start = now_seconds();
    go = true;
    for (std::thread& thread : team) thread.join();
    return (now_seconds() - start) / repeats_;
  }

  double received() const {  // bytes of one collective, by all devices
    double bytes = 0;
    for (int64_t device = 0; device < mesh_->size(); ++device) bytes += static_cast<double>(communicator_.received_bytes(device));
    return bytes / repeats_;
  }

 private:
  static std::vector<CollectiveCall> calls(const Kind& kind, const Dims& shape, int repeats) {
    return std::vector<CollectiveCall>(static_cast<size_t>(repeats), {kind.name, {DType::kF32, shape}, kind.from, kind.to});
  }

  // A device starts its next collective when nobody reads the buffers of the last one any more.
  void drive(Range mine) {
    struct Place {
      int next = 0;
      bool inside = false;
    };
    std::vector<Place> places(static_cast<size_t>(mine.size));
    for (int64_t open = mine.size; open > 0;) {
      open = 0;
      for (int64_t i = 0; i < mine.size; ++i) {
        const int64_t device = mine.offset + i;
        Place& place = places[static_cast<size_t>(i)];
        if (place.inside) {
          if (communicator_.poll(device) == Progress::kDone) place.inside = false, ++place.next;
        } else if (place.next < repeats_ && (place.next == 0 || communicator_.drained(device, place.next - 1) == Progress::kDone)) {
          const auto at = static_cast<size_t>(2 * device);
          communicator_.start(device, place.next, buffers_[at].data(), buffers_[at + 1].data());
          place.inside = true;
        }
        open += place.inside || place.next < repeats_;
      }
    }
  }

  Mesh mesh_;
  int repeats_;
  LocalCommunicator communicator_;
  std::vector<Pages> buffers_;  // of each device an operand and a result
};

}  // namespace

std::vector<Speed> measure_collectives(int cores) {
  const std::vector<Kind> kinds = {{"all_reduce", pending(), cut(-1)},
                                   {"reduce_scatter", pending(), cut(0)},
                                   {"all_gather", cut(0), cut(-1)},
                                   {"all_to_all", cut(0), cut(1)}};
  const std::vector<std::pair<Dims, int>> sizes = {{{4096, 4096}, 4}, {{128, 512}, 400}};  // shape, how often in a row
  std::vector<Speed> speeds;
  for (int64_t size : {2, 8})
    for (const auto& [shape, repeats] : sizes)
      for (const Kind& kind : kinds) {
        Devices devices(std::make_shared<DeviceMesh>(size, "data"), kind, shape, repeats);
        devices.run(cores);  // pages touched
        std::vector<double> seconds;
        for (int i = 0; i < 5; ++i) seconds.push_back(devices.run(cores));
        speeds.push_back(
            {fmt::format("{} over {}, {}", kind.name, size, to_string(shape)), cores, 1e-9 * devices.received() / median(seconds)});
      }
  return speeds;
}

}  // namespace espalier::bench
