#include "service/ops/linalg/linalg_vjp.h"

#include <algorithm>
#include <numeric>

#include "service/ops/checks.h"
#include "service/ops/linalg/dot.h"
#include "service/ops/linalg/linalg_terms.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using Ints = std::vector<int64_t>;

// The cotangent of one side: that of the result with the other side, whose free dimensions are summed over. Worked in
// the result's type, which may be wider than the operands'.
//
// Example, of lhs: lhs (b, i, k), rhs (b, k, j), result (b, i, j). ct x rhs over j -> (b, i, k).
Term side_vjp(const Vjp& v, const DotDims& dims, bool of_lhs) {
  const Term mine = v.x(of_lhs ? 0 : 1);
  const Term other = converted(v.x(of_lhs ? 1 : 0), v.ct().dtype());
  const Ints& my_batch = of_lhs ? dims.lhs_batch : dims.rhs_batch;
  const Ints& my_contract = of_lhs ? dims.lhs_contract : dims.rhs_contract;
  const Ints& other_batch = of_lhs ? dims.rhs_batch : dims.lhs_batch;
  const Ints& other_contract = of_lhs ? dims.rhs_contract : dims.lhs_contract;
  const Ints my_free = free_dims(mine.rank(), my_batch, my_contract);
  const Ints other_free = free_dims(other.rank(), other_batch, other_contract);

  Ints batch(my_batch.size());
  std::iota(batch.begin(), batch.end(), 0);
  Ints summed(other_free.size());
  const size_t lhs_free = of_lhs ? my_free.size() : other_free.size();
  std::iota(summed.begin(), summed.end(), static_cast<int64_t>(batch.size() + (of_lhs ? lhs_free : 0)));
  const Term made = product(v.ct(), other, {batch, other_batch, summed, other_free},
                            ir::find(attributes_of(v.view), "precision_config"));

  // Dimensions of `made`: batch, my free ones, then the other's contracted ones in ascending order.
  Ints where = my_batch;
  where.insert(where.end(), my_free.begin(), my_free.end());
  Ints ascending(other_contract.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  std::sort(ascending.begin(), ascending.end(), [&](int64_t a, int64_t b) {
    return other_contract[static_cast<size_t>(a)] < other_contract[static_cast<size_t>(b)];
  });
  for (const int64_t i : ascending) where.push_back(my_contract[static_cast<size_t>(i)]);
  Ints permutation(where.size());
  for (size_t d = 0; d < where.size(); ++d) permutation[static_cast<size_t>(where[d])] = static_cast<int64_t>(d);
  return converted(v.value(v.writer.transpose(made.id, permutation)), mine.dtype());
}

Contributions product_vjp(const Vjp& v, const DotDims& dims) {
  Contributions out(2);
  if (v.wanted[0]) out[0] = side_vjp(v, dims, true);
  if (v.wanted[1]) out[1] = side_vjp(v, dims, false);
  return out;
}

Term transform(Term value, const char* type, const Ints& lengths) {
  return {value.writer, value.writer->add("stablehlo.fft", {value.id},
                                          {{"fft_type", ir::Attribute{ir::EnumAttr{"fft_type", type}}},
                                           {"fft_length", ir::int_array_attr(lengths)}})};
}

// A half spectrum is the begin of the full one, and its transpose puts zeros for the rest.
Term rfft_vjp(const Vjp& v, const Ints& lengths) {
  const Term ct = v.ct();
  const int64_t missing = lengths.back() - ct.dims().back();
  Ints none(ct.dims().size(), 0);
  Ints high = none;
  high.back() = missing;
  return transform(padded(ct, none, high, none), "FFT", lengths).apply("stablehlo.real");
}

// All frequencies but the first and, of an even length, the last stand for two.
Term irfft_vjp(const Vjp& v, const Ints& lengths) {
  const Term spectrum = transform(v.ct(), "RFFT", lengths);
  const Dims& dims = spectrum.dims();
  const int64_t last = static_cast<int64_t>(dims.size()) - 1;
  const Term place = v.value(v.writer.iota({v.ct().dtype(), dims}, last));
  Term is_single = compare(place, "EQ", place.number(0));
  if (lengths.back() % 2 == 0) {
    const Term is_last = compare(place, "EQ", place.number(static_cast<double>(dims.back() - 1)));
    is_single = apply("stablehlo.or", is_single, is_last);
  }
  const double scale =
      1 / static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{1}, std::multiplies<>()));
  const Term factor = select(is_single, place.number(scale), place.number(2 * scale));
  return (converted(factor, spectrum.dtype()) * spectrum).apply("chlo.conj");
}

}  // namespace

Contributions vjp_dot_general(const Vjp& v) { return product_vjp(v, dot_general_dims(v.view)); }

Contributions vjp_dot(const Vjp& v) { return product_vjp(v, dot_dims(v.view)); }

Contributions vjp_fft(const Vjp& v) {
  const ir::AttributeList& attributes = attributes_of(v.view);
  const std::string type = ir::string_or(attributes, "fft_type", "");
  const Ints lengths = ir::ints(attributes, "fft_length");
  if (type == "RFFT") return {rfft_vjp(v, lengths)};
  if (type == "IRFFT") return {irfft_vjp(v, lengths)};
  return {transform(v.ct(), type.c_str(), lengths)};
}

Contributions vjp_cholesky(const Vjp& v) {
  return {cholesky_cotangent(v.y(), v.ct(), ir::bool_or(attributes_of(v.view), "lower", false))};
}

Contributions vjp_triangular_solve(const Vjp& v) {
  const ir::AttributeList& attributes = attributes_of(v.view);
  const std::string taken = ir::string_or(attributes, "transpose_a", "NO_TRANSPOSE");
  return triangular_solve_cotangents(
      v, {ir::bool_or(attributes, "left_side", false), ir::bool_or(attributes, "lower", false),
          ir::bool_or(attributes, "unit_diagonal", false), taken != "NO_TRANSPOSE", taken == "ADJOINT"});
}

}  // namespace meshd::ops
