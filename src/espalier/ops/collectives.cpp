#include "espalier/ops/collectives.h"

namespace espalier::ops {

FactorRule identity_rule(const OpSignature& signature) { return elementwise_rule({signature.operands[0].shape}, 1, signature.where); }

}  // namespace espalier::ops
