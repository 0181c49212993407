// Conversions between element types that loops vectorise. Floats become integers by truncation, clamped to the range,
// NaN as 0 (as XLA does where StableHLO leaves it open); integers wrap; anything but zero is true.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "service/tensor/half.h"

namespace meshd::kernels {

/// Storage formats that the C++ type does not imply: a byte that is 0 or 1, the upper half of a float.
struct BoolByte {
  uint8_t value;
};
struct Bfloat16Bits {
  uint16_t value;
};

template <class Int, class Float>
Int saturate(Float x) {
  constexpr int kDigits = std::numeric_limits<Int>::digits;
  constexpr Float kBeyond = static_cast<Float>(uint64_t{1} << (kDigits - 1)) * Float{2};
  constexpr Float kLowest = static_cast<Float>(std::numeric_limits<Int>::min());
  const bool fits = (x >= kLowest) & (x < kBeyond);
  const Int truncated = static_cast<Int>(fits ? x : Float{0});
  const Int high = x >= kBeyond ? std::numeric_limits<Int>::max() : truncated;
  return x < kLowest ? std::numeric_limits<Int>::min() : high;
}

template <class Out, class In>
struct ConvertTo {
  static Out apply(In x) {
    if constexpr (std::is_same_v<In, Bfloat16Bits>) {
      return ConvertTo<Out, float>::apply(tensor::bfloat16_to_float(x.value));
    } else if constexpr (std::is_same_v<In, BoolByte>) {
      return ConvertTo<Out, uint8_t>::apply(x.value);
    } else if constexpr (std::is_same_v<Out, Bfloat16Bits>) {
      // Through float also from 64-bit types, as JAX rounds.
      return {tensor::float_to_bfloat16(static_cast<float>(x))};
    } else if constexpr (std::is_same_v<Out, BoolByte>) {
      return {static_cast<uint8_t>(x != In{0} ? 1 : 0)};
    } else if constexpr (std::is_integral_v<Out> && std::is_floating_point_v<In>) {
      return saturate<Out>(x);
    } else {
      return static_cast<Out>(x);
    }
  }
};

}  // namespace meshd::kernels
