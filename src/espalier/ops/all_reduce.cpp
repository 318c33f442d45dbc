#include "espalier/ops/collectives.h"

namespace espalier::ops {

extern const OpDef all_reduce{
    .name = "all_reduce",
    .doc = "resolves a pending reduction; every device gets the whole",
    .rule = identity_rule,
    .any_dtype = true,
    .collective = true,
};

}  // namespace espalier::ops
