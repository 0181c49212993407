#include "service/ops/linalg/householder.h"

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

/// Batches of matrices in a loop over their columns.
class Columns {
 public:
  Columns(Writer& writer, const Dims& dims) : writer_(writer), dims_(dims), rank_(static_cast<int64_t>(dims.size())) {}

  /// The number of each element's row (0) or column (1).
  [[nodiscard]] Term place(int64_t which) const { return indices_along(writer_, dims_, rank_ - 2 + which); }
  [[nodiscard]] Term repeated(Term scalar) const { return {&writer_, writer_.broadcast(scalar.id, dims_, {})}; }
  /// Vectors of rows (0) or columns (1), or scalars (-1), by batch, repeated over the matrices.
  [[nodiscard]] Term spread(Term values, int64_t which) const {
    std::vector<int64_t> into;
    for (int64_t d = 0; d < rank_ - 2; ++d) into.push_back(d);
    if (which >= 0) into.push_back(rank_ - 2 + which);
    return {&writer_, writer_.broadcast(values.id, dims_, into)};
  }
  [[nodiscard]] Term over_rows(Term value) const { return summed_over(value, {rank_ - 2}); }
  [[nodiscard]] Term over_columns(Term value) const { return summed_over(value, {rank_ - 1}); }
  [[nodiscard]] Term over_both(Term value) const { return summed_over(value, {rank_ - 2, rank_ - 1}); }
  /// (I - factor v v^H) a; v by row, factor by batch.
  [[nodiscard]] Term reflected(Term a, Term v, Term factor) const {
    const Term whole_v = spread(v, 0);
    return a - spread(factor, -1) * whole_v * spread(over_rows(conjugated(whole_v) * a), 1);
  }

 private:
  Writer& writer_;
  Dims dims_;
  int64_t rank_;
};

Term real_part(Term value) { return tensor::is_complex(value.dtype()) ? value.apply("stablehlo.real") : value; }

/// Column by column: the reflector that leaves beta of it, applied to those behind it.
std::vector<Term> geqrf(const OpView& view, Writer& writer, const LapackSpec& spec) {
  const Columns columns(writer, view.operands[0].dims());
  return counted_loop(
      writer, std::min(spec.rows, spec.columns),
      {{&writer, view.op->operands[0]}, {&writer, writer.zero(view.results[1].tensor)}},
      [&](Term k, const std::vector<Term>& now) -> std::vector<Term> {
        const Term a = now[0];
        const Term row = columns.place(0);
        const Term column = columns.place(1);
        const Term here = columns.repeated(k);
        const Term is_column = compare(column, "EQ", here);
        const Term is_below = compare(row, "GT", here);
        const Term is_corner = apply("stablehlo.and", is_column, compare(row, "EQ", here));
        const Term below = columns.over_columns(masked(apply("stablehlo.and", is_column, is_below), a));
        const Term alpha = columns.over_both(masked(is_corner, a));
        const Term corner = columns.over_columns(select(is_corner, a.number(1), a.number(0)));  // one at row k
        // Nothing below the diagonal, and nothing imaginary on it: no reflector.
        const Term squares = summed_over(real_part(below * conjugated(below)), {below.rank() - 1});
        Term is_done = compare(squares, "EQ", squares.number(0));
        if (tensor::is_complex(alpha.dtype())) {
          const Term imaginary = alpha.apply("stablehlo.imag");
          is_done = apply("stablehlo.and", is_done, compare(imaginary, "EQ", imaginary.number(0)));
        }
        const Term length =
            select(is_done, squares.number(1), real_part(alpha * conjugated(alpha)) + squares).apply("stablehlo.sqrt");
        const Term is_positive = compare(real_part(alpha), "GE", length.number(0));
        const Term beta = converted(select(is_positive, -length, length), alpha.dtype());
        const Term tau = select(is_done, alpha.number(0), (beta - alpha) / beta);
        const Term left = select(is_done, alpha, beta);
        const Term scale = select(is_done, alpha.number(1), alpha - beta);
        const Term v = columns.over_columns(masked(is_column, columns.spread(below, 0) / columns.spread(scale, -1)));
        const Term reflected = columns.reflected(a, v + corner, conjugated(tau));
        const Term of_column = select(is_corner, columns.spread(left, -1), select(is_below, columns.spread(v, 0), a));
        const Term next = select(compare(column, "GT", here), reflected, select(is_column, of_column, a));
        std::vector<int64_t> batch;
        for (int64_t d = 0; d + 1 < now[1].rank(); ++d) batch.push_back(d);
        return {next, select(is_at(now[1], k), {&writer, writer.broadcast(tau.id, now[1].dims(), batch)}, now[1])};
      });
}

/// The reflectors applied to the first columns of the unit matrix, the last one first.
std::vector<Term> orgqr(const OpView& view, Writer& writer) {
  const Columns columns(writer, view.operands[0].dims());
  const Term a{&writer, view.op->operands[0]};
  const Term taus{&writer, view.op->operands[1]};
  const int64_t count = taus.dims().back();
  const Term is_diagonal = compare(columns.place(0), "EQ", columns.place(1));
  const Term unit = select(is_diagonal, a.number(1), a.number(0));
  return counted_loop(writer, count, {unit}, [&](Term j, const std::vector<Term>& now) -> std::vector<Term> {
    const Term k = static_cast<double>(count - 1) - j;
    const Term row = columns.place(0);
    const Term here = columns.repeated(k);
    const Term is_column = compare(columns.place(1), "EQ", here);
    const Term below = masked(apply("stablehlo.and", is_column, compare(row, "GT", here)), a);
    const Term is_corner = apply("stablehlo.and", is_column, compare(row, "EQ", here));
    const Term v = columns.over_columns(select(is_corner, a.number(1), below));
    const Term tau = summed_over(masked(is_at(taus, k), taus), {taus.rank() - 1});
    return {columns.reflected(now[0], v, tau)};
  });
}

}  // namespace

std::optional<std::vector<ir::ValueId>> householder_as_others(const OpView& view, Writer& writer) {
  const LapackSpec spec = lapack_spec(view);
  if (spec.routine != LapackRoutine::kGeqrf && spec.routine != LapackRoutine::kOrgqr) return std::nullopt;
  std::vector<ir::ValueId> out;
  for (const Term& each : spec.routine == LapackRoutine::kGeqrf ? geqrf(view, writer, spec) : orgqr(view, writer))
    out.push_back(each.id);
  return out;
}

}  // namespace meshd::ops
