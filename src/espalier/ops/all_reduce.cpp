#include "espalier/ops/collectives.h"

namespace espalier::ops::all_reduce {

extern const OpDef def{
    .name = "all_reduce",
    .doc = "resolves a pending reduction; every device gets the whole",
    .rule = identity_rule,
    .any_dtype = true,
    .collective = true,
    .in_place = {0},  // each device reduces its own part of the buffer, which nobody else writes, before it fetches the others
};

}  // namespace espalier::ops::all_reduce
