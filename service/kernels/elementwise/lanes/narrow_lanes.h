// Narrow types that are computed in a wider one, a run at a time: floats of 4 to 16 bits as float, integers of 2 and
// 4 bits as bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Whether the type is a float of at most 16 bits.
constexpr bool is_narrow_float(tensor::DType dtype) { return tensor::is_float(dtype) && tensor::size_bytes(dtype) < 4; }
/// Whether the type is an integer of 2 or 4 bits.
constexpr bool is_narrow_integer(tensor::DType dtype) {
  return tensor::is_integer(dtype) && tensor::row(dtype).bits < 8;
}

/// `count` elements of a narrow float type as floats; exact.
void widen_to_float(tensor::DType dtype, const std::byte* from, float* to, int64_t count);
/// Floats as a narrow float type, rounded to nearest even.
void narrow_from_float(tensor::DType dtype, const float* from, std::byte* to, int64_t count);

/// Integers of 2 and 4 bits as bytes with the value of the low bits, sign-extended or not; also what puts results back
/// into range.
void extend_signed(int bits, const std::byte* from, std::byte* to, int64_t count);
void extend_unsigned(int bits, const std::byte* from, std::byte* to, int64_t count);

}  // namespace meshd::kernels
