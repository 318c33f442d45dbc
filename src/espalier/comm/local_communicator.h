#pragma once
// The Communicator of devices that share this process: a device reads its peers' buffers directly. Each device has a counter of how far it
// has come, alone on its cache line: its peers acquire it before they read its buffers, and it acquires theirs before it overwrites
// what they read. A device waits only for those that it reads or that read it; nobody ever takes a lock.
//
// For collective number s of a device the counter passes 3s+1 (arrived: the operand may be read), 3s+2 (all-reduce: my part of the result
// may be read) and 3s+3 (done: I read nobody any more).
#include <atomic>
#include <memory>

#include "espalier/comm/communicator.h"

namespace espalier {

class LocalCommunicator final : public Communicator {
 public:
  // Errors: those of plan_transfer, with the collective's name.
  LocalCommunicator(std::shared_ptr<const DeviceMesh> mesh, std::vector<CollectiveCall> calls);
  ~LocalCommunicator() override;

  void reset() override;
  void start(int64_t device, int collective, const void* operand, void* result) override;
  Progress poll(int64_t device) override;
  Progress drained(int64_t device, int collective) override;
  int64_t waits_for(int64_t device) const override;
  int64_t received_bytes(int64_t device) const override;
  std::string describe(int64_t device) const override;

  const Transfer& transfer(int collective) const;

 private:
  struct Plan;
  struct Arrival;
  struct Device;

  bool reached(Device& self, int64_t peer, int64_t count, int collective);
  void require_same(const Device& self, int64_t peer, int collective) const;
  bool reduce_own_part(Device& self, int64_t device);
  bool copy_other_parts(Device& self, int64_t device);
  bool take_pieces(Device& self, int64_t device);
  Arrival& arrival(int64_t device, int64_t sequence) const;

  std::shared_ptr<const DeviceMesh> mesh_;
  std::vector<CollectiveCall> calls_;
  std::vector<Plan> plans_;
  std::unique_ptr<Device[]> devices_;
  std::unique_ptr<Arrival[]> arrivals_;  // one a device and collective, published by the device's counter
};

}  // namespace espalier
