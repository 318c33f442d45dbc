#include "espalier/passes/place_buffers.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace espalier {
namespace {

// Steps of the inner loop that repairs may cost: 400,000 are about half a millisecond, a few rounds for 300 buffers and none for 3,000.
constexpr int64_t kRepairSteps = 400000;
constexpr int kMaxRepairs = 16;

bool overlap(const Buffer& a, const Buffer& b) { return a.birth <= b.death && b.birth <= a.death; }

// Places the buffers one by one, each in the smallest gap that holds it among those already placed and live with it.
class Placement {
 public:
  Placement(std::vector<Buffer> buffers, int64_t base) : buffers_(std::move(buffers)), base_(base), end_(base) {}

  void run(const std::vector<int>& order) {
    by_offset_.clear();
    by_offset_.reserve(order.size());
    end_ = base_;
    for (int b : order) place(b);
  }
  int64_t end() const { return end_; }
  std::vector<Buffer>& buffers() { return buffers_; }

 private:
  void place(int number) {
    Buffer& buffer = buffers_[static_cast<size_t>(number)];
    int64_t best = -1, best_gap = 0, free_from = base_;
    for (const Buffer& other : by_offset_) {
      if (!overlap(buffer, other)) continue;
      int64_t gap = other.offset - free_from;
      if (gap >= buffer.bytes && (best < 0 || gap < best_gap)) best = free_from, best_gap = gap;
      free_from = std::max(free_from, other.offset + other.bytes);
    }
    buffer.offset = best >= 0 ? best : free_from;
    end_ = std::max(end_, buffer.offset + buffer.bytes);
    auto at = std::upper_bound(by_offset_.begin(), by_offset_.end(), buffer,
                               [](const Buffer& a, const Buffer& b) { return a.offset < b.offset; });
    by_offset_.insert(at, buffer);
  }

  std::vector<Buffer> buffers_;
  std::vector<Buffer> by_offset_;  // the placed ones
  int64_t base_, end_;
};

}  // namespace

LiveBytes most_live(const std::vector<Buffer>& buffers) {
  std::map<int32_t, int64_t> change;
  for (const Buffer& buffer : buffers) {
    change[buffer.birth] += buffer.bytes;
    change[buffer.death + 1] -= buffer.bytes;
  }
  LiveBytes most{.bytes = 0, .instant = buffers.empty() ? 0 : change.begin()->first};
  int64_t live = 0;
  for (auto [instant, bytes] : change)
    if ((live += bytes) > most.bytes) most = {live, instant};
  return most;
}

int64_t place_buffers(std::vector<Buffer>& buffers, int64_t base) {
  std::vector<int> order;
  for (int b = 0; b < static_cast<int>(buffers.size()); ++b) {
    buffers[static_cast<size_t>(b)].offset = base;
    if (buffers[static_cast<size_t>(b)].bytes > 0) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Buffer &x = buffers[static_cast<size_t>(a)], &y = buffers[static_cast<size_t>(b)];
    return x.bytes != y.bytes ? x.bytes > y.bytes : x.birth < y.birth;
  });
  const int64_t bound = base + most_live(buffers).bytes;
  Placement placement(buffers, base);
  placement.run(order);
  std::vector<Buffer> best = placement.buffers();
  int64_t best_end = placement.end();
  auto steps = static_cast<int64_t>(order.size()) * static_cast<int64_t>(order.size()) / 2 + 1;
  for (int64_t round = 0; best_end > bound && round < std::min<int64_t>(kMaxRepairs, kRepairSteps / steps); ++round) {
    std::stable_partition(order.begin(), order.end(), [&](int b) {
      const Buffer& buffer = placement.buffers()[static_cast<size_t>(b)];
      return buffer.offset + buffer.bytes == placement.end();
    });
    placement.run(order);
    if (placement.end() < best_end) {
      best = placement.buffers();
      best_end = placement.end();
    }
  }
  buffers = std::move(best);
  return best_end;
}

}  // namespace espalier
