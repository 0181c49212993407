// Reverse-mode derivatives of LAPACK's calls: Cholesky, LU, eigenvalues, symmetric eigenproblems, singular values,
// triangular and tridiagonal systems, by the formulas of Giles, "Collected matrix derivative results for forward and
// reverse mode algorithmic differentiation", and of JAX's rules.
#include <algorithm>

#include "service/kernels/lapack/lapack.h"
#include "service/ops/checks.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/linalg/lapack_calls.h"
#include "service/ops/linalg/linalg_terms.h"

namespace meshd::ops {
namespace {

using kernels::LapackRoutine;
using kernels::LapackSpec;
using tensor::Dims;

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

// Elements of one dimension, from `start` to before `limit`.
Term part_of(Term value, int64_t dim, int64_t start, int64_t limit) {
  const Dims dims = value.dims();
  std::vector<int64_t> starts(dims.size(), 0), limits(dims.begin(), dims.end());
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  return sliced(value, starts, limits);
}

// Matrices of `size` rows and columns: the first of `value`, and zeros.
Term squared(Term value, int64_t size) {
  std::vector<int64_t> none(value.dims().size(), 0);
  std::vector<int64_t> high = none;
  for (int64_t dim = value.rank() - 2; dim < value.rank(); ++dim) {
    const int64_t now = value.dims()[static_cast<size_t>(dim)];
    if (now > size) value = part_of(value, dim, 0, size);
    high[static_cast<size_t>(dim)] = std::max<int64_t>(0, size - now);
  }
  return padded(value, none, high, none);
}

// Row i of the factored matrix is row order[i] of the operand. Pivots say, from the first on, with which row, counted
// from 1, row i changes places.
Term order_of_rows(Term pivots, int64_t row_count) {
  Writer& writer = *pivots.writer;
  const int64_t last = pivots.rank() - 1;
  const int64_t pivot_count = pivots.dims().back();
  Dims dims = pivots.dims();
  dims.back() = row_count;
  const Term rows = indices_along(writer, dims, last);
  // The entry of each line at which `where` holds.
  const auto picked = [&](Term where, Term from) {
    const Term one = summed_over(masked(where, from), {last});
    std::vector<int64_t> into;
    for (int64_t d = 0; d < last; ++d) into.push_back(d);
    return Term{&writer, writer.broadcast(one.id, dims, into)};
  };
  return counted_loop(writer, pivot_count, {rows}, [&](Term k, const std::vector<Term>& now) -> std::vector<Term> {
    const Term order = now[0];
    const Term here = is_at(order, k);
    const Term there = compare(rows, "EQ", picked(is_at(pivots, k), pivots) - 1.0);
    return {select(here, picked(there, order), select(there, picked(here, order), order))};
  })[0];
}

// Factors of a matrix that is not square are made square by rows and columns of the unit matrix.
Contributions vjp_getrf(const Vjp& v, const LapackSpec& spec) {
  const int64_t rank = v.y().rank();
  const auto is_diagonal = [&](const Dims& dims, int64_t from) {
    const Term row = indices_along(v.writer, dims, rank - 2);
    const Term on = compare(row, "EQ", indices_along(v.writer, dims, rank - 1));
    return from == 0 ? on : apply("stablehlo.and", on, compare(row, "GE", row.number(static_cast<double>(from))));
  };
  const auto with_ones = [&](Term square, int64_t from) {
    return select(is_diagonal(square.dims(), from), square.number(1), square);
  };
  const Term lower = with_ones(squared(triangle(v.y(), true, 0), spec.rows), 0);
  const Term whole_upper = squared(triangle(v.y(), false, 1), spec.columns);
  const Term upper = spec.rows < spec.columns ? with_ones(whole_upper, spec.rows) : whole_upper;
  const Dims& dims = lower.dims();
  const Term inner = triangle(matmul(transposed(lower), triangle(v.ct(), true, 0)), true, 0) +
                     triangle(matmul(triangle(v.ct(), false, 1), transposed(upper)), false, 1);
  const Term half = solve(lower, inner, {.left = true, .lower = true, .unit_diagonal = true, .transposed = true});
  const Term permuted = solve(upper, half, {.left = false, .lower = false, .transposed = true});
  // As a matrix of zeros and ones, whose transpose puts the rows back.
  const Term column = indices_along(v.writer, dims, rank - 1);
  const Term is_place = compare(along(order_of_rows(v.y(1), spec.rows), dims, rank - 2), "EQ", column);
  const Term permutation = select(is_place, lower.number(1), lower.number(0));
  return {matmul(transposed(permutation), permuted)};
}

Contributions vjp_syevd(const Vjp& v) {
  const Term vectors = v.y(0);
  const Dims dims = vectors.dims();
  const int64_t rank = vectors.rank();
  const Term is_diagonal =
      compare(indices_along(v.writer, dims, rank - 2), "EQ", indices_along(v.writer, dims, rank - 1));
  Term inner = masked(is_diagonal, converted(along(v.ct(1), dims, rank - 1), vectors.dtype()));
  if (v.cotangents[0] != ir::kNoValue) {
    const Term gaps = converted(along(v.y(1), dims, rank - 1) - along(v.y(1), dims, rank - 2), vectors.dtype());
    const Term by_gap = matmul(transposed(vectors), v.ct(0)) / select(is_diagonal, gaps.number(1), gaps);
    inner = inner + select(is_diagonal, gaps.number(0), by_gap);
  }
  return {matmul(matmul(conjugated(vectors), inner), transposed(vectors))};
}

// The attributes of the call with `letter` for the options of these names.
ir::AttributeList with_options(const Vjp& v, char letter, std::initializer_list<std::string_view> names) {
  ir::AttributeList attributes = v.op.attributes;
  for (ir::NamedAttribute& entry : attributes) {
    if (entry.name != "mhlo.backend_config") continue;
    for (ir::NamedAttribute& option : std::get<ir::DictAttr>(entry.value.value).entries) {
      if (std::find(names.begin(), names.end(), option.name) != names.end())
        option.value = ir::Attribute{ir::IntegerAttr{letter, "ui8"}};
    }
  }
  std::erase_if(attributes, [](const ir::NamedAttribute& entry) { return entry.name == "sdy.sharding_rule"; });
  return attributes;
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
  std::vector<ir::Type> types(v.view.results.begin(), v.view.results.end());
  const int64_t count = std::min(spec.rows, spec.columns);
  const auto resize = [&](ir::Type& type, int64_t rows, int64_t columns) {
    type.tensor.dims[type.tensor.dims.size() - 2] = rows;
    type.tensor.dims.back() = columns;
  };
  resize(types.at(2), spec.rows, count);
  resize(types.at(3), count, spec.columns);
  const std::vector<ir::ValueId> made =
      v.writer.create(v.op.name, v.op.operands, types, with_options(v, 'S', {"mode"}));
  return {v.value(made[1]), v.value(made[2]), v.value(made[3])};
}

// As Townsend, "Differentiating the singular value decomposition": with E_ij = s_j^2 - s_i^2 and skew(X) = X - X^T,
// U (skew(U^T GU) / E S + S skew(V^T GV) / E + diag(Gs)) V^T, and what leaves the spaces of the vectors. Of complex
// matrices as JAX: with skew(X) = X - X^H, conjugated U and V in front and behind, and the phases of the vectors.
Contributions vjp_gesdd(const Vjp& v, const LapackSpec& spec) {
  const SingularVectors svd = singular_vectors(v, spec);
  const int64_t rank = svd.left.rank();
  Dims square = svd.left.dims();
  square[static_cast<size_t>(rank) - 2] = square.back();
  const tensor::DType dtype = svd.left.dtype();
  const Term values = converted(svd.values, dtype);
  const Term by_column = along(values, square, rank - 1);
  const Term by_row = along(values, square, rank - 2);
  const Term is_diagonal =
      compare(indices_along(v.writer, square, rank - 2), "EQ", indices_along(v.writer, square, rank - 1));
  const Term gaps = (by_column - by_row) * (by_column + by_row);
  const auto skew = [&](Term vectors, Term ct) {
    const Term product = matmul(transposed(vectors), ct);
    return product - adjoint(product);
  };
  const auto by_gap = [&](Term skewed) {
    return masked(compare(by_row, "NE", by_column), skewed / select(is_diagonal, gaps.number(1), gaps));
  };
  Term inner = masked(is_diagonal, along(converted(v.ct(1), dtype), square, rank - 1));
  Term outside = v.x().number(0);
  if (v.cotangents[2] != ir::kNoValue) {
    const Term ct = v.ct(2);
    const Term skewed = skew(svd.left, ct);
    inner = inner + by_gap(skewed) * by_column;
    if (tensor::is_complex(dtype)) inner = inner + masked(is_diagonal, 0.5 * (skewed / by_column));
    if (spec.rows > spec.columns) {
      const Term leaving = ct - matmul(conjugated(svd.left), matmul(transposed(svd.left), ct));
      outside = outside + matmul(leaving / along(values, leaving.dims(), rank - 1), conjugated(svd.right));
    }
  }
  if (v.cotangents[3] != ir::kNoValue) {
    const Term ct = v.ct(3);
    inner = inner + by_row * by_gap(skew(adjoint(svd.right), adjoint(ct)));
    if (spec.columns > spec.rows) {
      const Term leaving = ct - matmul(matmul(ct, transposed(svd.right)), conjugated(svd.right));
      outside = outside + matmul(conjugated(svd.left), leaving / along(values, leaving.dims(), rank - 2));
    }
  }
  return {matmul(matmul(conjugated(svd.left), inner), conjugated(svd.right)) + outside};
}

// Of eigenvalues alone: with left and right vectors u and v, d lambda = u^H dA v / u^H v.
Contributions vjp_geev(const Vjp& v) {
  const bool is_complex = tensor::is_complex(v.x().dtype());
  const size_t left = is_complex ? 1 : 2;
  if (v.cotangents[left] != ir::kNoValue || v.cotangents[left + 1] != ir::kNoValue) {
    reject(v.view, "unsupported_op",
           "the derivative of eigenvectors of matrices that are not symmetric is not supported");
  }
  const std::vector<ir::ValueId> made =
      v.writer.create(v.op.name, v.op.operands, {v.view.results.begin(), v.view.results.end()},
                      with_options(v, 'V', {"compute_left", "compute_right"}));
  const Term u = conjugated(v.value(made[left]));
  const Term right = v.value(made[left + 1]);
  const int64_t rank = right.rank();
  const Term values = is_complex ? v.ct(0) : apply("stablehlo.complex", v.ct(0), -v.ct(1));
  const Term shares = along(values / summed_over(u * right, {rank - 2}), right.dims(), rank - 1);
  const Term whole = matmul(u * shares, transposed(right));
  return {is_complex ? whole : whole.apply("stablehlo.real")};
}

// The transposed system, whose lower diagonal is the upper one a row further down, and the other way round.
Contributions vjp_gtsv(const Vjp& v) {
  const Term x = v.y(3);
  const int64_t rows = x.rank() - 2;
  // Rows of their neighbours: with `by` of 1, row i has what row i - 1 had, and the first one zeros.
  const auto moved = [&](Term value, int64_t by) {
    std::vector<int64_t> low(value.dims().size(), 0), high = low, none = low;
    low[static_cast<size_t>(rows)] = by;
    high[static_cast<size_t>(rows)] = -by;
    return padded(value, low, high, none);
  };
  const std::vector<ir::ValueId> solved =
      v.writer.create(v.op.name, {moved(v.x(2), 1).id, v.x(1).id, moved(v.x(0), -1).id, v.ct(3).id},
                      std::vector<ir::Type>(v.view.results.begin(), v.view.results.end()), v.op.attributes);
  const Term b = v.value(solved.at(3));
  const auto diagonal = [&](Term of) { return -summed_over(b * of, {rows + 1}); };
  return {diagonal(moved(x, 1)), diagonal(x), diagonal(moved(x, -1)), b};
}

}  // namespace

Contributions vjp_lapack_call(const Vjp& v) {
  const LapackSpec spec = lapack_spec(v.view);
  if (spec.routine == LapackRoutine::kTrsm) {
    return triangular_solve_cotangents(
        v, {spec.side == 'L', spec.uplo == 'L', spec.diagonal == 'U', spec.transpose != 'N', spec.transpose == 'C'});
  }
  switch (spec.routine) {
    case LapackRoutine::kPotrf:
      return vjp_potrf(v, spec);
    case LapackRoutine::kGetrf:
      return vjp_getrf(v, spec);
    case LapackRoutine::kSyevd:
      return vjp_syevd(v);
    case LapackRoutine::kGeev:
      return vjp_geev(v);
    case LapackRoutine::kGtsv:
      return vjp_gtsv(v);
    case LapackRoutine::kGesdd:
      return vjp_gesdd(v, spec);
    default:
      reject(v.view, "unsupported_op",
             "the derivative of 'stablehlo.custom_call' of target '" + target_of(v.view) + "' is not supported");
  }
}

}  // namespace meshd::ops
