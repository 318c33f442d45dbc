#pragma once
// The JSON header of a safetensors file, read and written apart from its numbers.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "espalier/checkpoint/safetensors.h"

namespace espalier {

inline constexpr int64_t kMaxSafetensorsHeader = 100'000'000;  // the limit of the reference implementation

struct SafetensorsHeader {
  std::vector<TensorSpec> tensors;  // in the order of their bytes
  std::vector<int64_t> offsets;     // of each from the first byte behind the header
  std::map<std::string, std::string> metadata;
};

// Reads and checks a header whose numbers take `data_bytes` bytes. Errors (kWeights) name `path` and the tensor.
SafetensorsHeader parse_safetensors_header(const std::string& text, int64_t data_bytes, const std::string& path);

// The header's bytes, with the length in front and padded so that the numbers begin at a multiple of 8. Tensors lie in the given order.
// Errors: a name twice, reserved or not UTF-8 (kUsage).
std::string safetensors_header(const std::vector<TensorSpec>& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace espalier
