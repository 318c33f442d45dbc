#pragma once
// Between the host and the devices' shards: samples in, scalars in, results and weights out, each device's part straight into or out of
// its buffer. No whole tensor is made that somebody did not ask for.
#include <functional>
#include <span>
#include <vector>

#include "espalier/data/dataset.h"
#include "espalier/ir/graph.h"

namespace espalier::nn {

// The buffer of a tensor on one device, of its local shape.
using ShardOf = std::function<void*(int64_t device)>;

// How work is shared: calls f(0) to f(count - 1) side by side and returns when all have ended.
struct Hands {
  int count = 1;
  std::function<void(const std::function<void(int)>& f)> run;
};

// Each device's part of a batch: `samples` are the rows of the value (dim 0), in order. A part that an earlier device has too is copied;
// every hand reads rows of each part of a batch that is large enough.
void feed_samples(const Value& value, const DeviceMesh& mesh, const Dataset& data, int field, std::span<const int64_t> samples,
                  const ShardOf& shard, const Hands& hands);
// One number for every device.
void feed_scalar(const Value& value, const DeviceMesh& mesh, double number, const ShardOf& shard);

// Calls part(device, box) for one holder of each part of a tensor: replicas are passed over, empty parts too.
void for_each_part(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh,
                   const std::function<void(int64_t, const Box&)>& part);
// The whole tensor put together, row-major, into `whole`; i32 becomes the nearest float.
void gather_parts(const Value& value, const DeviceMesh& mesh, const ShardOf& shard, float* whole);
// Elements [first, first + count) of it, into `some`.
void gather_some(const Value& value, const DeviceMesh& mesh, const ShardOf& shard, int64_t first, int64_t count, float* some);

}  // namespace espalier::nn
