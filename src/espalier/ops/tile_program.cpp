#include "espalier/ops/tile_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "espalier/base/subnormals.h"
#include "espalier/ops/parallel.h"

namespace espalier::ops {

namespace {

void copy_tile(const Attrs&, const float* const* in, float* const* out, int n) {
  if (in[0] != out[0]) std::memcpy(out[0], in[0], static_cast<size_t>(n) * sizeof(float));
}

}  // namespace

TileProgram tile_program(const OpDef& def, const Attrs& attrs, int operands) {
  TileProgram program{.inputs = operands, .values = operands + def.result_count, .flushes_subnormals = def.updates > 0};
  TileStep step{.run = def.tile, .attrs = attrs};
  for (int i = 0; i < operands; ++i) step.in.push_back(i);
  for (int r = 0; r < def.result_count; ++r) step.out.push_back(operands + r);
  program.outputs = step.out;
  program.steps.push_back(std::move(step));
  return program;
}

TileProgram tile_program(const Graph& body) {
  TileProgram program{.inputs = static_cast<int>(body.inputs.size())};
  std::vector<int> number(body.values.size(), -1);
  for (const Input& input : body.inputs) number[static_cast<size_t>(input.value)] = program.values++;
  for (const Op& op : body.ops) {
    TileStep step{.run = op.def->tile, .attrs = op.attrs};
    for (ValueId id : op.operands) step.in.push_back(number[static_cast<size_t>(id)]);
    for (ValueId id : op.results) step.out.push_back(number[static_cast<size_t>(id)] = program.values++);
    program.steps.push_back(std::move(step));
    program.flushes_subnormals = program.flushes_subnormals || op.def->updates > 0;
  }
  for (const Output& output : body.outputs) {
    int value = number[static_cast<size_t>(output.value)];
    if (value < program.inputs) {  // an input handed through: copied like any result, since an output may lie in its buffer
      program.steps.push_back({.run = copy_tile, .in = {value}, .out = {program.values}});
      value = program.values++;
    }
    program.outputs.push_back(value);
  }
  return program;
}

TileProgram copy_program() {
  TileProgram program{.inputs = 1, .values = 2, .outputs = {1}};
  program.steps.push_back({.run = copy_tile, .in = {0}, .out = {1}});
  return program;
}

void check_body(const Graph& body, size_t inputs, const std::string& where) {
  if (body.inputs.size() != inputs) usage_error(fmt::format("the body takes {} inputs, the op has {}", body.inputs.size(), inputs), where);
  if (body.outputs.empty()) usage_error("the body has no outputs", where);
  for (const Op& op : body.ops)
    if (!op.def->elementwise()) usage_error(fmt::format("op '{}' in the body is not elementwise", op.def->name), where);
  for (const Value& value : body.values)
    if (value.type.dtype != DType::kF32) usage_error("a value in the body is not f32", where);
}

namespace {

// How one operand meets the result: its stride along each (collapsed) dim of the result, 0 where it is repeated.
struct Access {
  enum Kind { kFlat, kFixed, kSpread } kind = kFlat;  // the result's own order; one tile serves all; spread tile by tile
  std::vector<int64_t> strides = {};
};

struct TileLoop {
  int64_t elements = 0;
  int tile = 0;  // elements of a full tile
  std::vector<int64_t> sizes = {};
  std::vector<Access> access = {};
};

// The result's dims with neighbours merged wherever every operand walks through both in one stride.
TileLoop plan_loop(const std::vector<Dims>& operands, const Dims& result) {
  TileLoop loop{.elements = result.volume(), .tile = kTileElements, .access = std::vector<Access>(operands.size())};
  if (loop.elements == 0) return loop;
  std::vector<std::vector<int64_t>> columns;  // one a dim: the strides of all operands
  for (int d = 0; d < result.rank(); ++d) {
    if (result[d] == 1) continue;
    std::vector<int64_t> strides;
    for (const Dims& shape : operands) {
      int own = d - (result.rank() - shape.rank());
      strides.push_back(own < 0 || shape[own] == 1 ? 0 : row_major_strides(shape)[own]);
    }
    bool merges = !columns.empty();
    for (size_t i = 0; merges && i < operands.size(); ++i) merges = columns.back()[i] == strides[i] * result[d];
    if (merges) {
      loop.sizes.back() *= result[d];
      columns.back() = strides;
    } else {
      loop.sizes.push_back(result[d]);
      columns.push_back(strides);
    }
  }
  int64_t inner = loop.sizes.empty() ? 1 : loop.sizes.back();
  // A row that fits several times makes tiles of whole rows, so that one spread row serves them all.
  if (inner <= kTileElements) loop.tile = static_cast<int>(kTileElements / inner * inner);
  for (size_t i = 0; i < operands.size(); ++i) {
    Access& access = loop.access[i];
    for (const auto& strides : columns) access.strides.push_back(strides[i]);
    bool repeats = std::any_of(access.strides.begin(), access.strides.end(), [](int64_t s) { return s == 0; });
    bool outer = std::any_of(access.strides.begin(), access.strides.end() - (columns.empty() ? 0 : 1), [](int64_t s) { return s != 0; });
    if (!repeats)
      access.kind = Access::kFlat;
    else
      access.kind = !outer && (access.strides.back() == 0 || loop.tile % inner == 0) ? Access::kFixed : Access::kSpread;
  }
  return loop;
}

// Elements [begin, begin + n) of an operand in the result's order: in place when they lie together, else written to `tile`.
const float* spread(const TileLoop& loop, const Access& access, const float* operand, int64_t begin, int n, float* tile) {
  const int rank = static_cast<int>(loop.sizes.size());
  int64_t index[kMaxRank], rest = begin, at = 0;
  for (int d = rank - 1; d >= 0; --d) {
    index[d] = rest % loop.sizes[static_cast<size_t>(d)];
    rest /= loop.sizes[static_cast<size_t>(d)];
    at += index[d] * access.strides[static_cast<size_t>(d)];
  }
  const int64_t inner = loop.sizes.back(), inner_stride = access.strides.back();
  if (inner_stride == 1 && index[rank - 1] + n <= inner) return operand + at;
  for (int done = 0; done < n;) {
    const int run = static_cast<int>(std::min<int64_t>(n - done, inner - index[rank - 1]));
    if (inner_stride == 1)
      std::memcpy(tile + done, operand + at, static_cast<size_t>(run) * sizeof(float));
    else
      std::fill_n(tile + done, run, operand[at]);
    done += run;
    at += (run - 1) * inner_stride;  // on the last element of the run; carry to the next row
    index[rank - 1] += run - 1;
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t stride = access.strides[static_cast<size_t>(d)];
      at += stride;
      if (++index[d] < loop.sizes[static_cast<size_t>(d)]) break;
      at -= stride * loop.sizes[static_cast<size_t>(d)];
      index[d] = 0;
    }
  }
  return tile;
}

// A program bound to shapes: which values are the same in every tile, and which tile of the stack each value lives in.
struct Bound {
  TileProgram program;
  TileLoop loop;
  std::vector<bool> fixed = {};  // one entry a value
  std::vector<int> slot = {};    // one entry a value; -1 for an operand read in place
  std::vector<int> direct = {};  // one entry a value: the output it may be written to at once, or -1
  int slots = 0;
};

// Slots of values that are read for the last time are used again; fixed values and outputs keep theirs.
void assign_slots(Bound& bound) {
  const TileProgram& program = bound.program;
  std::vector<int> last(static_cast<size_t>(program.values), -1), open;
  for (size_t s = 0; s < program.steps.size(); ++s)
    for (int v : program.steps[s].in) last[static_cast<size_t>(v)] = static_cast<int>(s);
  for (int v : program.outputs) last[static_cast<size_t>(v)] = static_cast<int>(program.steps.size());
  bound.slot.assign(static_cast<size_t>(program.values), -1);
  for (int i = 0; i < program.inputs; ++i)
    if (bound.loop.access[static_cast<size_t>(i)].kind != Access::kFlat) bound.slot[static_cast<size_t>(i)] = bound.slots++;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const TileStep& step = program.steps[s];
    for (int v : step.out) {
      int& slot = bound.slot[static_cast<size_t>(v)];
      if (open.empty() || bound.fixed[static_cast<size_t>(v)]) {
        slot = bound.slots++;
      } else {
        slot = open.back();
        open.pop_back();
      }
    }
    std::vector<int> read = step.in;  // an operand read twice is freed once
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (int v : read)
      if (v >= program.inputs && last[static_cast<size_t>(v)] == static_cast<int>(s) && !bound.fixed[static_cast<size_t>(v)])
        open.push_back(bound.slot[static_cast<size_t>(v)]);
    for (int v : step.out)
      if (last[static_cast<size_t>(v)] < 0 && !bound.fixed[static_cast<size_t>(v)]) open.push_back(bound.slot[static_cast<size_t>(v)]);
  }
}

