// Indexing of arrays: x[...] and x.at[...]: Python's slices, integers and integer arrays, ..., None. JAX:
// jax/_src/numpy/indexing.py and scatter.py. Indices outside of the array are clamped where elements are read, and
// dropped where they are written.
//
// Example: x of shape (4, 5, 6), x[i, :, ::2] with i of shape (3,): the slice first, then a gather of rows -> (3, 5,
// 3).
#pragma once

#include <string_view>

#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

Array index_array(Tracer& t, const Array& x, const Value& index);

/// x.at[index] with `method`: "set", "add", "subtract", "multiply", "divide", "power", "min", "max".
Array update_array(Tracer& t, const Array& x, const Value& index, std::string_view method, const Value& value);

/// Python's slice of `size` elements: the first, how many, and the step.
struct SlicedRange {
  int64_t start = 0, count = 0, step = 1;
};
SlicedRange sliced_range(Tracer& t, const Slice& slice, int64_t size);

/// Rows `indices` (of any shape) of dimension `dim`, clamped; the shape is that of x with `dim` replaced by theirs.
Array take_rows(Tracer& t, const Array& x, const Array& indices, int64_t dim);

}  // namespace meshd::numpy
