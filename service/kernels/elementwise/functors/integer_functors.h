// Elementwise functions of integers (8 to 64 bits) and bool as types with a static apply. Arithmetic wraps; where
// StableHLO leaves the result open (division by zero, shifts beyond the width), it is XLA's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "service/kernels/elementwise/functors/constant_division.h"

namespace meshd::kernels {

/// The unsigned type in which arithmetic on T neither overflows nor promotes to int.
template <class T>
using WrapType = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;

template <class T>
inline constexpr uint64_t kWidth = sizeof(T) * 8;

template <class T>
struct IntAdd {
  static T apply(T a, T b) { return static_cast<T>(WrapType<T>(a) + WrapType<T>(b)); }
};
template <class T>
struct IntSubtract {
  static T apply(T a, T b) { return static_cast<T>(WrapType<T>(a) - WrapType<T>(b)); }
};
template <class T>
struct IntMultiply {
  static T apply(T a, T b) { return static_cast<T>(WrapType<T>(a) * WrapType<T>(b)); }
};
template <class T>
struct IntSquare {
  static T apply(T a) { return static_cast<T>(WrapType<T>(a) * WrapType<T>(a)); }
};
template <class T>
struct IntNegate {
  static T apply(T a) { return static_cast<T>(WrapType<T>(0) - WrapType<T>(a)); }
};
/// a / b towards zero. `b` is not zero, and the quotient is one of T. Of at most 32 bits it is that of doubles, which
/// is exact and has vector instructions.
template <class T>
[[gnu::always_inline]] inline T quotient_of(T a, T b) {
  if constexpr (sizeof(T) > 4) {
    return static_cast<T>(a / b);
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    // There are no vector conversions of unsigned integers without AVX-512: those of signed ones, 2^31 lower.
    constexpr double kOffset = 0x1p31;
    const auto to_double = [](uint32_t x) {
      return static_cast<double>(static_cast<int32_t>(x ^ 0x80000000U)) + kOffset;
    };
    const double quotient = std::floor(to_double(a) / to_double(b));
    return static_cast<uint32_t>(static_cast<int32_t>(quotient - kOffset)) ^ 0x80000000U;
  } else {
    return static_cast<T>(static_cast<int32_t>(static_cast<double>(a) / static_cast<double>(b)));
  }
}
template <class T>
[[gnu::always_inline]] inline bool is_minus_one(T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1);
}
/// Quotients by one number that is not 0, for many dividends. Bytes are divided as integers of 16 bits, which have a
/// product of vectors.
template <class T>
class QuotientBy {
 public:
  explicit QuotientBy(T divisor) : divisor_(divisor) {}
  [[gnu::always_inline]] T operator()(T a) const {
    return static_cast<T>(quotient_by(IntegerMachine<Lane>(), divisor_, Lane{a}));
  }

 private:
  using SixteenBits = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
  using Lane = std::conditional_t<sizeof(T) == 1, SixteenBits, T>;
  ConstantDivisor<Lane> divisor_;
};
/// Remainders, likewise.
template <class T>
class RemainderBy {
 public:
  explicit RemainderBy(T divisor) : divisor_(divisor), quotient_(divisor) {}
  [[gnu::always_inline]] T operator()(T a) const {
    return IntSubtract<T>::apply(a, IntMultiply<T>::apply(quotient_(a), divisor_));
  }