Bound bind_program(TileProgram program, const std::vector<Dims>& operands, const Dims& result) {
  Bound bound{.program = std::move(program), .loop = plan_loop(operands, result)};
  bound.fixed.assign(static_cast<size_t>(bound.program.values), false);
  bound.direct.assign(static_cast<size_t>(bound.program.values), -1);
  for (size_t i = 0; i < operands.size(); ++i) bound.fixed[i] = bound.loop.access[i].kind == Access::kFixed;
  for (const TileStep& step : bound.program.steps) {
    bool fixed = std::all_of(step.in.begin(), step.in.end(), [&](int v) { return bound.fixed[static_cast<size_t>(v)]; });
    for (int v : step.out) bound.fixed[static_cast<size_t>(v)] = fixed;
  }
  for (size_t k = 0; k < bound.program.outputs.size(); ++k) {
    auto v = static_cast<size_t>(bound.program.outputs[k]);
    if (!bound.fixed[v] && bound.direct[v] < 0) bound.direct[v] = static_cast<int>(k);
  }
  assign_slots(bound);
  return bound;
}

// One thread's run over the tiles [first, last).
class TileRun {
 public:
  TileRun(const Bound& bound, const KernelCall& call, float* slots)
      : bound_(bound), call_(call), slots_(slots), value_(static_cast<size_t>(bound.program.values)) {
    const TileProgram& program = bound.program;
    for (size_t k = 0; k < program.outputs.size(); ++k)
      for (int i = 0; i < program.inputs; ++i) aliased_ |= call.results[k] == call.operands[i];
  }

