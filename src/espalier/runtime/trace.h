#pragma once
// What ran when. Off, it costs one comparison a step; on, two clock readings. Each worker writes into a list of its own.
// Not here: files and pictures.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace espalier {

// One step of one device; a collective lasts from the device's arrival until its result is complete.
struct TraceEvent {
  int32_t device = 0;
  int32_t op = -1;  // index in the program's graph, which has the name, scope and reason; -1: an output copied to its state's place
  int32_t worker = 0;
  int64_t begin_ns = 0, end_ns = 0;  // of the steady clock
  int64_t bytes = 0;                 // received from peers
};

class Trace {
 public:
  // Called by the executor before each run: forgets nothing, makes room.
  void begin(int workers) { lists_.resize(std::max(lists_.size(), static_cast<size_t>(workers))); }
  void record(const TraceEvent& event) { lists_[static_cast<size_t>(event.worker)].events.push_back(event); }

  // All events so far by begin time. Not during a run.
  std::vector<TraceEvent> events() const;
  void clear() { lists_.clear(); }

 private:
  struct alignas(64) List {
    std::vector<TraceEvent> events;
  };
  std::vector<List> lists_;
};

}  // namespace espalier
