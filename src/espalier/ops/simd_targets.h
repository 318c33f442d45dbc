#pragma once
// Which instruction sets the SIMD sources are compiled for; Highway picks one at run time. Left out are those that give float32 code
// nothing over the next lower one, since each costs compile time.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
