// Data parallelism: a batch of 128 on two devices is 64 and 64, and 5 samples on two devices are 3 and 2.
#include <cstdio>

#include "espalier/distribution/data_parallel.h"

using namespace espalier;

int main() {
  DataParallel distribution({"cpu:0", "cpu:1"});
  std::printf("%s\n", describe(distribution).c_str());
  for (int64_t batch : {128, 5}) {
    std::printf("a batch of %ld:", static_cast<long>(batch));
    for (int64_t samples : batch_per_device(distribution, batch)) std::printf(" %ld", static_cast<long>(samples));
    std::printf("\n");
  }
}
