#include "service/program/parse/float_literal.h"

#include <bit>
#include <cmath>

#include "service/tensor/half.h"

namespace meshd::program {
namespace {

using tensor::DType;

/// How a small format spends its codes beyond finite numbers.
enum class Special { kIeee, kNanOnly, kNanIsMinusZero };

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Special special;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {5, 10, 15, Special::kIeee};
    case DType::kBfloat16:
      return {8, 7, 127, Special::kIeee};
    case DType::kFloat8E3M4:
      return {3, 4, 3, Special::kIeee};
    case DType::kFloat8E4M3:
      return {4, 3, 7, Special::kIeee};
    case DType::kFloat8E5M2:
      return {5, 2, 15, Special::kIeee};
    case DType::kFloat8E4M3FN:
      return {4, 3, 7, Special::kNanOnly};
    case DType::kFloat8E4M3FNUZ:
      return {4, 3, 8, Special::kNanIsMinusZero};
    case DType::kFloat8E4M3B11FNUZ:
      return {4, 3, 11, Special::kNanIsMinusZero};
    default:
      return {5, 2, 16, Special::kNanIsMinusZero};  // kFloat8E5M2FNUZ
  }
}

/// float8_e8m0fnu: powers of two alone, from 2^-127 to 2^127, and 0xFF for NaN.
uint64_t power_of_two_bits(double value) {
  constexpr int kBias = 127;
  constexpr int64_t kNan = 0xFF;
  if (std::isnan(value) || std::isinf(value) || value < 0) return kNan;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  const int64_t code = exponent - 1 + kBias + (fraction >= 0.75 ? 1 : 0);
  if (code < 0) return 0;
  return static_cast<uint64_t>(code > kNan - 1 ? kNan : code);
}

uint64_t small_bits(const Format& format, double value) {
  const uint64_t sign = uint64_t{std::signbit(value)} << (format.exponent_bits + format.mantissa_bits);
  const int64_t all_ones = (int64_t{1} << (format.exponent_bits + format.mantissa_bits)) - 1;
  const int64_t infinity = ((int64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  const bool minus_zero_is_nan = format.special == Special::kNanIsMinusZero;
  const uint64_t nan = minus_zero_is_nan ? static_cast<uint64_t>(all_ones) + 1
                       : format.special == Special::kNanOnly
                           ? sign | static_cast<uint64_t>(all_ones)
                           : sign | static_cast<uint64_t>(infinity) | (uint64_t{1} << (format.mantissa_bits - 1));
  if (std::isnan(value)) return nan;
  const uint64_t overflow = format.special == Special::kIeee ? sign | static_cast<uint64_t>(infinity) : nan;
  if (std::isinf(value)) return overflow;
  int64_t code = 0;
  if (value != 0) {
    int exponent = 0;
    std::frexp(value, &exponent);
    --exponent;
    const int least = 1 - format.bias;
    const bool subnormal = exponent < least;
    const int unit = (subnormal ? least : exponent) - format.mantissa_bits;
    // Scaling is exact, so the only rounding is this one, to nearest, ties to even.
    const auto digits = static_cast<int64_t>(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
    code = subnormal ? digits
                     : (int64_t{exponent + format.bias} << format.mantissa_bits) + digits -
                           (int64_t{1} << format.mantissa_bits);
  }
  const int64_t largest = format.special == Special::kIeee      ? infinity - 1
                          : format.special == Special::kNanOnly ? all_ones - 1
                                                                : all_ones;
  if (code > largest) return overflow;
  if (code == 0 && minus_zero_is_nan) return 0;
  return sign | static_cast<uint64_t>(code);
}

}  // namespace

uint64_t float_bits(DType dtype, double value) {
  if (dtype == DType::kFloat64) return std::bit_cast<uint64_t>(value);
  if (dtype == DType::kFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (dtype == DType::kFloat8E8M0FNU) return power_of_two_bits(value);
  return small_bits(format_of(dtype), value);
}

}  // namespace meshd::program
