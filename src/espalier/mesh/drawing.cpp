#include "espalier/mesh/drawing.h"

#include <fmt/format.h>
namespace espalier {

std::string named_sharding(const TensorLayout& layout, const DeviceMesh& mesh) {
  return fmt::format("NamedSharding(mesh={}, spec={})", to_string(mesh), to_string(layout));
}

std::string named_sharding(const Sharding& sharding, const DeviceMesh& mesh) {
  return fmt::format("NamedSharding(mesh={}, spec={})", to_string(mesh), to_string(sharding, mesh));
}

}
