#pragma once
// `set_distribution` for those who come from Keras. It is a default argument and nothing else: what is compiled without an explicit
// distribution takes this one at that moment. It is the one global of the library, and may be set from any thread.
#include <optional>

#include "espalier/distribution/distribution.h"

namespace espalier {

// nullopt takes it back.
void set_distribution(std::optional<Distribution> distribution);
// What was set last; none: one device.
std::optional<Distribution> distribution();

}  // namespace espalier
