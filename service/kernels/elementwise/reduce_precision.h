// reduce_precision: a float rounded to a format with fewer exponent and mantissa bits, in its own type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Rounds `count` floats of any float type to nearest even in a format with so many exponent (>= 1) and mantissa (>= 0)
/// bits: what is too large becomes infinity, what would be subnormal in it zero. The result may be the operand's
/// memory.
void reduce_precision(tensor::DType dtype, int exponent_bits, int mantissa_bits, const std::byte* operand,
                      std::byte* result, int64_t count);

}  // namespace meshd::kernels
