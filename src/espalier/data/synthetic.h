#pragma once
// Made-up samples of any number and shape, for speed, memory and smoke: computed when read, stored nowhere.
#include <cstdint>
#include <memory>
#include <vector>

#include "espalier/data/dataset.h"

namespace espalier {

// A value depends on seed, field, and the sample's number and element only, so any part of any sample can be read alone.
// kReal inputs: uniform on [-sqrt 3, sqrt 3), mean 0 and variance 1. kReal targets: normal, mean 0 and variance 1. kClass: uniform over
// the classes (2 when not given). kOneHot: a 1 at a uniform place of the last dim. kBinary: 0 or 1, equally likely.
// Errors (kUsage): fewer than 1 sample, no fields.
std::unique_ptr<Dataset> make_synthetic_dataset(std::vector<FieldSpec> fields, int64_t samples, uint64_t seed);

}  // namespace espalier
