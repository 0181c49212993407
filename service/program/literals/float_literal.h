// Decimal literals as bits of each floating type: rounded from double to nearest, ties to even, as MLIR does.
#pragma once

#include <cstdint>

#include "service/tensor/dtype.h"

namespace meshd::program {

/// Bits of `value` in a floating type of at most 64 bits. What is too large becomes infinity, NaN in types without
/// one, or the largest in types without both. Example: 1.0 in bfloat16 is 0x3F80.
uint64_t float_bits(tensor::DType dtype, double value);
/// The value of the bits of such a type; exact.
double float_value(tensor::DType dtype, uint64_t bits);

}  // namespace meshd::program
