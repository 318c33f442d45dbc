#pragma once
// Memory straight from the system, for the few large buffers that live as long as the program: zeroed, 2 MiB aligned, in huge pages
// where it is large: what is read here and there then costs no walk through page tables. A fresh 4 KiB page costs 15 us here, the same
// memory in 2 MiB pages 60 times less (docs/design.md, the machine). Not for small or short-lived objects.
#include <cstddef>
#include <cstdint>

namespace espalier {

inline constexpr int64_t kHugePage = int64_t{2} << 20;

// A mapped region, owned; moves, never copies. An empty one has no memory.
class Pages {
 public:
  Pages() = default;
  // std::bad_alloc when the system refuses; nothing is touched, so resident memory grows only with use.
  explicit Pages(int64_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  // Gives the memory of whole pages inside [offset, offset + bytes) back; they read as zero afterwards.
  void release(int64_t offset, int64_t bytes);

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace espalier
