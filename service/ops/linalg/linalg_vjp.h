// Reverse-mode derivatives of products, convolutions, FFTs and factorisations. Private to linalg.
#pragma once

#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {

Contributions vjp_dot_general(const Vjp& v);
Contributions vjp_dot(const Vjp& v);
Contributions vjp_convolution(const Vjp& v);
Contributions vjp_fft(const Vjp& v);
/// Of real matrices. The operand is taken as it is, not as symmetric: JAX symmetrises it in the program's text.
Contributions vjp_cholesky(const Vjp& v);
/// Of real matrices, and of complex ones that are not taken as adjoint.
Contributions vjp_triangular_solve(const Vjp& v);

}  // namespace meshd::ops
