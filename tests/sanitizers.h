#pragma once
// Whether this build, and with it the program, runs under the address sanitizer: slow, and large.
namespace espalier {

#if defined(__SANITIZE_ADDRESS__)  // gcc's way to say so
inline constexpr bool kSanitizesAddresses = true;
#elif defined(__has_feature)
inline constexpr bool kSanitizesAddresses = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitizesAddresses = false;
#endif

}  // namespace espalier
