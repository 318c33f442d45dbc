#pragma once
// How much memory this machine has for us.
#include <cstdint>

namespace espalier {

// Bytes of main memory that this process may use: the machine's, or its control group's limit where that is lower.
int64_t machine_memory();

}  // namespace espalier
