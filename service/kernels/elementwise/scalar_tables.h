// The families of scalar kernels behind find_scalar_kernel: each knows one group of element types. Private to this
// folder.
#pragma once

#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Ops whose operands are float32 / float64 / complex64 and complex128; null where the type has no such op.
ScalarKernel find_float32_kernel(ScalarOp op);
ScalarKernel find_float64_kernel(ScalarOp op);
ScalarKernel find_complex_kernel(ScalarOp op, tensor::DType dtype);
/// Integers of 8 to 64 bits and bool.
ScalarKernel find_integer_kernel(ScalarOp op, tensor::DType dtype);
/// Integers of 2 and 4 bits, and floats of 8 and 16: computed in a wider type, block by block.
ScalarKernel find_narrow_kernel(ScalarOp op, tensor::DType dtype);
/// bfloat16 ops that are worth a loop of their own; null for the others.
ScalarKernel find_bfloat16_kernel(ScalarOp op);
/// The neighbour of a value, for float16 and bfloat16.
ScalarKernel find_half_next_after_kernel(tensor::DType dtype);
/// Conversion between any two types.
ScalarKernel find_convert_kernel(tensor::DType in, tensor::DType out);
/// Moves bytes: copies, bitcasts, selects.
ScalarKernel find_copy_kernel(int64_t element_bytes);
ScalarKernel find_select_kernel(int64_t element_bytes);

}  // namespace meshd::kernels
