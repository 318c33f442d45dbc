#include "espalier/base/subnormals.h"

#include <xmmintrin.h>

namespace espalier {
namespace {

constexpr uint32_t kResultsToZero = 1u << 15, kOperandsToZero = 1u << 6;  // of the control register MXCSR

}  // namespace

FlushSubnormals::FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kResultsToZero | kOperandsToZero); }
FlushSubnormals::~FlushSubnormals() { _mm_setcsr(before_); }

}  // namespace espalier
