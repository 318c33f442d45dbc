#pragma once
// The collectives of one program, run by all devices of a mesh: started, polled, never waited for inside. A device starts its collectives
// in the order of the list; each is a small state machine (arrive, do my part, arrive, done) that `poll` carries on as far as the peers
// have come, so a worker whose device is blocked goes on with its next device.
//
// Thread rule: one device is driven by one thread at a time; different devices by any threads. Buffers belong to the caller: the operand
// must hold its values at `start`; it and the result may be overwritten only when `drained` says so, since peers read both.
// Not here: deciding what to send (passes/reshard.h), waiting (the executor, or `wait` below in tests and tools).
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/comm/transfer.h"

namespace espalier {

// One collective, the same for all devices.
struct CollectiveCall {
  std::string name;  // for errors: "all_reduce of 'sequential/dense' (reason)"
  TensorType type;   // logical
  Sharding from, to;
};

enum class Progress : uint8_t { kDone, kBlocked };

class Communicator {
 public:
  virtual ~Communicator() = default;

  // Forgets everything, before a run and after a failure. No device may be inside a collective.
  virtual void reset() = 0;
  // The device has come to its next collective, which it believes to be number `collective` of the list. The buffers have its local shapes.
  virtual void start(int64_t device, int collective, const void* operand, void* result) = 0;
  // Does what can be done now. kDone: the result is complete. Error(kMismatch): a peer is in another collective.
  virtual Progress poll(int64_t device) = 0;
  // kDone: no peer reads the buffers of `collective`, which the device has completed, any more.
  virtual Progress drained(int64_t device, int collective) = 0;

  // The peer that the last kBlocked of this device was about; -1 when the device is not blocked. Any thread may ask.
  virtual int64_t waits_for(int64_t device) const = 0;
  // Received from peers since `reset`, counted while moving.
  virtual int64_t received_bytes(int64_t device) const = 0;
  // "all_reduce of 'dense' (...)" of the collective the device is in, for errors.
  virtual std::string describe(int64_t device) const = 0;
};

// "waited 60 s for device 'cpu:3' in all_reduce of ...", following the chain of waits to the device that keeps everybody. Error(kDeadline).
[[noreturn]] void deadline_error(const Communicator& communicator, const DeviceMesh& mesh, int64_t device, double seconds);

// Polls until the device's collective is done. Error(kDeadline) after `deadline_seconds`.
void wait(Communicator& communicator, const DeviceMesh& mesh, int64_t device, double deadline_seconds);

}  // namespace espalier
