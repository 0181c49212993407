// The families of scalar kernels behind find_scalar_kernel: each has one group of element types. Private to this
// folder.
#pragma once

#include <string_view>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// The result type of an operation, by its operands' type.
enum class ScalarResult : uint8_t {
  kSame,     ///< the operands' type
  kBool,     ///< bool
  kPart,     ///< of complex numbers their part; else the operands' type
  kComplex,  ///< complex numbers of the operands
};

/// In what integers of 2 and 4 bits are computed.
enum class NarrowCarrier : uint8_t {
  kOfType,    ///< int8 or uint8, whichever has the sign
  kUnsigned,  ///< uint8: the operation sees bits, not the sign
  kSigned,    ///< int8
};

/// What is known of an operation besides its functors (scalar_table.h).
struct ScalarFacts {
  ScalarOp op = kUnnamed;  ///< its enumerator, where it has one
  std::string_view name;
  int operands = 1;
  double cost = 1;  ///< of one lane, in additions; for estimates
  ScalarResult result = ScalarResult::kSame;
  Identity identity = Identity::kNone;  ///< an op with one is associative and commutative, rounding ignored
  bool is_idempotent = false;           ///< op(x, x) is x
  NarrowCarrier narrow = NarrowCarrier::kOfType;
  bool counts_width = false;     ///< the result counts the bits that a narrow integer's byte has more (leading zeros)
  bool bfloat16_loop = false;    ///< bfloat16 has a loop of its own: no more than a conversion around one instruction
  bool vector_function = false;  ///< generated code may call what its loop of float32 computes (vector_functions.h)
};
const ScalarFacts& facts_of(ScalarOp op);

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
