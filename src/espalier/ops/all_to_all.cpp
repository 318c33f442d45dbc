#include "espalier/ops/collectives.h"

namespace espalier::ops::all_to_all {

extern const OpDef def{
    .name = "all_to_all",
    .doc = "moves a cut from one dim to another",
    .rule = identity_rule,
    .any_dtype = true,
    .collective = true,
};

}  // namespace espalier::ops::all_to_all
