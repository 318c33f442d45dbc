#include "espalier/base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "espalier/base/error.h"

namespace espalier {

Pages::Pages(int64_t bytes) : size_(bytes) {
  ESPALIER_ASSERT(bytes >= 0);
  if (bytes == 0) return;
  // 2 MiB more than asked for, so that an aligned start fits wherever the system puts the mapping; what is not touched costs nothing.
  mapped_ = static_cast<size_t>(bytes) + static_cast<size_t>(kHugePage);
  mapping_ = mapped_ < static_cast<size_t>(bytes) ? MAP_FAILED
                                                  : mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  auto address = reinterpret_cast<uintptr_t>(mapping_);
  auto aligned = (address + static_cast<uintptr_t>(kHugePage) - 1) / static_cast<uintptr_t>(kHugePage) * static_cast<uintptr_t>(kHugePage);
  data_ = static_cast<std::byte*>(mapping_) + (aligned - address);
  if (bytes >= kHugePage) madvise(data_, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // advice: a system without huge pages is only slower
}

Pages::~Pages() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

void Pages::release(int64_t offset, int64_t bytes) {
  static const int64_t page = sysconf(_SC_PAGESIZE);
  int64_t first = (offset + page - 1) / page * page, last = (offset + bytes) / page * page;
  if (first < last) madvise(data_ + first, static_cast<size_t>(last - first), MADV_DONTNEED);
}

}  // namespace espalier
