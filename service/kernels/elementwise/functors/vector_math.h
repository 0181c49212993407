// Prototypes that declare glibc's vector versions (libmvec), so that plain loops over these calls vectorise: those that
// float_functors.h calls. They are within 4 units in the last place and treat special values as the scalar functions
// do; tests/unit checks it.
#pragma once

#include <cmath>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__)
#if __GLIBC_PREREQ(2, 35)
extern "C" {
__attribute__((simd("notinbranch"))) float expm1f(float) noexcept;
__attribute__((simd("notinbranch"))) float log1pf(float) noexcept;
__attribute__((simd("notinbranch"))) float erfcf(float) noexcept;
__attribute__((simd("notinbranch"))) float sinhf(float) noexcept;
__attribute__((simd("notinbranch"))) float coshf(float) noexcept;
__attribute__((simd("notinbranch"))) float asinhf(float) noexcept;
__attribute__((simd("notinbranch"))) float acoshf(float) noexcept;
__attribute__((simd("notinbranch"))) float atanhf(float) noexcept;
__attribute__((simd("notinbranch"))) double exp(double) noexcept;
__attribute__((simd("notinbranch"))) double expm1(double) noexcept;
__attribute__((simd("notinbranch"))) double log(double) noexcept;
__attribute__((simd("notinbranch"))) double log1p(double) noexcept;
__attribute__((simd("notinbranch"))) double cbrt(double) noexcept;
__attribute__((simd("notinbranch"))) double sin(double) noexcept;
__attribute__((simd("notinbranch"))) double cos(double) noexcept;
__attribute__((simd("notinbranch"))) double tan(double) noexcept;
__attribute__((simd("notinbranch"))) double tanh(double) noexcept;
__attribute__((simd("notinbranch"))) double erf(double) noexcept;
__attribute__((simd("notinbranch"))) double erfc(double) noexcept;
__attribute__((simd("notinbranch"))) double asin(double) noexcept;
__attribute__((simd("notinbranch"))) double acos(double) noexcept;
__attribute__((simd("notinbranch"))) double atan(double) noexcept;
__attribute__((simd("notinbranch"))) double sinh(double) noexcept;
__attribute__((simd("notinbranch"))) double cosh(double) noexcept;
__attribute__((simd("notinbranch"))) double asinh(double) noexcept;
__attribute__((simd("notinbranch"))) double acosh(double) noexcept;
__attribute__((simd("notinbranch"))) double atanh(double) noexcept;
__attribute__((simd("notinbranch"))) double pow(double, double) noexcept;
__attribute__((simd("notinbranch"))) double atan2(double, double) noexcept;
}
#endif
#endif