  void run(int64_t first, int64_t last) {
    const int64_t elements = bound_.loop.elements;
    int full = static_cast<int>(std::min<int64_t>(bound_.loop.tile, elements));
    for (int i = 0; i < bound_.program.inputs; ++i) load(i, 0, full, true);
    for (const TileStep& step : bound_.program.steps)
      if (is_fixed(step)) execute(step, 0, full);
    for (int64_t t = first; t < last; ++t) {
      const int64_t begin = t * bound_.loop.tile;
      tile(begin, static_cast<int>(std::min<int64_t>(bound_.loop.tile, elements - begin)));
    }
  }

 private:
  bool is_fixed(const TileStep& step) const { return bound_.fixed[static_cast<size_t>(step.out.front())]; }
  float* slot(int v) { return slots_ + static_cast<int64_t>(bound_.slot[static_cast<size_t>(v)]) * kTileElements; }

  void load(int i, int64_t begin, int n, bool fixed) {
    const Access& access = bound_.loop.access[static_cast<size_t>(i)];
    if ((access.kind == Access::kFixed) != fixed) return;
    const float* operand = call_.operand<float>(i);
    if (access.kind == Access::kFlat) {
      value_[static_cast<size_t>(i)] = operand + begin;
    } else {
      value_[static_cast<size_t>(i)] = spread(bound_.loop, access, operand, begin, n, slot(i));
    }
  }

  void execute(const TileStep& step, int64_t begin, int n) {
    in_.clear();
    out_.clear();
    for (int v : step.in) in_.push_back(value_[static_cast<size_t>(v)]);
    // An output in an operand's buffer has to wait until no step reads that operand any more.
    bool wait = aliased_ && &step != &bound_.program.steps.back();
    for (int v : step.out) {
      int k = wait ? -1 : bound_.direct[static_cast<size_t>(v)];
      out_.push_back(k < 0 ? slot(v) : call_.result<float>(k) + begin);
      value_[static_cast<size_t>(v)] = out_.back();
    }
    step.run(step.attrs, in_.data(), out_.data(), n);
  }

  void tile(int64_t begin, int n) {
    for (int i = 0; i < bound_.program.inputs; ++i) load(i, begin, n, false);
    for (const TileStep& step : bound_.program.steps)
      if (!is_fixed(step)) execute(step, begin, n);
    for (size_t k = 0; k < bound_.program.outputs.size(); ++k) {
      float* to = call_.result<float>(static_cast<int>(k)) + begin;
      const float* from = value_[static_cast<size_t>(bound_.program.outputs[k])];
      if (to != from) std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
    }
  }

  const Bound& bound_;
  const KernelCall& call_;
  float* slots_;
  std::vector<const float*> value_, in_;
  std::vector<float*> out_;
  bool aliased_ = false;
};

}  // namespace

Kernel tile_kernel(TileProgram program, const std::vector<Dims>& operands, const Dims& result, int threads) {
  auto bound = std::make_shared<const Bound>(bind_program(std::move(program), operands, result));
  int64_t tiles = (bound->loop.elements + bound->loop.tile - 1) / bound->loop.tile;
  return {.run = [bound, tiles, threads](const KernelCall& call) {
    int64_t work = bound->loop.elements * static_cast<int64_t>(bound->program.steps.size() + 1);
    if (tiles == 0) return;
    parallel_for(threads, tiles, work, [&](int64_t first, int64_t last) {
      std::optional<FlushSubnormals> flush;
      if (bound->program.flushes_subnormals) flush.emplace();
      constexpr int kStackSlots = 16;  // 64 KiB; larger bodies are rare enough to pay an allocation
      alignas(64) float stack[kStackSlots * kTileElements];
      std::unique_ptr<float[]> heap;
      if (bound->slots > kStackSlots) heap.reset(new float[static_cast<size_t>(bound->slots) * kTileElements]);
      TileRun(*bound, call, heap ? heap.get() : stack).run(first, last);
    });
  }};
}

}  // namespace espalier::ops
