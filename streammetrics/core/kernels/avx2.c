/* The kernels for x86-64 processors with AVX2 and FMA; empty on other targets and compilers. */
#include "kernels.h"

#ifdef HAVE_AVX2
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi2"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi2")
#endif
#define HAVE_FMA 1
#define KERNELS kernels_avx2
#include "bodies.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int streammetrics_no_avx2; /* ISO C requires a declaration in every file */
#endif
