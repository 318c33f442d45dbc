#pragma once
// Everything about one op, stated once, in one file: ops/NAME.cpp defines `const OpDef def` in namespace espalier::ops::NAME, and the build
// writes the table `all_ops()` from the list of files. Passes know letters and flags only, never an op's name.
#include <string>
#include <vector>

#include "espalier/ir/attrs.h"
#include "espalier/ir/factor_rule.h"
#include "espalier/ir/kernel.h"
#include "espalier/ir/types.h"

namespace espalier {

class Builder;
struct Op;
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

// In which operands an op is linear, so that a pending sum may pass through it. Adding a constant is not linear.
enum class Linearity : uint8_t {
  kNone,   // pending sums are resolved first
  kEach,   // linear in each of `linear_operands` alone, the others held fixed: products
  kJoint,  // linear in all operands together, all pending over the same axes: sums, views
};

// Operand types and attributes: all that a rule or a result type may depend on.
struct OpSignature {
  const Attrs& attrs;
  const std::vector<TensorType>& operands;
  std::string where;  // for errors: the layer or op
  std::vector<Dims> shapes() const;
};

// What an op accepts as attributes. Checked when an op is appended, so that rules, gradients and kernels find what they ask for.
enum class AttrKind : uint8_t { kInteger, kNumber, kText, kIntegers, kGraph };  // kNumber takes an integer too
struct AttrSpec {
  std::string name;
  AttrKind kind;
};

// One sample for the shared op test: shapes of the operands, attributes, and how operand values are drawn.
struct OpSample {
  std::vector<Dims> operands;
  Attrs attrs = {};
  double low = -1, high = 1;                // f32 operands are uniform in [low, high)
  std::vector<int64_t> integer_limit = {};  // i32 operand i is uniform in [0, integer_limit[i]); one entry an operand when any is i32
  // Sets operands that follow from others (a log-sum-exp of x) once all are drawn; row-major buffers of the shapes above.
  void (*prepare)(const OpSample&, const std::vector<void*>& operands) = nullptr;
};

// One tile of an elementwise op: n elements, each operand either a tile or one value repeated by the caller. An output may be an input's
// very buffer: all inputs of an element are read before its outputs are written.
using TileFunction = void (*)(const Attrs& attrs, const float* const* in, float* const* out, int n);

struct OpDef {
  std::string name, doc;

  // The factor rule: fixed text, or a function where it depends on attributes or ranks. Exactly one is set, unless `elementwise`.
  std::string factors = "";
  FactorRule (*rule)(const OpSignature&) = nullptr;
  Reduction reduction = Reduction::kSum;  // of factors in no result, for fixed text

  Linearity linearity = Linearity::kNone;
  std::vector<int> linear_operands = {};  // for kEach; empty means all

  // dtype of each operand; empty means all f32. Results are f32 unless `result_dtype` says otherwise.
  std::vector<DType> operand_dtypes = {};
  DType result_dtype = DType::kF32;
  int result_count = 1;
  int operand_count = 1;  // -1: any number, at least one
  // Moves elements without looking at them: operands share one dtype, whichever, and the results have it.
  bool any_dtype = false;
  std::vector<AttrSpec> attributes = {};           // all required
  std::vector<AttrSpec> optional_attributes = {};  // may be left out; no other is taken

  // Elementwise ops state only their tile function; rule (numpy broadcast), kernel and fusion follow. With no operands: one value.
  TileFunction tile = nullptr;

  // Gradient of each operand given those of the results (kNoValue where a result has none); kNoValue for an operand without one.
  // Null: not differentiable, which is an error when a gradient is asked of it.
  std::vector<ValueId> (*grad)(Builder&, const Op&, const std::vector<ValueId>& dresults) = nullptr;
  std::vector<int> no_grad_operands = {};  // operands that never have a gradient: labels, seeds

  // Floating-point operations for one call on these shapes; null: one an element of the largest tensor.
  double (*flops)(const OpSignature&) = nullptr;

  // The CPU kernel; null for elementwise ops, views and collectives.
  Kernel (*cpu)(const LocalOp&) = nullptr;

  bool view = false;        // the result is the operand's bytes under another shape
  bool repeats = false;     // the result is the operand, repeated along the dims that it lacks or has with size 1
  bool collective = false;  // moves data between devices; run by the communicator
  bool keeps_part = false;  // of collectives: the result is this device's part of the operand, which nobody else has to send
  bool random = false;      // a function of attributes and position only; exempt from the gradient check
  // The op that is this one followed by an elementwise body on its result ("" when there is none): what fusion turns it into.
  std::string with_epilogue = "";
  // Of so many leading operands result i is the next state of operand i, whose buffer it may take over. What decays from step to step ends
  // as zero: such kernels flush subnormal numbers.
  int updates = 0;
  // The op that is this one and the maker of operand `absorbed_operand`, when that is an `absorbed_op`, together: `absorbing` has this op's
  // operands with the maker's in the place of that one, and the attributes of both. For operands that are large and needed for nothing
  // else.
  int absorbed_operand = -1;
  std::string absorbed_op = "", absorbing = "";
  std::vector<int> in_place = {};  // operands whose buffer result 0 may take over when the shapes agree
  bool elementwise_body = false;   // runs "body" over all operands, element by element, all operands of an element read before its results
                                  // are written: as with `elementwise`, every result may take over the buffer of every operand of its shape

  std::vector<OpSample> samples = {};
  std::vector<OpSample> (*more_samples)() = nullptr;  // those that need the table of ops, which is not there before main: with bodies

  bool elementwise() const { return tile != nullptr; }
};

const std::vector<const OpDef*>& all_ops();  // written by the build from the files of ops/
const OpDef* find_op(const std::string& name);

// Errors, naming `where`: an attribute that is missing, of another kind, or that the op does not take (with the nearest it does).
void check_attrs(const OpDef& def, const Attrs& attrs, const std::string& where);
FactorRule rule_of(const OpDef& def, const OpSignature& signature);
std::vector<TensorType> result_types(const OpDef& def, const OpSignature& signature);

}  // namespace espalier
