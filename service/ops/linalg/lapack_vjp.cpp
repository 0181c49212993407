// Reverse-mode derivatives of LAPACK's calls: Cholesky, LU, symmetric eigenproblems, singular values and triangular
// systems of real matrices, by the formulas of Giles, "Collected matrix derivative results for forward and reverse mode
// algorithmic differentiation", and of JAX's rules.
#include <algorithm>

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

// The singular value decomposition with the first min(m, n) vectors: singular values, u, v transposed. A call for
// values alone is made once more with vectors.
struct SingularVectors {
  Term values, left, right;
};

SingularVectors singular_vectors(const Vjp& v, const LapackSpec& spec) {
  if (spec.mode == 'S' || (spec.mode == 'A' && spec.rows == spec.columns)) return {v.y(1), v.y(2), v.y(3)};
  if (spec.mode != 'N') {
    reject(v.view, "unsupported_op",
           "the derivative of all singular vectors of matrices that are not square is not supported");
  }
  ir::AttributeList attributes = v.op.attributes;
  for (ir::NamedAttribute& entry : attributes) {
    if (entry.name != "mhlo.backend_config") continue;
    for (ir::NamedAttribute& option : std::get<ir::DictAttr>(entry.value.value).entries) {
      if (option.name == "mode") option.value = ir::Attribute{ir::IntegerAttr{'S', "ui8"}};
    }
  }
  std::erase_if(attributes, [](const ir::NamedAttribute& entry) { return entry.name == "sdy.sharding_rule"; });
  std::vector<ir::Type> types(v.view.results.begin(), v.view.results.end());
  const int64_t count = std::min(spec.rows, spec.columns);
  const auto resize = [&](ir::Type& type, int64_t rows, int64_t columns) {
    type.tensor.dims[type.tensor.dims.size() - 2] = rows;
    type.tensor.dims.back() = columns;
  };
  resize(types.at(2), spec.rows, count);
  resize(types.at(3), count, spec.columns);
  const std::vector<ir::ValueId> made = v.writer.create(v.op.name, v.op.operands, types, std::move(attributes));
  return {v.value(made[1]), v.value(made[2]), v.value(made[3])};
}

// As Townsend, "Differentiating the singular value decomposition": with E_ij = s_j^2 - s_i^2 and skew(X) = X - X^T,
// U (skew(U^T GU) / E S + S skew(V^T GV) / E + diag(Gs)) V^T, and what leaves the spaces of the vectors.
Contributions vjp_gesdd(const Vjp& v, const LapackSpec& spec) {
  const SingularVectors svd = singular_vectors(v, spec);
  const int64_t rank = svd.left.rank();
  Dims square = svd.left.dims();
  square[static_cast<size_t>(rank) - 2] = square.back();
  const Term by_column = along(svd.values, square, rank - 1);
  const Term by_row = along(svd.values, square, rank - 2);
  const Term is_diagonal = compare(counted(v, square, rank - 2, tensor::DType::kInt32), "EQ",
                                   counted(v, square, rank - 1, tensor::DType::kInt32));
  const Term gaps = (by_column - by_row) * (by_column + by_row);
  const auto rotation = [&](Term vectors, Term ct) {
    const Term product = matmul(transposed(vectors), ct);
    return masked(compare(by_row, "NE", by_column),
                  (product - transposed(product)) / select(is_diagonal, gaps.number(1), gaps));
  };
  Term inner = masked(is_diagonal, along(v.ct(1), square, rank - 1));
  Term outside = v.x().number(0);
  if (v.cotangents[2] != ir::kNoValue) {
    const Term ct = v.ct(2);
    inner = inner + rotation(svd.left, ct) * by_column;
    if (spec.rows > spec.columns) {
      const Term leaving = ct - matmul(svd.left, matmul(transposed(svd.left), ct));
      outside = outside + matmul(leaving / along(svd.values, leaving.dims(), rank - 1), svd.right);
    }
  }
  if (v.cotangents[3] != ir::kNoValue) {
    const Term ct = v.ct(3);
    inner = inner + by_row * rotation(transposed(svd.right), transposed(ct));
    if (spec.columns > spec.rows) {
      const Term leaving = ct - matmul(matmul(ct, transposed(svd.right)), svd.right);
      outside = outside + matmul(svd.left, leaving / along(svd.values, leaving.dims(), rank - 2));
    }
  }
  return {matmul(matmul(svd.left, inner), svd.right) + outside};
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
    case LapackRoutine::kGesdd:
      expect_real(v);
      return vjp_gesdd(v, spec);
    default:
      reject(v.view, "unsupported_op",
             "the derivative of 'stablehlo.custom_call' of target '" + target_of(v.view) + "' is not supported");
  }
}

}  // namespace meshd::ops
