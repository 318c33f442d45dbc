#include "espalier/ops/collectives.h"

namespace espalier::ops {

extern const OpDef all_to_all{
    .name = "all_to_all",
    .doc = "moves a cut from one dim to another",
    .rule = identity_rule,
    .any_dtype = true,
    .collective = true,
};

}  // namespace espalier::ops
