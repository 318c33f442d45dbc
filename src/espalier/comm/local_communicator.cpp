#include "espalier/comm/local_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "espalier/comm/motion.h"

namespace espalier {

// Whom each device reads and who reads it, for the collectives that are not all-reduces (whose group is `members`). Devices of one group
// share a list, so that 1,024 devices that gather from each other need one list and not 1,024.
struct LocalCommunicator::Plan {
  Transfer transfer;
  std::vector<GroupPlace> places;           // all-reduce: one entry a device
  std::vector<std::vector<int32_t>> lists;  // ascending
  std::vector<int32_t> sources, readers;    // one entry a device: its list
};

struct LocalCommunicator::Arrival {
  int collective = -1;
  const void* operand = nullptr;
  void* result = nullptr;
};

struct alignas(64) LocalCommunicator::Device {
  std::atomic<int64_t> progress{0};  // the only word that peers watch
  // Its own cache line: what the driving thread writes must not disturb those who watch.
  alignas(64) std::atomic<int64_t> waits_for{-1};
  int64_t sequence = -1;
  int collective = -1, drain_collective = -1;
  bool reduced = false;  // all-reduce: my part is done
  int64_t cursor = 0, drain_cursor = 0, received = 0;
  std::vector<const void*> operands;
};

namespace {

using Lists = std::map<std::vector<int32_t>, int32_t>;

int32_t shared_list(Lists& known, std::vector<int32_t> list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  auto next = static_cast<int32_t>(known.size());
  return known.emplace(std::move(list), next).first->second;
}

std::vector<int32_t> sources_of(const Transfer& transfer, const DeviceMesh& mesh, int64_t device) {
  std::vector<int32_t> sources;
  PieceWalk walk(transfer, mesh, device);
  for (Piece piece; walk.next(piece);)
    for (int64_t member : transfer.members) sources.push_back(static_cast<int32_t>(piece.first_source + member));
  return sources;
}

}  // namespace

LocalCommunicator::LocalCommunicator(std::shared_ptr<const DeviceMesh> mesh, std::vector<CollectiveCall> calls)
    : mesh_(std::move(mesh)), calls_(std::move(calls)) {
  const auto n = static_cast<size_t>(mesh_->size());
  size_t widest = 1;
  for (const CollectiveCall& call : calls_) {
    Plan plan{.transfer = plan_transfer(call.type, call.from, call.to, *mesh_), .places = {}, .lists = {}, .sources = {}, .readers = {}};
    widest = std::max(widest, plan.transfer.members.size());
    if (plan.transfer.all_reduce) {
      for (size_t d = 0; d < n; ++d) plan.places.push_back(group_place(plan.transfer, *mesh_, static_cast<int64_t>(d)));
    } else {
      Lists known;
      std::vector<std::vector<int32_t>> readers(n);
      for (size_t d = 0; d < n; ++d) {
        std::vector<int32_t> sources = sources_of(plan.transfer, *mesh_, static_cast<int64_t>(d));
        for (int32_t source : sources) readers[static_cast<size_t>(source)].push_back(static_cast<int32_t>(d));
        plan.sources.push_back(shared_list(known, std::move(sources)));
      }
      for (std::vector<int32_t>& list : readers) plan.readers.push_back(shared_list(known, std::move(list)));
      plan.lists.resize(known.size());
      for (const auto& [list, index] : known) plan.lists[static_cast<size_t>(index)] = list;
    }
    plans_.push_back(std::move(plan));
  }
  devices_ = std::make_unique<Device[]>(n);
  arrivals_ = std::make_unique<Arrival[]>(n * calls_.size());
  for (size_t d = 0; d < n; ++d) devices_[d].operands.resize(widest);
}

LocalCommunicator::~LocalCommunicator() = default;

LocalCommunicator::Arrival& LocalCommunicator::arrival(int64_t device, int64_t sequence) const {
  return arrivals_[static_cast<size_t>(device) * calls_.size() + static_cast<size_t>(sequence)];
}

const Transfer& LocalCommunicator::transfer(int collective) const { return plans_[static_cast<size_t>(collective)].transfer; }

void LocalCommunicator::reset() {
  for (int64_t d = 0; d < mesh_->size(); ++d) {
    Device& device = devices_[static_cast<size_t>(d)];
    device.progress.store(0, std::memory_order_relaxed);
    device.waits_for.store(-1, std::memory_order_relaxed);
    device.sequence = device.collective = device.drain_collective = -1;
    device.received = 0;
  }
}

void LocalCommunicator::start(int64_t device, int collective, const void* operand, void* result) {
  Device& self = devices_[static_cast<size_t>(device)];
  ESPALIER_ASSERT(self.sequence + 1 < static_cast<int64_t>(calls_.size()) && collective < static_cast<int>(calls_.size()));
  ++self.sequence;
  self.collective = collective;
  self.reduced = false;
  self.cursor = 0;
  arrival(device, self.sequence) = {collective, operand, result};
  self.progress.store(3 * self.sequence + 1, std::memory_order_release);
}

// Whether the peer's counter has come to `count`; if so it must be in the same collective.
bool LocalCommunicator::reached(Device& self, int64_t peer, int64_t count, int collective) {
  if (devices_[static_cast<size_t>(peer)].progress.load(std::memory_order_acquire) < count) {
    self.waits_for.store(peer, std::memory_order_relaxed);
    return false;
  }
  if (arrival(peer, self.sequence).collective != collective) require_same(self, peer, collective);
  return true;
}

void LocalCommunicator::require_same(const Device& self, int64_t peer, int collective) const {
  const int theirs = arrival(peer, self.sequence).collective;
  auto device = static_cast<size_t>(&self - devices_.get());
  throw Error(ErrorKind::kMismatch,
              fmt::format("devices disagree on the next collective: device '{}' is in {}, device '{}' in {}", mesh_->devices()[device],
                          calls_[static_cast<size_t>(collective)].name, mesh_->devices()[static_cast<size_t>(peer)],
                          calls_[static_cast<size_t>(theirs)].name),
              fmt::format("collective {} of the program", self.sequence), "run the same program on every device");
}

Progress LocalCommunicator::poll(int64_t device) {
  Device& self = devices_[static_cast<size_t>(device)];
  ESPALIER_ASSERT(self.collective >= 0);
  const bool all_reduce = plans_[static_cast<size_t>(self.collective)].transfer.all_reduce;
  const bool done = all_reduce ? reduce_own_part(self, device) && copy_other_parts(self, device) : take_pieces(self, device);
  if (!done) return Progress::kBlocked;
  self.waits_for.store(-1, std::memory_order_relaxed);
  self.progress.store(3 * self.sequence + 3, std::memory_order_release);
  return Progress::kDone;
}

bool LocalCommunicator::reduce_own_part(Device& self, int64_t device) {
  if (self.reduced) return true;
  const Plan& plan = plans_[static_cast<size_t>(self.collective)];
  const GroupPlace& place = plan.places[static_cast<size_t>(device)];
  const auto n = static_cast<int64_t>(plan.transfer.members.size());
  const Range own = part(place.elements, n, place.index);
  if (own.size > 0) {
    for (; self.cursor < n; ++self.cursor) {
      const int64_t peer = place.base + plan.transfer.members[static_cast<size_t>(self.cursor)];
      if (!reached(self, peer, 3 * self.sequence + 1, self.collective)) return false;
      self.operands[static_cast<size_t>(self.cursor)] = arrival(peer, self.sequence).operand;
    }
    const TensorType& type = plan.transfer.type;
    auto* to = static_cast<std::byte*>(arrival(device, self.sequence).result) + own.offset * size_of(type.dtype);
    reduce_run(plan.transfer.from.reduction, type.dtype, self.operands.data(), n, own.offset, own.size, to);
    self.received += (n - 1) * own.size * size_of(type.dtype);
  }
  self.reduced = true;
  self.cursor = 0;
  self.progress.store(3 * self.sequence + 2, std::memory_order_release);
  return true;
}

// In place too: part q of my buffer is overwritten only when device q has reduced its part, and nobody else reads it.
bool LocalCommunicator::copy_other_parts(Device& self, int64_t device) {
  const Plan& plan = plans_[static_cast<size_t>(self.collective)];
  const GroupPlace& place = plan.places[static_cast<size_t>(device)];
  const auto n = static_cast<int64_t>(plan.transfer.members.size());
  auto* result = static_cast<std::byte*>(arrival(device, self.sequence).result);
  for (; self.cursor < n; ++self.cursor) {
    const Range range = part(place.elements, n, self.cursor);
    if (range.size == 0 || self.cursor == place.index) continue;
    const int64_t peer = place.base + plan.transfer.members[static_cast<size_t>(self.cursor)];
    if (!reached(self, peer, 3 * self.sequence + 2, self.collective)) return false;
    const int64_t width = size_of(plan.transfer.type.dtype), offset = range.offset * width, bytes = range.size * width;
    std::memcpy(result + offset, static_cast<const std::byte*>(arrival(peer, self.sequence).result) + offset, static_cast<size_t>(bytes));
    self.received += bytes;
  }
  return true;
}

bool LocalCommunicator::take_pieces(Device& self, int64_t device) {
  const Plan& plan = plans_[static_cast<size_t>(self.collective)];
  const Transfer& transfer = plan.transfer;
  const std::vector<int32_t>& sources = plan.lists[static_cast<size_t>(plan.sources[static_cast<size_t>(device)])];
  for (; self.cursor < static_cast<int64_t>(sources.size()); ++self.cursor)
    if (!reached(self, sources[static_cast<size_t>(self.cursor)], 3 * self.sequence + 1, self.collective)) return false;
  void* result = arrival(device, self.sequence).result;
  const auto n = static_cast<int64_t>(transfer.members.size());
  PieceWalk walk(transfer, *mesh_, device);
  for (Piece piece; walk.next(piece);) {
    int64_t remote = 0;
    for (int64_t m = 0; m < n; ++m) {
      const int64_t source = piece.first_source + transfer.members[static_cast<size_t>(m)];
      self.operands[static_cast<size_t>(m)] = arrival(source, self.sequence).operand;
      remote += source != device;
    }
    if (n == 1)
      copy_piece(piece, walk.to_shape(), self.operands[0], result);
    else
      reduce_piece(piece, walk.to_shape(), transfer.from.reduction, transfer.type.dtype, self.operands.data(), n, result);
    self.received += remote * piece.shape.volume() * size_of(transfer.type.dtype);
  }
  return true;
}

Progress LocalCommunicator::drained(int64_t device, int collective) {
  Device& self = devices_[static_cast<size_t>(device)];
  const Plan& plan = plans_[static_cast<size_t>(collective)];
  if (self.drain_collective != collective) self.drain_collective = collective, self.drain_cursor = 0;
  const int64_t finished = 3 * static_cast<int64_t>(collective) + 3;
  auto reads_no_more = [&](int64_t peer) {
    if (devices_[static_cast<size_t>(peer)].progress.load(std::memory_order_acquire) >= finished) return true;
    self.waits_for.store(peer, std::memory_order_relaxed);
    return false;
  };
  if (plan.transfer.all_reduce) {
    // Those without a part of their own read only those that have one: their copies.
    const GroupPlace& place = plan.places[static_cast<size_t>(device)];
    const auto n = static_cast<int64_t>(plan.transfer.members.size());
    const int64_t readers = place.index < place.elements ? n : std::min(n, place.elements);
    for (; self.drain_cursor < readers; ++self.drain_cursor)
      if (!reads_no_more(place.base + plan.transfer.members[static_cast<size_t>(self.drain_cursor)])) return Progress::kBlocked;
  } else {
    const std::vector<int32_t>& readers = plan.lists[static_cast<size_t>(plan.readers[static_cast<size_t>(device)])];
    for (; self.drain_cursor < static_cast<int64_t>(readers.size()); ++self.drain_cursor)
      if (!reads_no_more(readers[static_cast<size_t>(self.drain_cursor)])) return Progress::kBlocked;
  }
  self.waits_for.store(-1, std::memory_order_relaxed);
  return Progress::kDone;
}

int64_t LocalCommunicator::waits_for(int64_t device) const {
  return devices_[static_cast<size_t>(device)].waits_for.load(std::memory_order_relaxed);
}

int64_t LocalCommunicator::received_bytes(int64_t device) const { return devices_[static_cast<size_t>(device)].received; }

std::string LocalCommunicator::describe(int64_t device) const {
  const int collective = devices_[static_cast<size_t>(device)].collective;
  return collective < 0 ? "" : calls_[static_cast<size_t>(collective)].name;
}

}  // namespace espalier
