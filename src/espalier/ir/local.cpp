#include "espalier/ir/local.h"

namespace espalier {

LocalTensor local_tensor(const Graph& graph, ValueId id, int64_t device) {
  const Value& value = graph.value(id);
  if (graph.mesh == nullptr) return {value.type.dtype, value.type.shape, Dims::filled(value.type.shape.rank(), 0), value.type.shape};
  Box box = shard_box(value.sharding, value.type.shape, *graph.mesh, device);
  return {value.type.dtype, box.shape, box.offset, value.type.shape};
}

LocalOp local_op(const Graph& graph, const Op& op, int64_t device, int threads) {
  LocalOp local{.attrs = &op.attrs, .operands = {}, .results = {}, .threads = threads};
  for (ValueId id : op.operands) local.operands.push_back(local_tensor(graph, id, device));
  for (ValueId id : op.results) local.results.push_back(local_tensor(graph, id, device));
  return local;
}

int64_t local_bytes(const Graph& graph, ValueId id, int64_t device) {
  LocalTensor tensor = local_tensor(graph, id, device);
  return tensor.shape.volume() * size_of(tensor.dtype);
}

}  // namespace espalier
