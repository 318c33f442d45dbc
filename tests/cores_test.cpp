// Uses: base
// Which cores the process may use. Run again by ctest with OMP_PROC_BIND, as jobs on clusters have it.
#include "espalier/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

namespace espalier {
namespace {

// Nobody has bound the process that started this one.
TEST(AvailableCores, AreThoseOfTheProcess) {
  cpu_set_t mask;
  if (sched_getaffinity(getppid(), sizeof mask, &mask) != 0)
    GTEST_SKIP() << "the parent's mask cannot be read, or has more than 1,024 cores";
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  EXPECT_EQ(available_cores(), cores);
}

TEST(AvailableCores, OfAPinnedThreadIsOne) {
  const std::vector<int> before = available_cores();
  if (getenv("OMP_PROC_BIND") != nullptr) GTEST_SKIP() << "OpenMP's places are those of the process";
  {
    const PinnedThread pinned(before.back());
    EXPECT_EQ(available_cores(), std::vector<int>{before.back()});
  }
  EXPECT_EQ(available_cores(), before);
}

}  // namespace
}  // namespace espalier
