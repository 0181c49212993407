// Narrow floats: every code decoded, every result of encoding held to a search for the nearest code.
#include "service/tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace meshd::tensor {
namespace {

constexpr DType kFloat8Types[] = {DType::kFloat4E2M1FN,  DType::kFloat6E2M3FN,   DType::kFloat6E3M2FN,
                                  DType::kFloat8E3M4,    DType::kFloat8E4M3,     DType::kFloat8E4M3B11FNUZ,
                                  DType::kFloat8E4M3FN,  DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2,
                                  DType::kFloat8E5M2FNUZ};

/// The finite non-negative values of a format with their codes, in order.
std::vector<std::pair<double, uint32_t>> magnitudes(const FloatFormat& format) {
  std::vector<std::pair<double, uint32_t>> values;
  for (uint32_t code = 0; code < 1U << (format.exponent_bits + format.mantissa_bits); ++code) {
    const double value = decode_float(format, code);
    if (std::isfinite(value)) values.emplace_back(value, code);
  }
  return values;
}

TEST(Half, known_values_decode) {
  EXPECT_EQ(decode_float(float_format(DType::kFloat16), 0x3C00), 1);
  EXPECT_EQ(decode_float(float_format(DType::kFloat16), 0x7BFF), 65504);
  EXPECT_EQ(decode_float(float_format(DType::kFloat16), 0x0001), std::ldexp(1, -24));
  EXPECT_EQ(decode_float(float_format(DType::kFloat16), 0xFC00), -INFINITY);
  EXPECT_EQ(decode_float(float_format(DType::kBfloat16), 0x3F80), 1);
  EXPECT_EQ(decode_float(float_format(DType::kFloat8E4M3FN), 0x7E), 448);
  EXPECT_TRUE(std::isnan(decode_float(float_format(DType::kFloat8E4M3FN), 0x7F)));
  EXPECT_EQ(decode_float(float_format(DType::kFloat8E5M2), 0x7B), 57344);
  EXPECT_EQ(decode_float(float_format(DType::kFloat8E5M2), 0x7C), INFINITY);
  EXPECT_EQ(decode_float(float_format(DType::kFloat8E4M3B11FNUZ), 0x7F), 30);
  EXPECT_TRUE(std::isnan(decode_float(float_format(DType::kFloat8E4M3B11FNUZ), 0x80)));
  EXPECT_EQ(decode_float(float_format(DType::kFloat8E4M3FNUZ), 0x7F), 240);
  EXPECT_EQ(decode_float(float_format(DType::kFloat8E5M2FNUZ), 0x7F), 57344);
  EXPECT_EQ(decode_float(float_format(DType::kFloat8E3M4), 0x6F), 15.5);
  EXPECT_EQ(decode_float(float_format(DType::kFloat8E4M3), 0x77), 240);
  EXPECT_EQ(decode_float(float_format(DType::kFloat6E2M3FN), 0x1F), 7.5);
  EXPECT_EQ(decode_float(float_format(DType::kFloat6E2M3FN), 0x21), -0.125);
  EXPECT_EQ(decode_float(float_format(DType::kFloat6E3M2FN), 0x3F), -28);
  EXPECT_EQ(decode_float(float_format(DType::kFloat6E3M2FN), 0x01), 0.0625);
  const std::vector<double> four_bits = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode_float(float_format(DType::kFloat4E2M1FN), code), four_bits[code]);
    EXPECT_EQ(decode_float(float_format(DType::kFloat4E2M1FN), code | 0xF8), -four_bits[code]) << "upper bits";
  }
  EXPECT_EQ(decode_float8_e8m0(0x7F), 1);
  EXPECT_EQ(decode_float8_e8m0(0x00), std::ldexp(1, -127));
  EXPECT_TRUE(std::isnan(decode_float8_e8m0(0xFF)));
}

TEST(Half, every_code_survives_decoding_and_encoding) {
  for (const DType dtype : kFloat8Types) {
    for (uint32_t code = 0; code < 1U << row(dtype).bits; ++code) {
      const double value = decode_float(float_format(dtype), code);
      const uint32_t back = encode_float8(dtype, value);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(decode_float(float_format(dtype), back))) << name(dtype) << code;
      else
        EXPECT_EQ(back, code) << name(dtype);
    }
  }
  for (uint32_t code = 0; code < 256; ++code) {
    EXPECT_EQ(encode_float8_e8m0(decode_float8_e8m0(static_cast<uint8_t>(code))), code);
  }
  for (const FloatFormat& format : {float_format(DType::kFloat16), float_format(DType::kBfloat16)}) {
    for (uint32_t code = 0; code < 65536; ++code) {
      const double value = decode_float(format, code);
      const uint32_t back = encode_float(format, value);
      if (std::isnan(value))
        ASSERT_TRUE(std::isnan(decode_float(format, back)));
      else
        ASSERT_EQ(back, code);
    }
  }
}

/// Half way between two neighbours goes to the even code, a little more or less to the nearer; beyond the last as to a
/// next one.
void check_roundings(const FloatFormat& format, const std::string& what) {
  const auto values = magnitudes(format);
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const auto [low, low_code] = values[i];
    const auto [high, high_code] = values[i + 1];
    const double middle = low + (high - low) / 2;
    ASSERT_EQ(encode_float(format, middle), low_code % 2 == 0 ? low_code : high_code) << what << " " << middle;
    ASSERT_EQ(encode_float(format, std::nextafter(middle, high)), high_code) << what << " " << middle;
    ASSERT_EQ(encode_float(format, std::nextafter(middle, low)), low_code) << what << " " << middle;
  }
  const double last = values.back().first;
  const double step = last - values[values.size() - 2].first;
  const double beyond = decode_float(format, encode_float(format, last + step));
  const double edge = decode_float(format, encode_float(format, std::nextafter(last + step / 2, 0)));
  EXPECT_EQ(edge, last) << what;
  if (format.specials == FloatSpecials::kIeee)
    EXPECT_EQ(beyond, INFINITY) << what;
  else if (format.specials == FloatSpecials::kNone)
    EXPECT_EQ(beyond, last) << what;
  else
    EXPECT_TRUE(std::isnan(beyond)) << what;
}