 private:
  T divisor_;
  QuotientBy<T> quotient_;
};
/// x / 0 is all ones, the smallest value / -1 is itself.
template <class T>
struct IntDivide {
  static T apply(T a, T b) {
    const T divisor = b == 0 || is_minus_one(b) ? T{1} : b;
    const T quotient = quotient_of(a, divisor);
    const T whole = is_minus_one(b) ? IntNegate<T>::apply(quotient) : quotient;
    return b == 0 ? static_cast<T>(~T{0}) : whole;
  }
  /// The same for many dividends of one divisor.
  static bool has_splat_second(T b) { return b != 0; }
  static auto with_splat_second(T b) { return QuotientBy<T>(b); }
};
/// x % 0 is x; the sign is the dividend's.
template <class T>
struct IntRemainder {
  static T apply(T a, T b) {
    const T divisor = b == 0 || is_minus_one(b) ? T{1} : b;
    const T rest = IntSubtract<T>::apply(a, IntMultiply<T>::apply(quotient_of(a, divisor), divisor));
    return b == 0 ? a : rest;
  }
  static bool has_splat_second(T b) { return b != 0; }
  static auto with_splat_second(T b) { return RemainderBy<T>(b); }
};
/// Wraps; a negative exponent gives 0 but for bases 1 and -1.
template <class T>
struct IntPower {
  static T apply(T base, T exponent) {
    if constexpr (std::is_signed_v<T>) {
      if (exponent < 0) {
        if (base == 1) return T{1};
        if (base == -1) return (exponent & 1) != 0 ? T{-1} : T{1};
        return T{0};
      }
    }
    WrapType<T> result = 1;
    WrapType<T> factor = WrapType<T>(base);
    for (auto left = WrapType<T>(exponent); left != 0; left >>= 1) {
      if ((left & 1) != 0) result *= factor;
      factor *= factor;
    }
    return static_cast<T>(result);
  }
};
template <class T>
struct IntAbsolute {
  static T apply(T a) { return a < 0 ? IntNegate<T>::apply(a) : a; }
};
template <class T>
struct IntSign {
  static T apply(T a) { return static_cast<T>(static_cast<T>(a > 0) - static_cast<T>(a < 0)); }
};
template <class T>
struct IntMaximum {
  static T apply(T a, T b) { return a > b ? a : b; }
};
template <class T>
struct IntMinimum {
  static T apply(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct IntClamp {
  static T apply(T low, T x, T high) { return IntMinimum<T>::apply(IntMaximum<T>::apply(low, x), high); }
};
template <class T>
struct IntAnd {
  static T apply(T a, T b) { return static_cast<T>(a & b); }
};
template <class T>
struct IntOr {
  static T apply(T a, T b) { return static_cast<T>(a | b); }
};
template <class T>
struct IntXor {
  static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};
template <class T>
struct IntNot {
  static T apply(T a) { return static_cast<T>(~a); }
};
/// Shift amounts are read as unsigned; beyond the width the result is 0, or the sign for arithmetic shifts.
template <class T>
struct ShiftLeft {
  static T apply(T a, T b) {
    const auto amount = std::make_unsigned_t<T>(b);
    const auto shifted = WrapType<T>(a) << (amount & (kWidth<WrapType<T>> - 1));
    return static_cast<T>(amount < kWidth<T> ? shifted : 0);
  }
};
template <class T>
struct ShiftRightLogical {
  static T apply(T a, T b) {
    const auto amount = std::make_unsigned_t<T>(b);
    const auto shifted = WrapType<T>(std::make_unsigned_t<T>(a)) >> (amount & (kWidth<WrapType<T>> - 1));
    return static_cast<T>(amount < kWidth<T> ? shifted : 0);
  }
};
template <class T>
struct ShiftRightArithmetic {
  static T apply(T a, T b) {
    using Wide = std::make_signed_t<WrapType<T>>;
    const auto amount = std::make_unsigned_t<T>(b);
    const Wide value = static_cast<Wide>(std::make_signed_t<T>(a));
    const auto within = static_cast<WrapType<T>>(amount < kWidth<T> ? amount : kWidth<T> - 1);
    return static_cast<T>(value >> within);
  }
};
template <class T>
struct PopulationCount {
  /// Sums of neighbouring bits, pairs, fours, bytes and so on: loops are vectors without an instruction for it. Not the
  /// product by 0x01..01 that adds bytes at once: g++ would know it, and take the instruction for one element.
  static T apply(T a) {
    using Bits = std::make_unsigned_t<T>;
    constexpr auto kOnes = static_cast<Bits>(~Bits{0});
    constexpr auto kPairs = static_cast<Bits>(kOnes / 3);   // every other bit
    constexpr auto kFours = static_cast<Bits>(kOnes / 5);   // every other pair
    constexpr auto kBytes = static_cast<Bits>(kOnes / 17);  // every other four
    auto bits = static_cast<Bits>(a);
    bits = static_cast<Bits>(bits - (static_cast<Bits>(bits >> 1) & kPairs));
    bits = static_cast<Bits>((bits & kFours) + (static_cast<Bits>(bits >> 2) & kFours));
    bits = static_cast<Bits>((bits + static_cast<Bits>(bits >> 4)) & kBytes);
    if constexpr (sizeof(T) > 1) bits = static_cast<Bits>(bits + static_cast<Bits>(bits >> 8));
    if constexpr (sizeof(T) > 2) bits = static_cast<Bits>(bits + static_cast<Bits>(bits >> 16));
    if constexpr (sizeof(T) > 4) bits = static_cast<Bits>(bits + static_cast<Bits>(bits >> 32));
    return static_cast<T>(bits & 0x7F);
  }
};
template <class T>
struct CountLeadingZeros {
  static T apply(T a) { return static_cast<T>(std::countl_zero(std::make_unsigned_t<T>(a))); }
};

/// Bool is a byte, 0 or 1.
template <class T>
struct BoolNot {
  static T apply(T a) { return a ^ 1U; }
};

}  // namespace meshd::kernels
