#pragma once
// The memory of all devices in this process: one arena each, cut out of one region of huge pages, so that 1,024 small arenas are as cheap
// to touch as one large one. Reused from run to run and never returned.
#include <cstdint>
#include <vector>

#include "espalier/base/pages.h"

namespace espalier {

class Arenas {
 public:
  explicit Arenas(int64_t devices) : offset_(static_cast<size_t>(devices)), bytes_(static_cast<size_t>(devices)) {}

  // Makes each arena at least as large as its entry of `bytes` and keeps the first keep[device] bytes of what it held; the rest is lost and
  // all pointers change. New memory is zero. Error(kMemory) when the system has no more: then nothing has changed.
  void grow(const std::vector<int64_t>& bytes, const std::vector<int64_t>& keep);

  // 64-byte aligned.
  std::byte* data(int64_t device) const { return pages_.data() + offset_[static_cast<size_t>(device)]; }
  int64_t bytes(int64_t device) const { return bytes_[static_cast<size_t>(device)]; }

 private:
  Pages pages_;
  std::vector<int64_t> offset_, bytes_;
};

}  // namespace espalier
