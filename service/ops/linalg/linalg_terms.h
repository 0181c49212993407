// Matrices in derivatives: products, triangles, triangular systems, and the cotangents that ops of StableHLO and calls
// of LAPACK have in common. Private to linalg.
#pragma once

#include "service/ops/linalg/dot.h"
#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {

/// The attribute dot_dimension_numbers.
ir::Attribute dot_numbers(const DotDims& dims);
/// A dot_general; the type of the result is that of `lhs`. `precision` may be null.
Term product(Term lhs, Term rhs, const DotDims& dims, const ir::Attribute* precision);
/// Products of batches of matrices, and matrices with their last two dimensions exchanged.
Term matmul(Term a, Term b);
Term transposed(Term matrix);
/// Conjugated where the elements are complex; and transposed.
Term conjugated(Term value);
Term adjoint(Term matrix);
/// Where the index of the last dimension is k, a scalar of i32: booleans in the shape of `like`.
Term is_at(Term like, Term k);
/// One triangle of matrices, with the diagonal times `diagonal`, and zeros elsewhere.
Term triangle(Term value, bool lower, double diagonal);

/// How a triangular system is meant: op(a) x = b, or x op(a) = b.
struct TriangularSolve {
  bool left = true;
  bool lower = true;
  bool unit_diagonal = false;
  bool transposed = false;
  bool conjugated = false;  ///< op(a) has conjugated elements; of solve never
};
Term solve(Term a, Term b, const TriangularSolve& how);

/// Of a matrix whose factor is given, with zeros in its other triangle: of L from L L^H, or of U from U^H U.
Term cholesky_cotangent(Term factor, Term ct, bool lower);
/// Of operands 0, the triangular matrix, and 1.
Contributions triangular_solve_cotangents(const Vjp& v, const TriangularSolve& how);

}  // namespace meshd::ops
