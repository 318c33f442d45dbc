#include "espalier/ops/collectives.h"

namespace espalier::ops::reduce_scatter {

extern const OpDef def{
    .name = "reduce_scatter",
    .doc = "resolves a pending reduction; every device gets its part",
    .rule = identity_rule,
    .any_dtype = true,
    .collective = true,
};

}  // namespace espalier::ops::reduce_scatter
