#include "service/ops/linalg/linalg_terms.h"

#include <numeric>

#include "service/ops/checks.h"

namespace meshd::ops {

using tensor::Dims;
using Ints = std::vector<int64_t>;

ir::Attribute dot_numbers(const DotDims& dims) {
  return ir::Attribute{ir::DictAttr{"stablehlo.dot",
                                    {{"lhs_batching_dimensions", ir::int_array_attr(dims.lhs_batch)},
                                     {"rhs_batching_dimensions", ir::int_array_attr(dims.rhs_batch)},
                                     {"lhs_contracting_dimensions", ir::int_array_attr(dims.lhs_contract)},
                                     {"rhs_contracting_dimensions", ir::int_array_attr(dims.rhs_contract)}}}};
}

Term product(Term lhs, Term rhs, const DotDims& dims, const ir::Attribute* precision) {
  ir::AttributeList attributes = {{"dot_dimension_numbers", dot_numbers(dims)}};
  if (precision != nullptr) attributes.push_back({"precision_config", *precision});
  Dims shape;
  for (const int64_t d : dims.lhs_batch) shape.push_back(lhs.dims()[static_cast<size_t>(d)]);
  for (const int64_t d : free_dims(lhs.rank(), dims.lhs_batch, dims.lhs_contract))
    shape.push_back(lhs.dims()[static_cast<size_t>(d)]);
  for (const int64_t d : free_dims(rhs.rank(), dims.rhs_batch, dims.rhs_contract))
    shape.push_back(rhs.dims()[static_cast<size_t>(d)]);
  return {lhs.writer, lhs.writer->add("stablehlo.dot_general", {lhs.id, rhs.id}, std::move(attributes),
                                      with_dims(lhs.type(), shape))};
}

Term transposed(Term matrix) {
  Ints permutation(matrix.dims().size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[permutation.size() - 2], permutation.back());
  return {matrix.writer, matrix.writer->transpose(matrix.id, permutation)};
}

Term conjugated(Term value) { return tensor::is_complex(value.dtype()) ? value.apply("chlo.conj") : value; }

Term adjoint(Term matrix) { return conjugated(transposed(matrix)); }

Term matmul(Term a, Term b) {
  Ints batch(a.dims().size() - 2);
  std::iota(batch.begin(), batch.end(), 0);
  const auto rank = a.rank();
  return product(a, b, {batch, batch, {rank - 1}, {rank - 2}}, nullptr);
}

Term solve(Term a, Term b, const TriangularSolve& how) {
  const auto flag = [](bool value) { return ir::Attribute{ir::IntegerAttr{value ? 1 : 0, "i1"}}; };
  return {a.writer,
          a.writer->add(
              "stablehlo.triangular_solve", {a.id, b.id},
              {{"left_side", flag(how.left)},
               {"lower", flag(how.lower)},
               {"transpose_a", ir::Attribute{ir::EnumAttr{"transpose", how.transposed ? "TRANSPOSE" : "NO_TRANSPOSE"}}},
               {"unit_diagonal", flag(how.unit_diagonal)}})};
}

Term is_at(Term like, Term k) {
  Writer& writer = *like.writer;
  return compare(indices_along(writer, like.dims(), like.rank() - 1), "EQ",
                 {&writer, writer.broadcast(k.id, like.dims(), {})});
}

Term triangle(Term value, bool lower, double diagonal) {
  const Term row = indices_along(*value.writer, value.dims(), value.rank() - 2);
  const Term column = indices_along(*value.writer, value.dims(), value.rank() - 1);
  const Term inside = masked(compare(row, lower ? "GT" : "LT", column), value);
  return select(compare(row, "EQ", column), value * value.number(diagonal), inside);
}

Term cholesky_cotangent(Term factor, Term ct, bool lower) {
  const Term l = lower ? factor : adjoint(factor);
  const Term inner = triangle(matmul(transposed(l), lower ? ct : adjoint(ct)), true, 0.5);
  const Term half = solve(l, inner, {.left = true, .lower = true, .transposed = true});
  const Term whole = solve(conjugated(l), half, {.left = false, .lower = true});
  return lower ? whole : adjoint(whole);
}

Contributions triangular_solve_cotangents(const Vjp& v, const TriangularSolve& how) {
  TriangularSolve back = how;
  back.transposed = !how.transposed;
  const auto taken = [&](Term matrix) { return how.conjugated ? conjugated(matrix) : matrix; };
  const Term b = solve(taken(v.x(0)), v.ct(), back);
  if (!v.wanted[0]) return {Contribution(), b};
  const Term of_taken = -(how.left ? matmul(b, transposed(v.y())) : matmul(transposed(v.y()), b));
  const Term a = taken(how.transposed ? transposed(of_taken) : of_taken);
  return {triangle(a, how.lower, how.unit_diagonal ? 0 : 1), b};
}

}  // namespace meshd::ops
