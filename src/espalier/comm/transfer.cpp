#include "espalier/comm/transfer.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier {
namespace {

// What each position on the axes (major first) adds to a device number.
template <class Axes>
std::vector<int64_t> device_offsets(const Axes& axes, const DeviceMesh& mesh) {
  std::vector<int64_t> offsets = {0};
  for (int axis : axes) {
    std::vector<int64_t> longer;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < mesh.shape()[static_cast<size_t>(axis)]; ++i) longer.push_back(offset + i * mesh.stride(axis));
    offsets = std::move(longer);
  }
  return offsets;
}

std::vector<int> axes_of(AxisSet set) {
  std::vector<int> axes;
  for (int axis = 0; axis < kMaxAxes; ++axis)
    if (set >> axis & 1) axes.push_back(axis);
  return axes;
}

// The number of the device with the same coordinates as `device`, but 0 on `axes`.
int64_t without(AxisSet axes, const DeviceMesh& mesh, int64_t device) {
  int64_t base = device;
  for (int axis : axes_of(axes)) base -= mesh.coordinate(device, axis) * mesh.stride(axis);
  return base;
}

DimSegments plan_dim(int64_t size, const AxisList& from, const AxisList& to, const DeviceMesh& mesh) {
  const std::vector<int64_t> peers = device_offsets(from, mesh);
  const auto from_parts = static_cast<int64_t>(peers.size()), to_parts = part_count(to, mesh);
  DimSegments dim;
  dim.first.push_back(0);
  int64_t source = 0;
  for (int64_t p = 0; p < to_parts; ++p) {
    Range wanted = part(size, to_parts, p);
    for (int64_t end = wanted.offset + wanted.size; source < from_parts; ++source) {
      Range held = part(size, from_parts, source);
      int64_t begin = std::max(wanted.offset, held.offset), stop = std::min(end, held.offset + held.size);
      if (begin < stop)
        dim.segments.push_back({.length = stop - begin,
                                .to = begin - wanted.offset,
                                .from = begin - held.offset,
                                .from_size = held.size,
                                .peer = peers[static_cast<size_t>(source)]});
      if (held.offset + held.size > end) break;  // the next part goes on with the rest of this one
    }
    dim.first.push_back(static_cast<int32_t>(dim.segments.size()));
  }
  return dim;
}

void check(const TensorType& type, const Sharding& from, const Sharding& to) {
  auto refuse = [&](const char* what) { usage_error(what, fmt::format("a collective on {}", to_string(type)), "change the program"); };
  if (from.rank != type.shape.rank() || to.rank != type.shape.rank()) refuse("a sharding and its tensor differ in rank");
  if ((to.pending & ~from.pending) != 0) refuse("a collective cannot leave an axis pending that was not");
  if (to.pending != 0 && to.reduction != from.reduction) refuse("a collective cannot change what is pending");
  if ((from.pending & from.cut_axes()) != 0 || (to.pending & to.cut_axes()) != 0) refuse("an axis is pending and cuts a dim");
  if ((from.pending & ~to.pending) != 0 && type.dtype != DType::kF32 && from.reduction == Reduction::kLogSumExp)
    refuse("a log-sum-exp of integers does not exist");
}

}  // namespace

Transfer plan_transfer(const TensorType& type, const Sharding& from, const Sharding& to, const DeviceMesh& mesh) {
  check(type, from, to);
  Transfer transfer{.type = type, .from = from, .to = to, .resolved = from.pending & ~to.pending, .members = {}, .dims = {}};
  transfer.members = device_offsets(axes_of(transfer.resolved), mesh);
  transfer.all_reduce = transfer.resolved != 0 && from.dims == to.dims;
  for (int d = 0; d < type.shape.rank(); ++d) {
    auto i = static_cast<size_t>(d);
    transfer.dims[i] = plan_dim(type.shape[d], from.dims[i], to.dims[i], mesh);
  }
  transfer.local = transfer.members.size() == 1;
  for (int64_t device = 0; transfer.local && device < mesh.size(); ++device) {
    PieceWalk walk(transfer, mesh, device);
    for (Piece piece; transfer.local && walk.next(piece);) transfer.local = piece.first_source == device;
  }
  return transfer;
}

PieceWalk::PieceWalk(const Transfer& transfer, const DeviceMesh& mesh, int64_t device)
    : transfer_(transfer),
      to_shape_(local_shape(transfer.to, transfer.type.shape, mesh, device)),
      base_(without(transfer.from.cut_axes() | transfer.resolved, mesh, device)) {
  for (size_t d = 0; d < transfer.to.rank; ++d) {
    const std::vector<int32_t>& first = transfer.dims[d].first;
    auto p = static_cast<size_t>(part_index(transfer.to.dims[d], mesh, device));
    at_[d] = begin_[d] = first[p];
    end_[d] = first[p + 1];
    more_ = more_ && begin_[d] < end_[d];
  }
}

bool PieceWalk::next(Piece& piece) {
  if (!more_) return false;
  const int rank = transfer_.to.rank;
  piece.shape = piece.to = piece.from = piece.from_shape = Dims::filled(rank, 0);
  piece.first_source = base_;
  for (int d = 0; d < rank; ++d) {
    auto i = static_cast<size_t>(d);
    const Segment& segment = transfer_.dims[i].segments[static_cast<size_t>(at_[i])];
    piece.shape[d] = segment.length;
    piece.to[d] = segment.to;
    piece.from[d] = segment.from;
    piece.from_shape[d] = segment.from_size;
    piece.first_source += segment.peer;
  }
  int d = rank - 1;
  for (; d >= 0; --d) {
    auto i = static_cast<size_t>(d);
    if (++at_[i] < end_[i]) break;
    at_[i] = begin_[i];
  }
  more_ = d >= 0;
  return true;
}

GroupPlace group_place(const Transfer& transfer, const DeviceMesh& mesh, int64_t device) {
  GroupPlace place{.base = without(transfer.resolved, mesh, device),
                   .elements = local_shape(transfer.to, transfer.type.shape, mesh, device).volume()};
  for (int axis : axes_of(transfer.resolved))
    place.index = place.index * mesh.shape()[static_cast<size_t>(axis)] + mesh.coordinate(device, axis);
  return place;
}

int64_t received_bytes(const Transfer& transfer, const DeviceMesh& mesh, int64_t device) {
  const auto n = static_cast<int64_t>(transfer.members.size());
  int64_t elements = 0;
  if (transfer.all_reduce) {
    GroupPlace place = group_place(transfer, mesh, device);
    int64_t own = part(place.elements, n, place.index).size;
    elements = (n - 1) * own + (place.elements - own);
  } else {
    PieceWalk walk(transfer, mesh, device);
    for (Piece piece; walk.next(piece);)
      for (int64_t member : transfer.members)
        if (piece.first_source + member != device) elements += piece.shape.volume();
  }
  return elements * size_of(transfer.type.dtype);
}

}  // namespace espalier
