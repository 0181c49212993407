// Reverse-mode derivatives of the pointwise rows. Private to pointwise, decomposed and linalg.
#pragma once

#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {

// one operand
Contributions vjp_abs(const Vjp& v);
Contributions vjp_acos(const Vjp& v);
Contributions vjp_acosh(const Vjp& v);
Contributions vjp_asin(const Vjp& v);
Contributions vjp_asinh(const Vjp& v);
Contributions vjp_atan(const Vjp& v);
Contributions vjp_atanh(const Vjp& v);
Contributions vjp_cbrt(const Vjp& v);
Contributions vjp_conj(const Vjp& v);
Contributions vjp_convert(const Vjp& v);
Contributions vjp_cosh(const Vjp& v);
Contributions vjp_cosine(const Vjp& v);
Contributions vjp_digamma(const Vjp& v);
Contributions vjp_erf(const Vjp& v);
Contributions vjp_erf_inv(const Vjp& v);
Contributions vjp_erfc(const Vjp& v);
Contributions vjp_exponential(const Vjp& v);
Contributions vjp_exponential_minus_one(const Vjp& v);
Contributions vjp_imag(const Vjp& v);
Contributions vjp_lgamma(const Vjp& v);
Contributions vjp_log(const Vjp& v);
Contributions vjp_log_plus_one(const Vjp& v);
Contributions vjp_logistic(const Vjp& v);
Contributions vjp_negate(const Vjp& v);
Contributions vjp_real(const Vjp& v);
Contributions vjp_reduce_precision(const Vjp& v);
Contributions vjp_rsqrt(const Vjp& v);
Contributions vjp_sine(const Vjp& v);
Contributions vjp_sinh(const Vjp& v);
Contributions vjp_sqrt(const Vjp& v);
Contributions vjp_square(const Vjp& v);
Contributions vjp_tan(const Vjp& v);
Contributions vjp_tanh(const Vjp& v);

// two or three operands
Contributions vjp_add(const Vjp& v);
Contributions vjp_atan2(const Vjp& v);
Contributions vjp_clamp(const Vjp& v);
Contributions vjp_complex(const Vjp& v);
Contributions vjp_divide(const Vjp& v);
/// Of maximum and minimum: equal operands get half of the cotangent each.
Contributions vjp_extreme(const Vjp& v);
Contributions vjp_multiply(const Vjp& v);
/// Of the second operand: the order has no derivative.
Contributions vjp_polygamma(const Vjp& v);
Contributions vjp_power(const Vjp& v);
Contributions vjp_remainder(const Vjp& v);
Contributions vjp_select(const Vjp& v);
Contributions vjp_subtract(const Vjp& v);
/// Of the second operand: there is no formula for the first one's.
Contributions vjp_zeta(const Vjp& v);

}  // namespace meshd::ops
