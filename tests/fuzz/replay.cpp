// Runs a fuzzer's entry once over each file named, without libFuzzer: any compiler can do that, so every build tests the seeds and the
// inputs that fuzzing has found. Ends by a signal at the first that does not pass.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz.h"

int main(int count, char** names) {
  if (count < 2) {
    std::fprintf(stderr, "usage: NAME_fuzz FILE...\n");
    return 2;
  }
  for (int i = 1; i < count; ++i) {
    std::ifstream file(names[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", names[i]);
      return 2;
    }
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::printf("%s: %zu bytes\n", names[i], text.size());
    std::fflush(stdout);  // the last line names the culprit
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
  std::printf("%d inputs pass\n", count - 1);
  return 0;
}
