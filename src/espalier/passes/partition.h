#pragma once
// Partitioning: from a global graph and the decided splits to one program for all devices, the same Graph with a sharding on every value
// and collectives as ordinary ops. Every collective is derived here: where a value's sharding is not the one its consumer needs, the
// cheapest move is inserted, and its `reason` says who needed what. A pending sum is resolved once and shared by all consumers of one form.
#include "espalier/ir/graph.h"
#include "espalier/passes/complete_layouts.h"

namespace espalier {

Graph partition(const Graph& graph, const std::shared_ptr<const DeviceMesh>& mesh, const Pins& pins, const LayoutPlan& plan);

}  // namespace espalier
