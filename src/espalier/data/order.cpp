#include "espalier/data/order.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "espalier/base/error.h"
#include "espalier/base/machine_memory.h"
#include "espalier/base/philox.h"

namespace espalier {
namespace {

constexpr uint32_t kShuffleStream = 0x73687566;  // "shuf": apart from the small numbers that variables and layers use

// 32-bit words of one epoch's stream, in order.
class Words {
 public:
  Words(uint64_t seed, int64_t epoch) : seed_(seed), epoch_(epoch) {}
  uint32_t next() {
    if (at_ == block_.size()) {
      block_ = random_block(seed_ ^ static_cast<uint64_t>(epoch_ >> 32) << 32, kShuffleStream, static_cast<uint32_t>(epoch_), index_++);
      at_ = 0;
    }
    return block_[at_++];
  }
  // Uniform in [0, n) for n up to 2^32: Lemire, "Fast random integer generation in an interval", 2019. It draws again in the few cases
  // that would favour some results.
  uint64_t below(uint64_t n) {
    uint64_t product = uint64_t{next()} * n;
    if (auto low = static_cast<uint32_t>(product); low < n) {
      auto threshold = static_cast<uint32_t>((uint64_t{1} << 32) % n);
      while (low < threshold) {
        product = uint64_t{next()} * n;
        low = static_cast<uint32_t>(product);
      }
    }
    return product >> 32;
  }
  // The same for any n: rejects what lies past the last whole multiple of n.
  uint64_t below_wide(uint64_t n) {
    uint64_t excess = (~uint64_t{0} % n + 1) % n;
    for (;;) {
      uint64_t high = next(), value = high << 32 | next();
      if (value <= ~uint64_t{0} - excess) return value % n;
    }
  }

 private:
  uint64_t seed_;
  int64_t epoch_;
  PhiloxBlock block_{};
  uint64_t index_ = 0;
  size_t at_ = 4;
};

}  // namespace

std::vector<int64_t> epoch_order(int64_t n, uint64_t seed, int64_t epoch, Shuffle shuffle) {
  if (n > machine_memory() / static_cast<int64_t>(sizeof(int64_t)))
    throw Error(ErrorKind::kMemory, fmt::format("the order of {} samples does not fit into this machine's memory", n), "",
                "take fewer, with --samples");
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (shuffle == Shuffle::kNo) return order;
  Words words(seed, epoch);
  for (uint64_t left = static_cast<uint64_t>(n); left > 1; --left) {
    uint64_t pick = left <= uint64_t{1} << 32 ? words.below(left) : words.below_wide(left);
    std::swap(order[left - 1], order[pick]);
  }
  return order;
}

}  // namespace espalier
