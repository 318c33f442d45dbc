#include "fuzz.h"

#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>

#include "espalier/base/error.h"

namespace {

// Of the processor, under sanitizers: the clock on the wall counts others' work too. A run takes a millisecond.
constexpr int kMostSeconds = 5;

std::atomic<int64_t> in_use = 0, most_in_use = 0;

void* allocate(size_t bytes) noexcept {
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) return nullptr;
  const int64_t now = in_use += static_cast<int64_t>(malloc_usable_size(memory));
  if (now > most_in_use) most_in_use = now;  // threads may race here by one allocation; fuzzers have one
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) in_use -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

void* allocate_or_throw(size_t bytes) {
  void* memory = allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }

namespace espalier::fuzz {

void check(size_t size, Allowance allowance, const std::function<void()>& read) {
  const int64_t before = in_use;
  const std::clock_t start = std::clock();
  most_in_use = before;
  try {
    read();
  } catch (const Error& error) {
    require(error.what()[0] != '\0', "an Error without a text");
  } catch (const std::exception& other) {
    fail(std::string("an exception that is no Error: ") + other.what());
  }
  if (std::clock() - start > kMostSeconds * CLOCKS_PER_SEC) fail("an input of " + std::to_string(size) + " bytes took too long");
  const int64_t most = most_in_use - before, allowed = allowance.bytes + allowance.times_size * static_cast<int64_t>(size);
  if (most > allowed)
    fail("an input of " + std::to_string(size) + " bytes took " + std::to_string(most) + " bytes of memory, allowed are " +
         std::to_string(allowed));
}

void require(bool holds, const std::string& what) {
  if (!holds) fail(what);
}

}  // namespace espalier::fuzz
