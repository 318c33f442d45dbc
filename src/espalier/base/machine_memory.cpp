#include "espalier/base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace espalier {

int64_t machine_memory() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream limit(path);
    if (int64_t value = 0; limit >> value && value > 0) bytes = std::min(bytes, value);  // "max" is not a number: no limit
  }
  return bytes;
}

}  // namespace espalier
