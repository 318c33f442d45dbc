#include "espalier/distribution/default_distribution.h"

#include <mutex>

namespace espalier {
namespace {

struct Default {
  std::mutex mutex;
  std::optional<Distribution> distribution;
};

Default& the_default() {
  static Default value;
  return value;
}

}  // namespace

void set_distribution(std::optional<Distribution> distribution) {
  std::lock_guard lock(the_default().mutex);
  the_default().distribution = std::move(distribution);
}

std::optional<Distribution> distribution() {
  std::lock_guard lock(the_default().mutex);
  return the_default().distribution;
}

}  // namespace espalier
