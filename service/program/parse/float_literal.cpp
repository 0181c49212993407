#include "service/program/parse/float_literal.h"

#include <bit>
#include <cmath>

#include "service/tensor/half.h"

namespace meshd::program {
namespace {

using tensor::DType;

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

}  // namespace

uint64_t float_bits(DType dtype, double value) {
  if (dtype == DType::kFloat64) return std::bit_cast<uint64_t>(value);
  if (dtype == DType::kFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const tensor::FloatFormat& format = tensor::row(dtype).format;
  if (format.specials == tensor::FloatSpecials::kPowersOfTwo) return power_of_two_bits(value);
  return tensor::encode_float(format, value);
}

}  // namespace meshd::program
