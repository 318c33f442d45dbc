#include "espalier/ops/collectives.h"

namespace espalier::ops::all_gather {

extern const OpDef def{
    .name = "all_gather",
    .doc = "puts the parts of dims together",
    .rule = identity_rule,
    .any_dtype = true,
    .collective = true,
};

}  // namespace espalier::ops::all_gather
