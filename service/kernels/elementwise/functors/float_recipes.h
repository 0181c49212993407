// Functions of float32 as straight lines of machine operations: no branches, no tables. Each is written once, over a
// Machine whose values are floats in loops that the compiler vectorises (FloatMachine), or registers of a tile program
// where machine code is generated (kernels/tile/tile_recipes). Both compute the same operations in the same order, so
// their bits agree. With FMA (levels kV3 and kV4) a product and a sum are one rounding, else two. Largest errors in
// units in the last place, over all floats:
//   exp_recipe       0.95, 0.96 with FMA
//   tanh_recipe      1.34
//   logistic_recipe  2.1, 1.4 with FMA
// Polynomials are minimax ones of the relative error (Remez), their coefficients rounded to float.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

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

/// Operations of a machine, on floats. Those whose names say bits take a value as an unsigned number of 32 bits.
template <bool kFma>
struct FloatMachine {
  using Value = float;
  static constexpr bool kHasFma = kFma;

  [[gnu::always_inline]] static float constant(float x) { return x; }
  [[gnu::always_inline]] static float add(float a, float b) { return a + b; }
  [[gnu::always_inline]] static float subtract(float a, float b) { return a - b; }
  [[gnu::always_inline]] static float multiply(float a, float b) { return a * b; }
  [[gnu::always_inline]] static float divide(float a, float b) { return a / b; }
  /// a * b + c
  [[gnu::always_inline]] static float multiply_add(float a, float b, float c) {
    return kernels::multiply_add<kFma>(a, b, c);
  }
  /// c - a * b, with FMA
  [[gnu::always_inline]] static float negate_multiply_add(float a, float b, float c) { return std::fma(-a, b, c); }
  /// The larger or smaller one; NaN where x is NaN.
  [[gnu::always_inline]] static float at_least(float x, float low) { return x < low ? low : x; }
  [[gnu::always_inline]] static float at_most(float x, float high) { return x > high ? high : x; }
  [[gnu::always_inline]] static float magnitude(float x) { return of(bits(x) & 0x7FFFFFFFU); }
  [[gnu::always_inline]] static float negative_magnitude(float x) { return of(bits(x) | 0x80000000U); }
  /// `magnitude` has no sign yet.
  [[gnu::always_inline]] static float with_sign_of(float magnitude, float x) {
    return of(bits(magnitude) | (bits(x) & 0x80000000U));
  }
  /// By the sign bit, that of a NaN too.
  [[gnu::always_inline]] static float choose_negative(float x, float if_negative, float otherwise) {
    return static_cast<int32_t>(bits(x)) < 0 ? if_negative : otherwise;
  }
  [[gnu::always_inline]] static float add_bits(float a, float b) { return of(bits(a) + bits(b)); }
  [[gnu::always_inline]] static float subtract_bits(float a, float b) { return of(bits(a) - bits(b)); }
  [[gnu::always_inline]] static float shift_bits_left(float a, int by) { return of(bits(a) << by); }
  [[gnu::always_inline]] static float shift_bits_right(float a, int by) { return of(bits(a) >> by); }

 private:
  [[gnu::always_inline]] static uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
  [[gnu::always_inline]] static float of(uint32_t x) { return std::bit_cast<float>(x); }
};

/// first + rest[0] x + rest[1] x^2 + ... by Horner's rule. No loop: the loop around it must have none to be vectorised.
template <class Machine>
[[gnu::always_inline]] inline typename Machine::Value polynomial_recipe(Machine& m, typename Machine::Value /*x*/,
                                                                        float first) {
  return m.constant(first);
}
template <class Machine, class... Rest>
[[gnu::always_inline]] inline typename Machine::Value polynomial_recipe(Machine& m, typename Machine::Value x,
                                                                        float first, Rest... rest) {
  const auto sum = polynomial_recipe(m, x, rest...);
  return m.multiply_add(sum, x, m.constant(first));
}

/// Adding it leaves a whole number, |x| below 2^22, in the low bits of the sum: numbers this large have no bits behind
/// the point.
inline constexpr float kNoFractionOfFloat = 0x1.8p23F;

/// e^x = 2^k (1 + p): k is in the low bits of `shifted`.
template <class Value>
struct ReducedExp {
  Value p;
  Value shifted;
};

/// e^x = 2^k e^r with k whole and |r| at most log(2) / 2 (Cody and Waite: log 2 in two parts, so that r is nearly
/// exact); e^r = 1 + r + r^2 q(r). |x| is below 2^20.
template <class Machine, class Value = typename Machine::Value>
[[gnu::always_inline]] inline ReducedExp<Value> reduced_exp_recipe(Machine& m, Value x) {
  const Value shifted = m.multiply_add(x, m.constant(0x1.715476p0F), m.constant(kNoFractionOfFloat));
  const Value k = m.subtract(shifted, m.constant(kNoFractionOfFloat));
  const Value high = m.multiply_add(k, m.constant(-0x1.62e4p-1F), x);
  const Value r = m.multiply_add(k, m.constant(-0x1.7f7d1cp-20F), high);
  const Value q =
      polynomial_recipe(m, r, 0.5F, 0x1.555556p-3F, 0x1.55548p-5F, 0x1.11107ep-7F, 0x1.6d9656p-10F, 0x1.a1b7ep-13F);
  const Value square = m.multiply(r, r);
  return {m.multiply_add(square, q, r), shifted};
}

/// 2^k for the k that is in the low bits of `shifted`, from -126 to 127.
template <class Machine, class Value = typename Machine::Value>
[[gnu::always_inline]] inline Value power_of_two_recipe(Machine& m, Value shifted) {
  constexpr uint32_t kBias = 127;
  constexpr int kMantissaBits = 23;
  return m.shift_bits_left(m.add_bits(shifted, m.constant(std::bit_cast<float>(kBias))), kMantissaBits);
}

/// In two factors of about half the exponent, so that results below the normal range are rounded once and those above
/// it are infinite: k has one exponent bit more than a float.
template <class Machine, class Value = typename Machine::Value>
[[gnu::always_inline]] inline Value exp_recipe(Machine& m, Value x) {
  const Value low = m.at_least(x, m.constant(-104.0F));
  const ReducedExp<Value> e = reduced_exp_recipe(m, m.at_most(low, m.constant(89.0F)));
  const Value half = m.shift_bits_right(e.shifted, 1);
  const Value rest = m.subtract_bits(e.shifted, half);
  const Value scaled = m.multiply(m.add(e.p, m.constant(1.0F)), power_of_two_recipe(m, half));
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

/// 1 / (1 + e^-x), through e^-|x| so that tails keep their precision. With FMA the quotient gets
/// back what rounding the denominator and the division lost.
template <class Machine, class Value = typename Machine::Value>
[[gnu::always_inline]] inline Value logistic_recipe(Machine& m, Value x) {
  const Value one = m.constant(1.0F);
  const Value e = exp_recipe(m, m.negative_magnitude(x));
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
