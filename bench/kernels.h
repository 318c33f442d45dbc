#pragma once
// Speed of the parts of a step that no library gives: fused elementwise bodies, optimizer updates, reductions, and collectives.
#include <string>
#include <vector>

namespace espalier::bench {

struct Speed {
  std::string name;
  int cores = 1;
  double gigabytes = 0;  // a second, 10^9 bytes
};

// Kernels at the sizes of the dense network (variables 4096 x 4096, activations 512 x 4096) on `cores` cores. Bytes are operands read and
// results written, once each: a kernel that runs at the bandwidth of `update` moves nothing twice.
std::vector<Speed> measure_kernels(int cores);

// Each collective over 2 and 8 devices driven by `cores` threads, of a variable's gradient (4096 x 4096) and of small activations
// (128 x 512). Bytes are those received by all devices together; each is read once and written once, so `copy` is twice as much.
std::vector<Speed> measure_collectives(int cores);

}  // namespace espalier::bench
