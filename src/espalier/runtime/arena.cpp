#include "espalier/runtime/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "espalier/base/error.h"
#include "espalier/base/text.h"

namespace espalier {
namespace {

constexpr int64_t kPage = 4096;
// Arenas start at different cache sets: all devices have their buffers at equal offsets, and a reduction that reads the same offset in
// eight arenas would otherwise fight for one set. 5 lines: 64 devices until a start repeats.
constexpr int64_t kStagger = 5 * 64;

Pages allocate(int64_t bytes) {
  try {
    return Pages(bytes);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kMemory, fmt::format("the system has no {} of memory", format_bytes(bytes)), "device arenas",
                "use a smaller model or batch, or a layout that splits more");
  }
}

}  // namespace

void Arenas::grow(const std::vector<int64_t>& bytes, const std::vector<int64_t>& keep) {
  const size_t devices = offset_.size();
  ESPALIER_ASSERT(bytes.size() == devices && keep.size() == devices);
  std::vector<int64_t> offset(devices), size(devices);
  int64_t end = 0;
  bool fits = true;
  for (size_t d = 0; d < devices; ++d) {
    size[d] = std::max(bytes[d], bytes_[d]);
    fits = fits && size[d] == bytes_[d];
    const int64_t start = static_cast<int64_t>(d) * kStagger % kPage;
    offset[d] = (end - start + kPage - 1) / kPage * kPage + start;
    end = offset[d] + size[d];
  }
  if (fits) return;
  Pages pages = allocate(end);
  for (size_t d = 0; d < devices; ++d) {
    const int64_t kept = std::min(keep[d], bytes_[d]);
    if (kept > 0) std::memcpy(pages.data() + offset[d], pages_.data() + offset_[d], static_cast<size_t>(kept));
    if (bytes_[d] > 0) pages_.release(offset_[d], bytes_[d]);  // never two copies of everything
  }
  pages_ = std::move(pages);
  offset_ = std::move(offset);
  bytes_ = std::move(size);
}

}  // namespace espalier
