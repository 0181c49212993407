// Special functions of one double that the C library lacks or does not make thread safe. Pure; any thread.
#pragma once

namespace meshd::kernels {

/// x with erf(x) = y; infinite at -1 and 1, NaN beyond.
double erf_inv(double y);
/// log |gamma(x)|; infinite at zero and the negative integers.
double log_gamma(double x);
/// Derivative of log gamma; NaN at zero and the negative integers.
double digamma(double x);
/// Hurwitz zeta: sum of (q + k)^-x over k >= 0; NaN for x < 1.
double zeta(double x, double q);
/// n-th derivative of digamma; NaN unless n is a non-negative integer.
double polygamma(double n, double x);

}  // namespace meshd::kernels
