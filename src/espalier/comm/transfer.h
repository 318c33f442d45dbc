#pragma once
// Planning apart from motion: which part of a tensor each device takes from whom when its sharding changes. Everything follows from
// intersecting boxes, so uneven and empty parts, several axes on a dim and cuts that do not nest (10 over 4 parts, then over 2) are no
// special cases: a device may need data from any part that its new part meets.
//
// Who is read: of several devices that hold the same part, the one with the reader's own coordinates on the axes that do not matter; a
// device reads itself where it can and the replicas share the load. Sums, maxima and log-sum-exps of pending parts read one device a
// position on the resolved axes, in the order of those positions, so that all replicas compute the same bits.
//
// An all-reduce (the dims stay, pending axes are resolved) is two rounds: each of the n devices of a group reduces one n-th of the local
// buffer, then copies the other parts: 2 S (n-1)/n bytes received instead of S (n-1).
#include <array>
#include <cstdint>
#include <vector>

#include "espalier/ir/types.h"
#include "espalier/mesh/sharding.h"

namespace espalier {

// A stretch of one dim that lies in one part of the source and one part of the destination. Positions count within those parts.
struct Segment {
  int64_t length = 0;
  int64_t to = 0, from = 0;
  int64_t from_size = 0;  // of the source's part, which is a stride of its buffer
  int64_t peer = 0;       // what this part adds to the number of the device that holds it
};

// The segments of one dim, those of destination part p at [first[p], first[p + 1]): sizes add up to parts, not to devices.
struct DimSegments {
  std::vector<Segment> segments;
  std::vector<int32_t> first;
};

// The plan of one collective, for all devices at once. Immutable.
struct Transfer {
  TensorType type;
  Sharding from, to;
  AxisSet resolved = 0;          // pending axes that are reduced here
  std::vector<int64_t> members;  // what each position on the resolved axes adds to a device number, in order; {0} when there are none
  bool all_reduce = false;       // two rounds
  bool local = false;            // every device reads itself only
  std::array<DimSegments, kMaxRank> dims;
};

// Errors: ranks that differ, an axis pending in `to` and not in `from`, a reduction that the element type does not have.
Transfer plan_transfer(const TensorType& type, const Sharding& from, const Sharding& to, const DeviceMesh& mesh);

// A rectangular part of a device's new buffer and where it is found: at `from` in the buffers (of shape `from_shape`) of the devices
// first_source + m, m of `members`.
struct Piece {
  Dims shape, to, from, from_shape;
  int64_t first_source = 0;
};

// Goes through one device's pieces, none of them empty, in row-major order.
class PieceWalk {
 public:
  PieceWalk(const Transfer& transfer, const DeviceMesh& mesh, int64_t device);
  bool next(Piece& piece);
  const Dims& to_shape() const { return to_shape_; }

 private:
  const Transfer& transfer_;
  Dims to_shape_;
  int64_t base_ = 0;
  std::array<int32_t, kMaxRank> begin_{}, end_{}, at_{};
  bool more_ = true;
};

// One device's place in an all-reduce: its group is base + members, its position `index`, its buffer `elements` long.
struct GroupPlace {
  int64_t base = 0, index = 0, elements = 0;
};
GroupPlace group_place(const Transfer& transfer, const DeviceMesh& mesh, int64_t device);

// Bytes a device receives from its peers.
int64_t received_bytes(const Transfer& transfer, const DeviceMesh& mesh, int64_t device);

}  // namespace espalier
