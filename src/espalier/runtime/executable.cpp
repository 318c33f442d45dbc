#include "espalier/runtime/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "espalier/ir/local.h"
#include "espalier/ops/make_kernel.h"

namespace espalier {
namespace {

// All that a kernel may depend on besides its op.
std::vector<int64_t> key(const LocalOp& op) {
  std::vector<int64_t> key;
  for (const std::vector<LocalTensor>* tensors : {&op.operands, &op.results})
    for (const LocalTensor& tensor : *tensors)
      for (const Dims* dims : {&tensor.shape, &tensor.offset}) key.insert(key.end(), dims->begin(), dims->end());
  return key;
}

bool has_elements(const LocalOp& op) {
  return std::any_of(op.results.begin(), op.results.end(), [](const LocalTensor& result) { return result.shape.volume() > 0; });
}

}  // namespace

Executable::Executable(std::shared_ptr<const Compiled> compiled, int workers, ExecutionMode mode) : compiled_(std::move(compiled)) {
  if (mode == ExecutionMode::kNull) return;
  prepare_kernels(workers);
  prepare_programs();
  communicator_ = std::make_unique<LocalCommunicator>(graph().mesh, collective_calls(graph()));
}

void Executable::prepare_kernels(int workers) {
  const int64_t devices = mesh().size();
  kernels_.assign(static_cast<size_t>(devices), std::vector<const Kernel*>(graph().ops.size()));
  for (int worker = 0; worker < workers; ++worker) {
    const Range mine = part(devices, workers, worker);
    for (size_t i = 0; i < graph().ops.size(); ++i) {
      const Op& op = graph().ops[i];
      if (op.def->collective) continue;
      std::map<std::vector<int64_t>, const Kernel*> known;
      for (int64_t d = mine.offset; d < mine.offset + mine.size; ++d) {
        LocalOp local = local_op(graph(), op, d, compiled_->threads);
        if (!has_elements(local)) continue;
        auto [at, fresh] = known.try_emplace(key(local), nullptr);
        if (fresh) at->second = &pool_.emplace_back(ops::make_kernel(*op.def, local));
        kernels_[static_cast<size_t>(d)][i] = at->second;
      }
    }
  }
}

void Executable::prepare_programs() {
  const size_t ops = graph().ops.size();
  std::map<std::vector<int64_t>, size_t> known;  // by class, and by where the parts inside other values lie
  for (size_t d = 0; d < kernels_.size(); ++d) {
    const auto device = static_cast<int64_t>(d);
    const MemoryPlan& plan = memory(device);
    std::vector<int64_t> key = {static_cast<int64_t>(device_class(device))};
    for (size_t v = 0; v < plan.inside.size(); ++v)
      if (plan.inside[v] != kNoValue) key.push_back(offset_of(plan, graph(), static_cast<ValueId>(v), device));
    auto [at, fresh] = known.try_emplace(std::move(key), programs_.size());
    program_of_.push_back(at->second);
    if (!fresh) continue;
    std::vector<int64_t> scratch(ops);
    for (size_t i = 0; i < ops; ++i) scratch[i] = kernels_[d][i] == nullptr ? 0 : kernels_[d][i]->scratch_bytes;
    programs_.push_back(make_program(*compiled_, device, scratch));
  }
}

std::string Executable::describe(const Step& step) const {
  if (step.op < 0) return "the copy of an output into its state";
  const Op& op = graph().ops[static_cast<size_t>(step.op)];
  return op.scope.empty() ? fmt::format("op '{}'", op.def->name) : fmt::format("op '{}' of '{}'", op.def->name, op.scope);
}

}  // namespace espalier
