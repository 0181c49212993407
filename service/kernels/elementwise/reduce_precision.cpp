#include "service/kernels/elementwise/reduce_precision.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "service/kernels/elementwise/lanes/narrow_lanes.h"
#include "service/tensor/half.h"

namespace meshd::kernels {
namespace {

/// On codes of an IEEE format with kExponent and kMantissa bits.
template <class Bits, int kExponent, int kMantissa>
Bits reduced(Bits code, int exponent_bits, int mantissa_bits) {
  constexpr uint64_t kOne = 1;
  constexpr uint64_t kSign = kOne << (kExponent + kMantissa);
  constexpr uint64_t kInfinity = ((kOne << kExponent) - 1) << kMantissa;
  uint64_t bits = code;
  const uint64_t sign = bits & kSign;
  bits &= ~kSign;
  // A format without a mantissa has no NaN: it becomes infinity, as in XLA's evaluator of constants (which drops the
  // sign, too). XLA's compiled code for CPUs keeps NaN, whatever the bits; of numbers and infinities both give the
  // same.
  if (bits > kInfinity) return mantissa_bits == 0 ? static_cast<Bits>(kInfinity) : code;
  if (mantissa_bits < kMantissa) {
    const int dropped = kMantissa - mantissa_bits;
    const uint64_t half = kOne << (dropped - 1);
    bits += half - 1 + ((bits >> dropped) & 1);
    bits &= ~((kOne << dropped) - 1);
  }
  if (exponent_bits < kExponent) {
    const uint64_t bias = (kOne << (kExponent - 1)) - 1;
    const uint64_t reduced_bias = (kOne << (exponent_bits - 1)) - 1;
    const uint64_t exponent = bits >> kMantissa;
    if (exponent > bias + reduced_bias) bits = kInfinity;
    if (exponent <= bias - reduced_bias) bits = 0;
  }
  return static_cast<Bits>(bits | sign);
}

template <class Bits, int kExponent, int kMantissa>
void reduce_all(int exponent_bits, int mantissa_bits, const std::byte* operand, std::byte* result, int64_t count) {
  const auto* const from = reinterpret_cast<const Bits*>(operand);
  auto* const to = reinterpret_cast<Bits*>(result);
  for (int64_t i = 0; i < count; ++i)
    to[i] = reduced<Bits, kExponent, kMantissa>(from[i], exponent_bits, mantissa_bits);
}

/// float8, through float: an exponent no shorter than the type's own keeps every value.
void reduce_float8(tensor::DType dtype, int exponent_bits, int mantissa_bits, const std::byte* operand,
                   std::byte* result, int64_t count) {
  constexpr int64_t kStageLanes = 256;
  constexpr int kFloatExponent = 8;
  const int own = tensor::float_format(dtype).exponent_bits;
  const int kept = exponent_bits >= own ? kFloatExponent : exponent_bits;
  alignas(64) std::array<float, kStageLanes> stage;
  for (int64_t begin = 0; begin < count; begin += kStageLanes) {
    const int64_t lanes = std::min(kStageLanes, count - begin);
    widen_to_float(dtype, operand + begin, stage.data(), lanes);
    for (float& lane : std::span(stage).first(static_cast<size_t>(lanes))) {
      lane = std::bit_cast<float>(
          reduced<uint32_t, kFloatExponent, 23>(std::bit_cast<uint32_t>(lane), kept, mantissa_bits));
    }
    narrow_from_float(dtype, stage.data(), result + begin, lanes);
  }
}

}  // namespace

void reduce_precision(tensor::DType dtype, int exponent_bits, int mantissa_bits, const std::byte* operand,
                      std::byte* result, int64_t count) {
  switch (dtype) {
    case tensor::DType::kFloat64:
      return reduce_all<uint64_t, 11, 52>(exponent_bits, mantissa_bits, operand, result, count);
    case tensor::DType::kFloat32:
      return reduce_all<uint32_t, 8, 23>(exponent_bits, mantissa_bits, operand, result, count);
    case tensor::DType::kFloat16:
      return reduce_all<uint16_t, 5, 10>(exponent_bits, mantissa_bits, operand, result, count);
    case tensor::DType::kBfloat16:
      return reduce_all<uint16_t, 8, 7>(exponent_bits, mantissa_bits, operand, result, count);
    default:
      return reduce_float8(dtype, exponent_bits, mantissa_bits, operand, result, count);
  }
}

}  // namespace meshd::kernels
