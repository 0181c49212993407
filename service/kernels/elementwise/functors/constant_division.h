// Division of many integers by one: a multiplication and shifts instead of divisions, with the same quotients
// (Granlund and Montgomery, "Division by invariant integers using multiplication", figures 4.1 and 5.1). What divides
// is a ConstantDivisor; the operations are written once, over a Machine whose values are integers in loops that the
// compiler vectorises (IntegerMachine), or registers of a tile program where machine code is generated (StepMachine of
// kernels/tile/tile_recipes).
//
// Example: by 3 in int32 the multiplier is 0x55555556 - 2^32 and the shift 0. Of 7, the upper half of the product is
// -5; -5 + 7 = 2, of which nothing is shifted out.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace meshd::kernels {

/// The type that products of two T fit in.
template <class T>
struct TwiceOf;
template <>
struct TwiceOf<int16_t> {
  using Type = int32_t;
};
template <>
struct TwiceOf<uint16_t> {
  using Type = uint32_t;
};
template <>
struct TwiceOf<int32_t> {
  using Type = int64_t;
};
template <>
struct TwiceOf<uint32_t> {
  using Type = uint64_t;
};
template <>
struct TwiceOf<int64_t> {
  __extension__ using Type = __int128;
};
template <>
struct TwiceOf<uint64_t> {
  __extension__ using Type = unsigned __int128;
};

/// What takes the place of a divisor of T, an integer of 16 to 64 bits. Any but 0 has one.
template <class T>
struct ConstantDivisor {
  static constexpr int kBits = sizeof(T) * 8;
  T divisor = 1;
  T multiplier = 0;     ///< less 2^kBits where T has a sign
  int first_shift = 0;  ///< of unsigned integers, before the shift
  int shift = 0;

  explicit ConstantDivisor(T by) : divisor(by) {
    using Unsigned = std::make_unsigned_t<T>;
    using Twice = typename TwiceOf<Unsigned>::Type;
    const auto size = static_cast<Unsigned>(by < 0 ? Unsigned{0} - static_cast<Unsigned>(by) : by);
    const int log2_up = kBits - std::countl_zero(static_cast<Unsigned>(size - 1));
    if constexpr (std::is_signed_v<T>) {
      shift = log2_up > 0 ? log2_up - 1 : 0;
      multiplier = static_cast<T>(static_cast<Unsigned>((Twice{1} << (kBits + shift)) / size + 1));
    } else {
      first_shift = log2_up > 0 ? 1 : 0;
      shift = log2_up > 0 ? log2_up - 1 : 0;
      const Twice above = (Twice{1} << log2_up) - size;
      multiplier = static_cast<T>((above << kBits) / size + 1);
    }
  }
};

/// Integers of T in loops; they wrap.
template <class T>
struct IntegerMachine {
  using Value = T;
  using Unsigned = std::make_unsigned_t<T>;
  using Twice = typename TwiceOf<T>::Type;

  [[gnu::always_inline]] static T add(T a, T b) { return static_cast<T>(Unsigned(a) + Unsigned(b)); }
  [[gnu::always_inline]] static T subtract(T a, T b) { return static_cast<T>(Unsigned(a) - Unsigned(b)); }
  /// The upper half of the product.
  [[gnu::always_inline]] static T multiply_high(T a, T b) {
    const auto product = static_cast<typename TwiceOf<Unsigned>::Type>(static_cast<Twice>(a) * b);
    return static_cast<T>(product >> (sizeof(T) * 8));  // by zeros: that is one vector instruction of 64 bits
  }
  /// With copies of the sign where T has one.
  [[gnu::always_inline]] static T shift_right(T a, int by) { return static_cast<T>(a >> by); }
};

/// n / d, rounded towards zero; wraps where the quotient is not one of T.
template <class T, class Machine, class Value = typename Machine::Value>
[[gnu::always_inline]] inline Value quotient_by(Machine machine, const ConstantDivisor<T>& d, Value n) {
  const Value high = machine.multiply_high(n, d.multiplier);
  if constexpr (std::is_signed_v<T>) {
    const Value whole = machine.shift_right(machine.add(high, n), d.shift);
    const Value sign = machine.shift_right(n, ConstantDivisor<T>::kBits - 1);
    return d.divisor < 0 ? machine.subtract(sign, whole) : machine.subtract(whole, sign);
  } else {
    const Value rest = machine.shift_right(machine.subtract(n, high), d.first_shift);
    return machine.shift_right(machine.add(high, rest), d.shift);
  }
}

}  // namespace meshd::kernels
