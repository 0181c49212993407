// Functions of floats and doubles as straight lines of machine operations: no branches, no tables. Each is written
// once, over a Machine whose values are numbers in loops that the compiler vectorises (LoopMachine), or registers of a
// tile program where machine code is generated (StepMachine of kernels/tile/tile_recipes). Both compute the same
// operations in the same order, so their bits agree. With FMA (levels kV3 and kV4) a product and a sum are one
// rounding, else two. Largest errors in units in the last place, over all floats and 450,000 doubles:
//   exp_recipe       float 0.95, 0.96 with FMA; double 0.97 with FMA
//   tanh_recipe      float 1.34
//   erf_recipe       float 1.14, 0.97 with FMA
//   logistic_recipe  float 2.1, 1.4 with FMA; double 2.2, 1.4 with FMA
// Polynomials are minimax ones of the relative error (Remez), their coefficients rounded to the type.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace meshd::kernels {

/// a * b + c
template <bool kFma, class T>
[[gnu::always_inline]] inline T multiply_add(T a, T b, T c) {
  if constexpr (kFma) {
    return std::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

template <class T>
using FloatBits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
using SignedBits = std::make_signed_t<FloatBits<T>>;
template <class T>
inline constexpr FloatBits<T> kSignBit = FloatBits<T>{1} << (sizeof(T) * 8 - 1);

/// Operations of a machine, on floats or doubles. Those whose names say bits take a value as an unsigned number of its
/// size.
template <class T, bool kFma>
struct LoopMachine {
  using Value = T;
  using Element = T;
  static constexpr bool kHasFma = kFma;

  [[gnu::always_inline]] static T constant(T x) { return x; }
  [[gnu::always_inline]] static T add(T a, T b) { return a + b; }
  [[gnu::always_inline]] static T subtract(T a, T b) { return a - b; }
  [[gnu::always_inline]] static T multiply(T a, T b) { return a * b; }
  [[gnu::always_inline]] static T divide(T a, T b) { return a / b; }
  /// a * b + c
  [[gnu::always_inline]] static T multiply_add(T a, T b, T c) { return kernels::multiply_add<kFma>(a, b, c); }
  /// c - a * b, with FMA
  [[gnu::always_inline]] static T negate_multiply_add(T a, T b, T c) { return std::fma(-a, b, c); }
  /// The larger or smaller one; NaN where x is NaN.
  [[gnu::always_inline]] static T at_least(T x, T low) { return x < low ? low : x; }
  [[gnu::always_inline]] static T at_most(T x, T high) { return x > high ? high : x; }
  [[gnu::always_inline]] static T magnitude(T x) { return of(bits(x) & ~kSignBit<T>); }
  [[gnu::always_inline]] static T negative_magnitude(T x) { return of(bits(x) | kSignBit<T>); }
  /// `magnitude` has no sign yet.
  [[gnu::always_inline]] static T with_sign_of(T magnitude, T x) {
    return of(bits(magnitude) | (bits(x) & kSignBit<T>));
  }
  /// By the sign bit, that of a NaN too. Of doubles by their value (-0 and NaN are not negative): there is no vector
  /// comparison of 64-bit integers without SSE4.
  [[gnu::always_inline]] static T choose_negative(T x, T if_negative, T otherwise) {
    if constexpr (std::is_same_v<T, double>) return x < 0 ? if_negative : otherwise;
    return std::bit_cast<SignedBits<T>>(x) < 0 ? if_negative : otherwise;
  }
  [[gnu::always_inline]] static T add_bits(T a, T b) { return of(bits(a) + bits(b)); }
  [[gnu::always_inline]] static T subtract_bits(T a, T b) { return of(bits(a) - bits(b)); }
  [[gnu::always_inline]] static T shift_bits_left(T a, int by) { return of(bits(a) << by); }
  [[gnu::always_inline]] static T shift_bits_right(T a, int by) { return of(bits(a) >> by); }

 private:
  [[gnu::always_inline]] static FloatBits<T> bits(T x) { return std::bit_cast<FloatBits<T>>(x); }
  [[gnu::always_inline]] static T of(FloatBits<T> x) { return std::bit_cast<T>(x); }
};

/// first + rest[0] x + rest[1] x^2 + ... by Horner's rule. No loop: the loop around it must have none to be vectorised.
template <class Machine, class Value = typename Machine::Value, class Element = typename Machine::Element>
[[gnu::always_inline]] inline Value polynomial_recipe(Machine& m, Value /*x*/, Element first) {
  return m.constant(first);
}
template <class Machine, class Value = typename Machine::Value, class Element = typename Machine::Element,
          class... Rest>
[[gnu::always_inline]] inline Value polynomial_recipe(Machine& m, Value x, Element first, Rest... rest) {
  const Value sum = polynomial_recipe(m, x, rest...);
  return m.multiply_add(sum, x, m.constant(first));
}

/// Adding it leaves a whole number in the low bits of the sum, |x| below 2^22 for float, 2^51 for double: numbers this
/// large have no bits behind the point.
template <class T>
inline constexpr T kNoFraction = T{1.5} * static_cast<T>(FloatBits<T>{1} << (std::numeric_limits<T>::digits - 1));

/// What e^x takes of a type: the range beyond which it is 0 or infinite, log 2 in two parts, and q(r) of
/// e^r = 1 + r + r^2 q(r).
template <class T>
struct ExpTerms;
template <>
struct ExpTerms<float> {
  static constexpr float kLowest = -104, kHighest = 89;
  static constexpr float kLogTwoHigh = 0x1.62e4p-1F, kLogTwoLow = 0x1.7f7d1cp-20F;
  template <class Machine, class Value>
  [[gnu::always_inline]] static Value q(Machine& m, Value r) {
    return polynomial_recipe(m, r, 0.5F, 0x1.555556p-3F, 0x1.55548p-5F, 0x1.11107ep-7F, 0x1.6d9656p-10F,
                             0x1.a1b7ep-13F);
  }
};
template <>
struct ExpTerms<double> {
  static constexpr double kLowest = -746, kHighest = 710;
  static constexpr double kLogTwoHigh = 0x1.62e42fefa39efp-1, kLogTwoLow = 0x1.abc9e3b39803fp-56;
  template <class Machine, class Value>
  [[gnu::always_inline]] static Value q(Machine& m, Value r) {
    return polynomial_recipe(m, r, 0.5, 0x1.555555555555cp-3, 0x1.555555555555ep-5, 0x1.111111110ebc8p-7,
                             0x1.6c16c16c135bfp-10, 0x1.a01a01b3b44bap-13, 0x1.a01a01b4495bfp-16, 0x1.71ddefa26d471p-19,
                             0x1.27e4bf450c716p-22, 0x1.af6cb6797cdb6p-26, 0x1.1f9dd566c739dp-29);
  }
};

/// e^x = 2^k (1 + p): k is in the low bits of `shifted`.
template <class Value>
struct ReducedExp {
  Value p;
  Value shifted;
};

/// e^x = 2^k e^r with k whole and |r| at most log(2) / 2 (Cody and Waite: log 2 in two parts, so that r is nearly
/// exact). |x| is below 2^20.
template <class Machine, class Value = typename Machine::Value, class Element = typename Machine::Element>
[[gnu::always_inline]] inline ReducedExp<Value> reduced_exp_recipe(Machine& m, Value x) {
  using Terms = ExpTerms<Element>;
  constexpr auto kLog2E = static_cast<Element>(0x1.71547652b82fep0);
  const Value shifted = m.multiply_add(x, m.constant(kLog2E), m.constant(kNoFraction<Element>));
  const Value k = m.subtract(shifted, m.constant(kNoFraction<Element>));
  const Value high = m.multiply_add(k, m.constant(-Terms::kLogTwoHigh), x);
  const Value r = m.multiply_add(k, m.constant(-Terms::kLogTwoLow), high);
  const Value q = Terms::q(m, r);
  const Value square = m.multiply(r, r);
  return {m.multiply_add(square, q, r), shifted};
}

/// 2^k for the k that is in the low bits of `shifted`, within the exponents of normal numbers.
template <class Machine, class Value = typename Machine::Value, class Element = typename Machine::Element>
[[gnu::always_inline]] inline Value power_of_two_recipe(Machine& m, Value shifted) {
  constexpr FloatBits<Element> kBias = std::numeric_limits<Element>::max_exponent - 1;
  constexpr int kMantissaBits = std::numeric_limits<Element>::digits - 1;
  return m.shift_bits_left(m.add_bits(shifted, m.constant(std::bit_cast<Element>(kBias))), kMantissaBits);
}

/// In two factors of about half the exponent, so that results below the normal range are rounded once and those above
/// it are infinite: k has one exponent bit more than a float.
template <class Machine, class Value = typename Machine::Value, class Element = typename Machine::Element>
[[gnu::always_inline]] inline Value exp_recipe(Machine& m, Value x) {
  using Terms = ExpTerms<Element>;
  const Value low = m.at_least(x, m.constant(Terms::kLowest));
  const ReducedExp<Value> e = reduced_exp_recipe(m, m.at_most(low, m.constant(Terms::kHighest)));
  const Value half = m.shift_bits_right(e.shifted, 1);
  const Value rest = m.subtract_bits(e.shifted, half);
  const Value scaled = m.multiply(m.add(e.p, m.constant(1)), power_of_two_recipe(m, half));
  return m.multiply(scaled, power_of_two_recipe(m, rest));
}

/// x + x^3 q(x^2) where x is small, else 1 - 2 / (1 + e^(2 |x|)), which is 1 to a float from |x| = 9.02 on.
template <class Machine, class Value = typename Machine::Value>
[[gnu::always_inline]] inline Value tanh_recipe(Machine& m, Value x) {
  const Value one = m.constant(1.0F);
  const Value size = m.magnitude(x);
  const Value square = m.multiply(size, size);
  const Value q =
      polynomial_recipe(m, square, -0x1.55554ap-2F, 0x1.110d26p-3F, -0x1.b9287ap-5F, 0x1.593d06p-6F, -0x1.9b3042p-8F);
  const Value small = m.multiply_add(m.multiply(size, square), q, size);
  const Value near = m.at_most(size, m.constant(10.0F));
  const ReducedExp<Value> e = reduced_exp_recipe(m, m.add(near, near));
  const Value scale = power_of_two_recipe(m, e.shifted);
  const Value denominator = m.multiply_add(scale, e.p, m.add(scale, one));
  const Value large = m.subtract(one, m.divide(m.constant(2.0F), denominator));
  return m.with_sign_of(m.choose_negative(m.subtract(size, m.constant(0.55F)), small, large), x);
}

/// x + x p(x^2) where x is small, else 1 - e^(x q(x)) with x q(x) = log erfc x, which is 1 to a float from |x| = 3.92
/// on.
template <class Machine, class Value = typename Machine::Value>
[[gnu::always_inline]] inline Value erf_recipe(Machine& m, Value x) {
  const Value size = m.magnitude(x);
  const Value p = polynomial_recipe(m, m.multiply(size, size), 0x1.06eba8p-3F, -0x1.81274p-2F, 0x1.ce2d64p-4F,
                                    -0x1.b8012p-6F, 0x1.544aa8p-8F, -0x1.a6126cp-11F, 0x1.4f8e44p-14F);
  const Value small = m.multiply_add(size, p, size);
  const Value near = m.at_most(size, m.constant(4.0F));
  const Value q = polynomial_recipe(m, near, -0x1.20efc4p+0F, -0x1.452d3cp-1F, -0x1.b36b78p-4F, 0x1.86417p-6F,
                                    -0x1.e0f4aap-9F, 0x1.5966ap-12F, -0x1.8ee012p-17F);
  const ReducedExp<Value> e = reduced_exp_recipe(m, m.multiply(near, q));
  const Value scale = power_of_two_recipe(m, e.shifted);
  const Value large = m.subtract(m.subtract(m.constant(1.0F), scale), m.multiply(scale, e.p));
  return m.with_sign_of(m.choose_negative(m.subtract(size, m.constant(0.9375F)), small, large), x);
}

/// 1 / (1 + e^-x) by e = e^-|x|, so that tails keep their precision. With FMA the quotient gets back what rounding the
/// denominator and the division lost.
template <class Machine, class Value = typename Machine::Value>
[[gnu::always_inline]] inline Value logistic_recipe(Machine& m, Value x, Value e) {
  const Value one = m.constant(1);
  const Value numerator = m.choose_negative(x, e, one);
  const Value denominator = m.add(e, one);
  const Value quotient = m.divide(numerator, denominator);
  if constexpr (!Machine::kHasFma) return quotient;
  const Value lost = m.subtract(e, m.subtract(denominator, one));
  const Value missing = m.negate_multiply_add(quotient, denominator, numerator);
  const Value rest = m.negate_multiply_add(quotient, lost, missing);
  const Value slope = m.choose_negative(x, m.subtract(one, quotient), quotient);
  return m.multiply_add(rest, slope, quotient);
}

}  // namespace meshd::kernels
