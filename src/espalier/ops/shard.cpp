#include "espalier/ops/collectives.h"

namespace espalier::ops::shard {

extern const OpDef def{
    .name = "shard",
    .doc = "keeps the part of a local tensor that belongs to this device; nothing is received",
    .rule = identity_rule,
    .any_dtype = true,
    .collective = true,
    .keeps_part = true,
};

}  // namespace espalier::ops::shard
