#pragma once
// What the ops that draw random tensors share: the rule of a result given by its shape, and drawing it block by block.
#include "espalier/ir/op_def.h"
#include "espalier/ops/parallel.h"
#include "espalier/ops/random_math.h"

namespace espalier::ops {

// No operands; the result has the attribute `shape`, every dim of which may be cut. Errors: a rank above kMaxRank, a negative size.
FactorRule shape_rule(const OpSignature& signature);

RandomKey random_key(const Attrs& attrs);  // from {seed, stream}

// convert(words, out, n) makes n values from n words.
template <class Convert>
Kernel random_kernel(const LocalOp& op, const Convert& convert) {
  return {.run = [tensor = op.results[0], key = random_key(*op.attrs), threads = op.threads, convert](const KernelCall& call) {
    const int64_t elements = tensor.shape.volume();
    parallel_for(threads, elements, 16 * elements, [&](int64_t begin, int64_t end) {  // 16: drawing against a simple op
      visit_global_runs(tensor, begin, end, [&](int64_t offset, uint64_t index, int n) {
        uint32_t words[kRandomBlock];
        random_words(key, index, n, words);
        convert(words, call.result<float>(0) + offset, n);
      });
    });
  }};
}

}  // namespace espalier::ops
