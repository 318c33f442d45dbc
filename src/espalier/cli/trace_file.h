#pragma once
// `train --trace FILE`: what ran when, in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing open. Each device is a
// process, in the order of the mesh, with a row for compute and one for communication. An event is one op of one run: its name is the op's,
// its category `compute` or `communication`, its times microseconds since the first event. Its `args`:
//   layer   the layer's path                    run     initialize, train, evaluate
//   phase   forward, backward or update         step    the update it belongs to or follows, from 1; 0 before the first
//   result  type and shape on this device       worker  the thread that ran it
//   bytes   received from peers                 body    of a fused op: the ops it stands for
//   reason  why a collective stands there
//
// Text goes to the file as it comes: memory holds one run's events, a buffer of kTraceBuffer and one line an op of each program, however
// long the training. The file appears when it is whole (AtomicFile), so a training that fails leaves none.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/file.h"
#include "espalier/nn/trainer.h"

namespace espalier::cli {

inline constexpr size_t kTraceBuffer = size_t{1} << 18;  // bytes: a write every thousand events or so

class TraceFile {
 public:
  // Errors (kStorage): the file cannot be written.
  TraceFile(const FileSystem& files, const std::string& path, const DeviceMesh& mesh);

  // Errors (kStorage). The programs of all runs stay where they are until commit.
  void add(const nn::RunTrace& run);
  void commit();

 private:
  // What is the same in every event of one op on the devices of one class.
  struct OpText {
    std::string name, args;
    bool collective = false;
  };
  const std::vector<OpText>& texts_of(const Compiled& program, int64_t device);
  void put(const std::string& text);
  void flush();

  AtomicFile file_;
  std::string buffer_;
  int64_t written_ = 0;  // bytes
  std::optional<int64_t> origin_ns_;
  std::map<std::pair<const Compiled*, int>, std::vector<OpText>> texts_;  // by program and device class
};

}  // namespace espalier::cli
