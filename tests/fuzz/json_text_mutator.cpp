// For inputs that are JSON throughout: libFuzzer calls this instead of its own mutation of bytes, which still has every second turn.
#include <algorithm>
#include <cstdint>

#include "json_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (seed % 4 != 0) {
    const std::string text = espalier::fuzz::mutate_json({reinterpret_cast<const char*>(data), size}, seed, most);
    if (!text.empty()) return text.copy(reinterpret_cast<char*>(data), most);
  }
  return LLVMFuzzerMutate(data, size, most);
}