TEST(Half, encoding_rounds_to_nearest_even_between_all_neighbours) {
  check_roundings(float_format(DType::kFloat16), "float16");
  check_roundings(float_format(DType::kBfloat16), "bfloat16");
  for (const DType dtype : kFloat8Types) check_roundings(float_format(dtype), std::string(name(dtype)));
}

/// As XLA converts on CPU, whatever the sign of the NaN.
TEST(Half, formats_of_numbers_only_hold_infinity_at_the_largest_and_make_nan_a_negative_zero) {
  for (const DType dtype : {DType::kFloat4E2M1FN, DType::kFloat6E2M3FN, DType::kFloat6E3M2FN}) {
    const auto sign = static_cast<uint32_t>(sign_bit(dtype));
    for (const double nan : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::quiet_NaN()})
      EXPECT_EQ(encode_float8(dtype, nan), sign) << name(dtype);
    EXPECT_EQ(encode_float8(dtype, INFINITY), sign - 1) << name(dtype);
    EXPECT_EQ(encode_float8(dtype, -1e300), 2 * sign - 1) << name(dtype);
    EXPECT_EQ(encode_float8(dtype, -1e-300), sign) << name(dtype);
    EXPECT_EQ(infinity_bits(dtype), std::nullopt);
  }
}

TEST(Half, float8_e8m0_rounds_ties_up_and_knows_no_zero) {
  EXPECT_EQ(encode_float8_e8m0(1.5), 128);
  EXPECT_EQ(encode_float8_e8m0(1.49), 127);
  EXPECT_EQ(encode_float8_e8m0(3), 129);
  EXPECT_EQ(encode_float8_e8m0(1e-45), 0);
  for (const double none : {0.0, -0.0, -1.0, 1e39, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    EXPECT_EQ(encode_float8_e8m0(none), 0xFF) << none;
  }
}

/// The fast paths of 16-bit floats are those of the general routine, for every code and around every rounding boundary.
TEST(Half, fast_conversions_agree_with_the_general_ones) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const auto half = static_cast<uint16_t>(code);
    const auto exact16 = static_cast<float>(decode_float(float_format(DType::kFloat16), code));
    const auto exactb = static_cast<float>(decode_float(float_format(DType::kBfloat16), code));
    if (std::isnan(exact16))
      ASSERT_TRUE(std::isnan(float16_to_float(half)));
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(float16_to_float(half)), std::bit_cast<uint32_t>(exact16)) << code;
    if (std::isnan(exactb))
      ASSERT_TRUE(std::isnan(bfloat16_to_float(half)));
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(bfloat16_to_float(half)), std::bit_cast<uint32_t>(exactb)) << code;
  }
  // Floats whose lower bits are all kinds of rests.
  for (uint32_t upper = 0; upper < 65536 * 8; ++upper) {
    for (const uint32_t rest : {0x0U, 0x1U, 0xFFFU, 0x1000U, 0x1001U, 0x1FFFU}) {
      const auto value = std::bit_cast<float>((upper << 13) | rest);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(float16_to_float(float_to_float16(value))));
        ASSERT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(value))));
        continue;
      }
      ASSERT_EQ(float_to_float16(value), encode_float(float_format(DType::kFloat16), static_cast<double>(value)))
          << value;
      ASSERT_EQ(float_to_bfloat16(value), encode_float(float_format(DType::kBfloat16), static_cast<double>(value)))
          << value;
    }
  }
}

TEST(DTypeTable, formats_give_one_and_infinity) {
  EXPECT_EQ(one_bits(DType::kFloat16), 0x3C00U);
  EXPECT_EQ(one_bits(DType::kBfloat16), 0x3F80U);
  EXPECT_EQ(one_bits(DType::kFloat32), std::bit_cast<uint32_t>(1.0F));
  EXPECT_EQ(one_bits(DType::kFloat64), std::bit_cast<uint64_t>(1.0));
  EXPECT_EQ(infinity_bits(DType::kBfloat16), 0x7F80U);
  EXPECT_EQ(infinity_bits(DType::kFloat64), std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(infinity_bits(DType::kFloat8E4M3FN), std::nullopt);
  EXPECT_EQ(infinity_bits(DType::kInt32), std::nullopt);
  for (const DTypeRow& row : kDTypeTable) {
    if (!is_float(row.dtype)) continue;
    const int sign = row.format.specials == FloatSpecials::kPowersOfTwo ? 0 : 1;
    EXPECT_EQ(row.format.exponent_bits + row.format.mantissa_bits + sign, row.bits) << row.name;
    if (row.bits > 16 || sign == 0) continue;
    EXPECT_EQ(decode_float(row.format, static_cast<uint32_t>(one_bits(row.dtype))), 1) << row.name;
  }
}

TEST(DTypeTable, integers_are_held_by_the_integer_of_their_bytes_and_sign) {
  for (const DTypeRow& row : kDTypeTable) {
    const bool is_held = with_integer(
        row.dtype,
        [&]<typename T>(T) {
          return sizeof(T) == static_cast<size_t>(row.bytes) &&
                 std::is_signed_v<T> == (row.kind == DTypeClass::kSigned);
        },
        [&] { return false; });
    EXPECT_EQ(is_held, is_integer(row.dtype) || row.dtype == DType::kBool) << row.name;
  }
}

}  // namespace
}  // namespace meshd::tensor
