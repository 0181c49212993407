// The narrow float types as bits, and their exact conversions: one description per format instead of one routine per
// type. Decoding is exact; encoding rounds to nearest, ties to even, from the double it is given, with no step in
// between. Values beyond the largest become infinity, or NaN in formats without one, or the largest in formats without
// both, where NaN becomes -0 (as in JAX).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "service/tensor/dtype.h"

namespace meshd::tensor {

/// The format of a float type.
constexpr FloatFormat float_format(DType dtype) { return row(dtype).format; }

/// The value of a code of at most 16 bits, of any format but powers of two; bits above those of the format do not
/// count. Exact; NaN codes give a quiet NaN with the code's sign.
constexpr double decode_float(const FloatFormat& format, uint32_t code) {
  const int mantissa_bits = format.mantissa_bits;
  const uint32_t sign_bit = 1U << (format.exponent_bits + mantissa_bits);
  const bool negative = (code & sign_bit) != 0;
  const uint32_t magnitude = code & (sign_bit - 1);
  const double nan = negative ? -std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::quiet_NaN();
  if (format.specials == FloatSpecials::kNegZeroNan && negative && magnitude == 0) return nan;
  if (format.specials == FloatSpecials::kFinite && magnitude == sign_bit - 1) return nan;
  const uint32_t exponent = magnitude >> mantissa_bits;
  const uint32_t fraction = magnitude & ((1U << mantissa_bits) - 1);
  if (format.specials == FloatSpecials::kIeee && exponent == (1U << format.exponent_bits) - 1) {
    if (fraction != 0) return nan;
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  const int scale = (exponent == 0 ? 1 : static_cast<int>(exponent)) - format.bias - mantissa_bits;
  const double significand = fraction + (exponent == 0 ? 0U : 1U << mantissa_bits);
  const double power = std::bit_cast<double>(static_cast<uint64_t>(scale + 1023) << 52);
  return negative ? -(significand * power) : significand * power;
}

/// The code nearest to `value`, ties to even.
constexpr uint32_t encode_float(const FloatFormat& format, double value) {
  constexpr int kFractionBits = 52;
  const int mantissa_bits = format.mantissa_bits;
  const uint32_t sign_bit = 1U << (format.exponent_bits + mantissa_bits);
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = (bits >> 63) != 0 ? sign_bit : 0U;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const uint32_t top_exponent = ((1U << format.exponent_bits) - 1) << mantissa_bits;
  uint32_t nan = sign | (sign_bit - 1);
  uint32_t infinity = sign | top_exponent;
  uint32_t largest = top_exponent - 1;
  if (format.specials == FloatSpecials::kIeee) {
    nan = sign | top_exponent | (1U << (mantissa_bits - 1));
  } else if (format.specials == FloatSpecials::kFinite) {
    infinity = nan;
    largest = sign_bit - 2;
  } else if (format.specials == FloatSpecials::kNone) {
    nan = sign_bit;
    largest = sign_bit - 1;
    infinity = sign | largest;
  } else {
    nan = sign_bit;
    infinity = sign_bit;
    largest = sign_bit - 1;
  }
  constexpr uint64_t kInfinityBits = uint64_t{0x7FF} << kFractionBits;
  if (magnitude > kInfinityBits) return nan;
  if (magnitude == kInfinityBits) return infinity;
  // Below the smallest normal of double everything is far below half of the smallest value of any format here.
  const int exponent = static_cast<int>(magnitude >> kFractionBits) - 1023;
  const int smallest_exponent = 1 - format.bias;
  const int biased = (exponent > smallest_exponent ? exponent : smallest_exponent) + format.bias;
  const int shift = kFractionBits - mantissa_bits + (biased - format.bias - exponent);
  uint32_t code = 0;
  if (shift <= kFractionBits + 1) {
    const uint64_t significand = (magnitude & ((uint64_t{1} << kFractionBits) - 1)) | (uint64_t{1} << kFractionBits);
    uint64_t rounded = significand >> shift;
    const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
    const uint64_t half = uint64_t{1} << (shift - 1);
    if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;
    // A carry out of the significand raises the exponent by itself.
    const uint64_t wide = (static_cast<uint64_t>(biased - 1) << mantissa_bits) + rounded;
    if (wide > largest) return infinity;
    code = static_cast<uint32_t>(wide);
  }
  if (code == 0 && format.specials == FloatSpecials::kNegZeroNan) return 0;
  return sign | code;
}

/// float8_e8m0fnu: powers of two from 2^-127 to 2^127 and NaN (0xFF); no sign, no zero.
constexpr double decode_float8_e8m0(uint8_t code) {
  if (code == 0xFF) return std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<double>(static_cast<uint64_t>(int{code} - 127 + 1023) << 52);
}
/// Ties go up; zero, negative values, NaN and what is too large become NaN; what is too small becomes 2^-127.
constexpr uint8_t encode_float8_e8m0(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  if (bits == 0 || bits >= uint64_t{0x7FF} << 52) return 0xFF;
  const int exponent = static_cast<int>(bits >> 52) - 1023 + static_cast<int>((bits >> 51) & 1);
  if (exponent > 127) return 0xFF;
  return exponent < -127 ? uint8_t{0} : static_cast<uint8_t>(exponent + 127);
}

/// bfloat16 is the upper half of a float.
constexpr float bfloat16_to_float(uint16_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }
constexpr uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40U;
  return static_cast<uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? nan : rounded);
}

/// float16 without branches, so that loops over it vectorise on any processor.
constexpr float float16_to_float(uint16_t code) {
  const uint32_t sign = (code & 0x8000U) << 16;
  const uint32_t magnitude = code & 0x7FFFU;
  // Exponent moved by multiplying: right for subnormals too; infinity and NaN get the top exponent back.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const uint32_t special = magnitude >= 0x7C00U ? 0x7F800000U : 0U;
  const uint32_t quiet = magnitude > 0x7C00U ? 0x00400000U : 0U;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | quiet | sign);
}
constexpr uint16_t float_to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  // Subnormal results: adding 0.5 lets the adder round at the right bit (24 bits below 0.5 is 2^-24, float16's
  // quantum).
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude < 0x38800000U ? magnitude : 0U) + 0.5F) - 0x3F000000U;
  const uint32_t rebased = magnitude - (112U << 23);
  const uint32_t normal = (rebased + 0xFFFU + ((rebased >> 13) & 1U)) >> 13;
  uint32_t code = magnitude < 0x38800000U ? subnormal : normal;
  code = magnitude >= 0x477FF000U ? 0x7C00U : code;
  code = magnitude > 0x7F800000U ? 0x7E00U | ((bits >> 13) & 0x3FFU) : code;
  return static_cast<uint16_t>(code | sign);
}

/// Values of the 256 bytes that may hold a float of at most 8 bits.
constexpr std::array<float, 256> float8_values(DType dtype) {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) {
    values[static_cast<size_t>(code)] =
        static_cast<float>(float_format(dtype).specials == FloatSpecials::kPowersOfTwo
                               ? decode_float8_e8m0(static_cast<uint8_t>(code))
                               : decode_float(float_format(dtype), static_cast<uint32_t>(code)));
  }
  return values;
}

/// The code nearest to `value` of a float type of at most 8 bits.
constexpr uint8_t encode_float8(DType dtype, double value) {
  return float_format(dtype).specials == FloatSpecials::kPowersOfTwo
             ? encode_float8_e8m0(value)
             : static_cast<uint8_t>(encode_float(float_format(dtype), value));
}

}  // namespace meshd::tensor
