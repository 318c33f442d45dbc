#pragma once
// Numbers and sizes as people read them.
#include <cstdint>
#include <string>

namespace espalier {

// "512 B", "3.2 KiB", "1.5 MiB", "4.0 GiB".
std::string format_bytes(int64_t bytes);

// Reads "4GiB", "500MB", "65536"; KB, MB, GB, TB are powers of 1000, KiB ... TiB of 1024. An Error naming `option` otherwise.
int64_t parse_bytes(const std::string& text, const std::string& option);

// "60,000".
std::string format_count(int64_t count);

// "1 step", "60,000 steps".
std::string counted(int64_t count, const std::string& noun);

}  // namespace espalier
