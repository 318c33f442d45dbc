#pragma once
// Numbers below the smallest normal float: most processors compute with them many times slower than with others.
#include <cstdint>

namespace espalier {

// While it lives, the calling thread reads them as zero and makes zero instead of them. Where the processor has no such mode it does
// nothing.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  uint32_t before_ = 0;
};

}  // namespace espalier
