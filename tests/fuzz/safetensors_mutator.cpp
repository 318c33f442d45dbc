// Changes the header of a weights file as JSON and keeps the length before it right; every fourth turn changes any bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "json_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  constexpr size_t kLength = sizeof(uint64_t);
  uint64_t length = 0;
  if (size >= kLength) std::memcpy(&length, data, kLength);
  if (seed % 4 == 0 || size < kLength || length > size - kLength) return LLVMFuzzerMutate(data, size, most);
  const std::string numbers(reinterpret_cast<const char*>(data) + kLength + length, size - kLength - length);
  const std::string header =
      espalier::fuzz::mutate_json({reinterpret_cast<const char*>(data) + kLength, length}, seed, most - kLength - numbers.size());
  if (header.empty()) return LLVMFuzzerMutate(data, size, most);
  length = header.size();
  std::memcpy(data, &length, kLength);
  header.copy(reinterpret_cast<char*>(data) + kLength, length);
  numbers.copy(reinterpret_cast<char*>(data) + kLength + length, numbers.size());
  return kLength + length + numbers.size();
}
