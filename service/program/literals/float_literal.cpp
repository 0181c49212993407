#include "service/program/literals/float_literal.h"

#include <bit>

#include "service/tensor/half.h"

namespace meshd::program {
namespace {

using tensor::DType;

bool is_power_of_two(DType dtype) {
  return tensor::float_format(dtype).specials == tensor::FloatSpecials::kPowersOfTwo;
}

}  // namespace

uint64_t float_bits(DType dtype, double value) {
  if (dtype == DType::kFloat64) return std::bit_cast<uint64_t>(value);
  if (dtype == DType::kFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  // MLIR writes 0 as the smallest power of two.
  if (is_power_of_two(dtype)) return value == 0 ? 0 : tensor::encode_float8_e8m0(value);
  return tensor::encode_float(tensor::float_format(dtype), value);
}

double float_value(DType dtype, uint64_t bits) {
  if (dtype == DType::kFloat64) return std::bit_cast<double>(bits);
  if (dtype == DType::kFloat32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (is_power_of_two(dtype)) return tensor::decode_float8_e8m0(static_cast<uint8_t>(bits));
  return tensor::decode_float(tensor::float_format(dtype), static_cast<uint32_t>(bits));
}

}  // namespace meshd::program
