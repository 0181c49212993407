// Reverse-mode derivatives of LAPACK's calls: Cholesky, LU, symmetric eigenproblems and triangular systems of real
// matrices, by the formulas of Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
// differentiation", and of JAX's rules.
#include "service/kernels/lapack/lapack.h"
#include "service/ops/checks.h"
#include "service/ops/linalg/lapack_calls.h"
#include "service/ops/linalg/linalg_terms.h"

namespace meshd::ops {
namespace {

using kernels::LapackRoutine;
using kernels::LapackSpec;
using tensor::Dims;

Term counted(const Vjp& v, const Dims& dims, int64_t along, tensor::DType dtype) {
  return v.value(
      v.writer.add("stablehlo.iota", {}, {{"iota_dimension", ir::integer_attr(along)}}, ir::Type::of({dtype, dims})));
}

// Values along dimension `dim` repeated over matrices of these dims; batch dimensions come first.
Term along(Term values, const Dims& dims, int64_t dim) {
  std::vector<int64_t> into;
  for (int64_t d = 0; d + 1 < values.rank(); ++d) into.push_back(d);
  into.push_back(dim);
  return {values.writer, values.writer->broadcast(values.id, dims, into)};
}

// The factor's own triangle; LAPACK leaves the matrix in the other one.
Contributions vjp_potrf(const Vjp& v, const LapackSpec& spec) {
  const bool lower = spec.uplo == 'L';
  return {cholesky_cotangent(triangle(v.y(), lower, 1), triangle(v.ct(), lower, 1), lower)};
}

// Row i of the factored matrix is row order[i] of the operand. Pivots say, from the first on, with which row, counted
// from 1, row i changes places.
Term order_of_rows(const Vjp& v, Term pivots) {
  const Dims dims = pivots.dims();
  const int64_t last = pivots.rank() - 1;
  const Term places = counted(v, dims, last, tensor::DType::kInt32);
  const ir::Type counter = ir::Type::of({tensor::DType::kInt32, {}});
  const std::vector<ir::Type> types = {counter, places.type()};
  const auto repeated = [&](ir::ValueId scalar) { return v.value(v.writer.broadcast(scalar, dims, {})); };
  // The entry of each line at which `where` holds.
  const auto picked = [&](Term where, Term from) {
    const Term one = summed_over(masked(where, from), {last});
    std::vector<int64_t> into;
    for (int64_t d = 0; d < last; ++d) into.push_back(d);
    return v.value(v.writer.broadcast(one.id, dims, into));
  };
  std::vector<ir::Region> regions;
  regions.push_back(v.writer.region(types, [&](const auto& arguments) {
    const Term iteration = v.value(arguments[0]);
    v.writer.create("stablehlo.return",
                    {compare(iteration, "LT", iteration.number(static_cast<double>(dims.back()))).id}, {});
  }));
  regions.push_back(v.writer.region(types, [&](const auto& arguments) {
    const Term iteration = v.value(arguments[0]);
    const Term order = v.value(arguments[1]);
    const Term here = compare(places, "EQ", repeated(iteration.id));
    const Term there = compare(places, "EQ", picked(here, pivots) - 1.0);
    const Term mine = picked(here, order);
    const Term other = picked(there, order);
    const Term next = select(here, other, select(there, mine, order));
    v.writer.create("stablehlo.return", {(iteration + 1.0).id, next.id}, {});
  }));
  const ir::ValueId zero = v.writer.splat(counter, 0);
  return v.value(v.writer.create("stablehlo.while", {zero, places.id}, types, {}, std::move(regions)).at(1));
}

Contributions vjp_getrf(const Vjp& v, const LapackSpec& spec) {
  if (spec.rows != spec.columns) {
    reject(v.view, "unsupported_op", "the derivative of LU factors of matrices that are not square is not supported");
  }
  const Term strict = triangle(v.y(), true, 0);
  const Dims dims = strict.dims();
  const int64_t rank = strict.rank();
  const Term row = counted(v, dims, rank - 2, tensor::DType::kInt32);
  const Term column = counted(v, dims, rank - 1, tensor::DType::kInt32);
  const Term lower = select(compare(row, "EQ", column), strict.number(1), strict);
  const Term upper = triangle(v.y(), false, 1);
  const Term inner = triangle(matmul(transposed(lower), triangle(v.ct(), true, 0)), true, 0) +
                     triangle(matmul(triangle(v.ct(), false, 1), transposed(upper)), false, 1);
  const Term half = solve(lower, inner, {.left = true, .lower = true, .unit_diagonal = true, .transposed = true});
  const Term permuted = solve(upper, half, {.left = false, .lower = false, .transposed = true});
  // As a matrix of zeros and ones, whose transpose puts the rows back.
  const Term is_place = compare(along(order_of_rows(v, v.y(1)), dims, rank - 2), "EQ", column);
  const Term permutation = select(is_place, strict.number(1), strict.number(0));
  return {matmul(transposed(permutation), permuted)};
}

Contributions vjp_syevd(const Vjp& v) {
  const Term vectors = v.y(0);
  const Dims dims = vectors.dims();
  const int64_t rank = vectors.rank();
  const Term is_diagonal = compare(counted(v, dims, rank - 2, tensor::DType::kInt32), "EQ",
                                   counted(v, dims, rank - 1, tensor::DType::kInt32));
  Term inner = masked(is_diagonal, along(v.ct(1), dims, rank - 1));
  if (v.cotangents[0] != ir::kNoValue) {
    const Term gaps = along(v.y(1), dims, rank - 1) - along(v.y(1), dims, rank - 2);
    const Term by_gap = matmul(transposed(vectors), v.ct(0)) / select(is_diagonal, gaps.number(1), gaps);
    inner = inner + select(is_diagonal, gaps.number(0), by_gap);
  }
  return {matmul(matmul(vectors, inner), transposed(vectors))};
}

}  // namespace

Contributions vjp_lapack_call(const Vjp& v) {
  const LapackSpec spec = lapack_spec(v.view);
  if (spec.routine == LapackRoutine::kTrsm) {
    if (spec.transpose == 'C') expect_real(v);
    return triangular_solve_cotangents(
        v, {spec.side == 'L', spec.uplo == 'L', spec.diagonal == 'U', spec.transpose != 'N'});
  }
  switch (spec.routine) {
    case LapackRoutine::kPotrf:
      expect_real(v);
      return vjp_potrf(v, spec);
    case LapackRoutine::kGetrf:
      expect_real(v);
      return vjp_getrf(v, spec);
    case LapackRoutine::kSyevd:
      expect_real(v);
      return vjp_syevd(v);
    default:
      reject(v.view, "unsupported_op",
             "the derivative of 'stablehlo.custom_call' of target '" + target_of(v.view) + "' is not supported");
  }
}

}  // namespace meshd::ops
