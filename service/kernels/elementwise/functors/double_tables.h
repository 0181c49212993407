// Tables of logarithms, powers of two, sines, arctangents and the error function to about 106 bits, made by the
// compiler from their series.
#pragma once

#include <array>
#include <cstdint>

#include "service/kernels/elementwise/functors/double_double.h"

namespace meshd::kernels {

/// A table of numbers with their high and low parts apart, so that lanes gather each by itself.
template <size_t kSize>
struct DoubleTable {
  std::array<double, kSize> high{};
  std::array<double, kSize> low{};
  constexpr void set(size_t i, DoubleDouble value) {
    high[i] = value.high;
    low[i] = value.low;
  }
};

/// x (1 - x^2 / 3 + x^4 / 5 ...), with signs as they are for the arctangent, or all + for its hyperbolic twin.
constexpr DoubleDouble arctangent_series(DoubleDouble x, double sign) {
  const DoubleDouble step = DoubleDouble{sign} * x * x;
  DoubleDouble power = x;
  DoubleDouble sum{};
  for (int n = 1; power.high * power.high > 0x1p-240; n += 2) {
    sum = sum + power / n;
    power = power * step;
  }
  return sum;
}

/// pi / 4 (Machin)
inline constexpr DoubleDouble kQuarterPi =
    DoubleDouble{4} * arctangent_series(DoubleDouble{1} / 5, -1) + -arctangent_series(DoubleDouble{1} / 239, -1);
/// log 2 = 2 artanh(1/3)
inline constexpr DoubleDouble kLogTwo = DoubleDouble{2} * arctangent_series(DoubleDouble{1} / 3, 1);

/// -log(inverse) for inverse = i / 128, 88 <= i <= 184, from log((i + 1) / i) = 2 artanh(1 / (2 i + 1)).
inline constexpr int64_t kFirstInverse = 88;
inline constexpr auto kLogTable = [] {
  DoubleTable<97> table;
  DoubleDouble log{};
  for (int64_t i = 128; i > kFirstInverse; --i) {
    log = log + DoubleDouble{2} * arctangent_series(DoubleDouble{1} / static_cast<double>(2 * i - 1), 1);
    table.set(static_cast<size_t>(i - 1 - kFirstInverse), log);
  }
  log = {};
  for (int64_t i = 128; i < kFirstInverse + 96; ++i) {
    log = log + -(DoubleDouble{2} * arctangent_series(DoubleDouble{1} / static_cast<double>(2 * i + 1), 1));
    table.set(static_cast<size_t>(i + 1 - kFirstInverse), log);
  }
  return table;
}();

/// 2^(i / 128)
inline constexpr auto kPowerTable = [] {
  DoubleTable<128> table;
  for (size_t i = 0; i < 128; ++i) {
    const DoubleDouble x = DoubleDouble{static_cast<double>(i)} * kLogTwo / 128;
    DoubleDouble term{1};
    DoubleDouble sum{};
    for (int n = 1; n < 30; ++n) {
      sum = sum + term;
      term = term * x / n;
    }
    table.set(i, sum);
  }
  return table;
}();

/// sin(i pi / 32); the cosine is 16 further.
inline constexpr auto kSineTable = [] {
  DoubleTable<64> table;
  for (size_t i = 0; i <= 16; ++i) {
    const DoubleDouble x = DoubleDouble{static_cast<double>(i)} * kQuarterPi / 8;
    DoubleDouble term = x;
    DoubleDouble sum{};
    for (int n = 2; n < 34; n += 2) {
      sum = sum + term;
      term = -(term * x * x) / (n * (n + 1.0));
    }
    table.set(i, sum);
    table.set((32 - i) % 32, sum);
    table.set(32 + i, -sum);
    table.set((64 - i) % 64, i == 0 ? sum : -sum);
  }
  table.set(0, {});
  table.set(32, {});
  return table;
}();

/// arctan(i / 64), 0 <= i <= 64, from arctan a - arctan b = arctan((a - b) / (1 + a b)). Lanes that have no
/// quotient, such as zero by zero, look up any 7 bits before their result is dropped, so there are 128 places.
inline constexpr auto kArctangentTable = [] {
  DoubleTable<128> table;
  DoubleDouble angle{};
  for (int i = 1; i <= 64; ++i) {
    angle = angle + arctangent_series(DoubleDouble{64} / (4096.0 + i * (i - 1)), -1);
    table.set(static_cast<size_t>(i), angle);
  }
  return table;
}();

/// erf(i / 16) and its slope 2 / sqrt(pi) e^(-(i / 16)^2), 0 <= i <= 96.
struct ErrorFunctionTable {
  DoubleTable<97> value;
  DoubleTable<97> slope;
};
inline constexpr auto kErrorFunctionTable = [] {
  ErrorFunctionTable table;
  // 1 / sqrt(pi) by Newton's steps from a double.
  DoubleDouble inverse_root{0x1.20dd750429b6dp-1};
  for (int step = 0; step < 2; ++step) {
    const DoubleDouble off = DoubleDouble{1} + -(DoubleDouble{4} * kQuarterPi * inverse_root * inverse_root);
    inverse_root = inverse_root + inverse_root * off / 2;
  }
  for (size_t i = 0; i <= 96; ++i) {
    const double c = static_cast<double>(i) / 16;
    // e^(-c^2) as the 64th power of a series that converges fast.
    DoubleDouble term{1};
    DoubleDouble power{};
    for (int n = 1; n < 30; ++n) {
      power = power + term;
      term = term * DoubleDouble{-c * c / 64} / n;
    }
    for (int square = 0; square < 6; ++square) power = power * power;
    const DoubleDouble slope = DoubleDouble{2} * inverse_root * power;
    // c (1 + 2 c^2 / 3 + (2 c^2)^2 / (3 5) + ...), all of one sign
    DoubleDouble sum{};
    DoubleDouble part{c};
    for (int n = 1; part.high > 0x1p-110 * sum.high; n += 2) {
      sum = sum + part;
      part = part * DoubleDouble{2 * c * c} / (n + 2.0);
    }
    table.value.set(i, slope * sum);
    table.slope.set(i, slope);
  }
  return table;
}();

}  // namespace meshd::kernels
