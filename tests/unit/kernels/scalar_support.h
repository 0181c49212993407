// Values that break kernels, and how far apart two floats are.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::kernels {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// Places on the line of representable values; neighbours differ by 1, -0 and +0 not at all.
template <class T>
int64_t place_of(T x) {
  const int64_t bits = std::bit_cast<BitsOf<T>>(x);
  return bits < 0 ? static_cast<int64_t>(std::numeric_limits<BitsOf<T>>::min()) - bits : bits;
}

/// How many representable values lie between `got` and the exact value, rounded up; what is right for NaN and infinity
/// is 0.
template <class T, class Exact>
double ulps_apart(T got, Exact exact) {
  const T rounded = static_cast<T>(exact);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : 1e30;
  if (got == rounded) return rounded == 0 && std::signbit(got) != std::signbit(rounded) ? 1e30 : 0;
  if (std::isinf(rounded))
    return std::isinf(got) ? 1e30 : ulps_apart<T, Exact>(got, std::copysign(std::numeric_limits<T>::max(), rounded));
  if (std::isinf(got)) return 1e30;
  const int64_t a = place_of(got);
  const int64_t b = place_of(rounded);
  return static_cast<double>(a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                                   : static_cast<uint64_t>(b) - static_cast<uint64_t>(a));
}

/// Specials, every power of two, and random values of all sizes and of common ones.
template <class T>
std::vector<T> float_samples(int count, uint32_t seed) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T(0),
                           T(-0.0),
                           T(1),
                           T(-1),
                           T(0.5),
                           T(-0.5),
                           T(1.5),
                           T(2.5),
                           T(-2.5),
                           T(2),
                           T(3),
                           T(-3),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           -Limits::quiet_NaN(),
                           Limits::max(),
                           Limits::lowest(),
                           Limits::min(),
                           -Limits::min(),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           Limits::epsilon(),
                           T(1) - Limits::epsilon(),
                           T(1) + Limits::epsilon(),
                           T(8388607.5),
                           T(8388609),
                           T(0.49999997),
                           T(1e10),
                           T(-1e10),
                           T(88.8),
                           T(-88.8),
                           T(-104),
                           T(710)};
  for (int e = Limits::min_exponent - Limits::digits; e < Limits::max_exponent; e += 3)
    values.push_back(std::ldexp(T(1.25), e));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> common(-20, 20);
  std::uniform_real_distribution<double> small(-1, 1);
  while (static_cast<int>(values.size()) < count) {
    values.push_back(std::bit_cast<T>(static_cast<BitsOf<T>>(random())));
    values.push_back(static_cast<T>(common(random)));
    values.push_back(static_cast<T>(small(random)));
  }
  return values;
}

template <class R, class... A>
std::vector<R> run_op(ScalarOp op, tensor::DType in, const std::vector<A>&... operands) {
  const std::byte* pointers[] = {reinterpret_cast<const std::byte*>(operands.data())...};
  const int64_t count = static_cast<int64_t>(std::min({operands.size()...}));
  std::vector<R> result(static_cast<size_t>(count));
  find_scalar_kernel(op, in, result_dtype(op, in))(pointers, reinterpret_cast<std::byte*>(result.data()), count);
  return result;
}

}  // namespace meshd::kernels
