// What rows of several topics share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "service/numpy/functions/table.h"

namespace meshd::numpy {

/// x[i] for each of a row's helper: sorted axes made dimensions of size one again.
Array keep_dims(Tracer& t, const Array& reduced, const tensor::Dims& before, const std::vector<int64_t>& axes,
                bool keep);
/// A sum over axes, in the array's own type.
Array sum_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep);
Array max_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep);
Array min_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep);
/// The number of elements of some dimensions.
int64_t count_of(const Array& x, const std::vector<int64_t>& axes);
/// exp, log and so on of a float array: one op.
inline Array one(Tracer& t, std::string_view op, const Array& x) { return t.op(op, {x}); }
/// |x|, of complex numbers their magnitude.
Array abs_of(Tracer& t, const Array& x);
/// 1, of x's type, where `mask` holds, else 0 and so on: where(mask, a, b) of arrays of one type, broadcast.
Array where(Tracer& t, const Array& mask, const Value& a, const Value& b);
/// The index of the largest (`direction` "GT") or smallest ("LT") element along `dim`, the first of equals, NaN first.
Array arg_reduce(Tracer& t, const Array& x, int64_t dim, std::string_view direction);
/// jnp.moveaxis: dimensions `from` at the places `to`, the others in their order. Both may count from the end.
Array move_axes(Tracer& t, const Array& x, std::vector<int64_t> from, std::vector<int64_t> to);
/// log(sum(exp(x))) over axes, without overflow.
Array logsumexp_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep);

}  // namespace meshd::numpy
