#pragma once
// What the fuzzers share. A fuzzer is one file NAME_fuzz.cpp that defines LLVMFuzzerTestOneInput, libFuzzer's entry: in the preset `dev`
// it is linked with libFuzzer, everywhere else with replay.cpp, which runs its seeds and what fuzzing has found before. Memory is counted
// by the program's own operator new (fuzz.cpp): what zlib takes by malloc (at most 50 KiB a stream) is not seen.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace espalier::fuzz {

// What an input may make the library hold at once: a constant for what every input needs, and a multiple of its own size.
struct Allowance {
  int64_t bytes = 0;
  int64_t times_size = 0;
};

// Runs `read` over an input of `size` bytes. An espalier::Error with a text is the only other legal end: every other exception, memory
// beyond the allowance, and more than 5 s of the processor end the program with a message.
void check(size_t size, Allowance allowance, const std::function<void()>& read);

// Ends the program when a property of the library does not hold for an input.
void require(bool holds, const std::string& what);

inline std::string text_of(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

}  // namespace espalier::fuzz
