// Conversions between all pairs of types against one description of what a conversion is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "service/kernels/elementwise/reduce_precision.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/half.h"
#include "tests/unit/kernels/scalar_support.h"

namespace meshd::kernels {
namespace {

using tensor::DType;
using Bytes = std::vector<std::byte>;

/// Wide enough for every value of every type.
using Number = long double;

template <class T>
T load(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, sizeof(T));
  return value;
}

double float8_value(DType dtype, uint8_t code) {
  return dtype == DType::kFloat8E8M0FNU ? tensor::decode_float8_e8m0(code)
                                        : tensor::decode_float(tensor::float_format(dtype), code);
}

/// The value of an element; of a complex one its real part.
Number value_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUint8:
      return load<uint8_t>(at);
    case DType::kInt2:
    case DType::kInt4:
    case DType::kInt8:
      return load<int8_t>(at);
    case DType::kUint2:
    case DType::kUint4:
      return load<uint8_t>(at);
    case DType::kInt16:
      return load<int16_t>(at);
    case DType::kInt32:
      return load<int32_t>(at);
    case DType::kInt64:
      return static_cast<Number>(load<int64_t>(at));
    case DType::kUint16:
      return load<uint16_t>(at);
    case DType::kUint32:
      return load<uint32_t>(at);
    case DType::kUint64:
      return static_cast<Number>(load<uint64_t>(at));
    case DType::kFloat32:
    case DType::kComplex64:
      return static_cast<Number>(load<float>(at));
    case DType::kFloat64:
    case DType::kComplex128:
      return static_cast<Number>(load<double>(at));
    case DType::kFloat16:
    case DType::kBfloat16:
      return static_cast<Number>(tensor::decode_float(tensor::float_format(dtype), load<uint16_t>(at)));
    default:
      return static_cast<Number>(tensor::float8_values(dtype)[load<uint8_t>(at)]);
  }
}

/// What a value becomes in a type: an integer wraps, a float is cut and held at the ends of the range, NaN is 0.
Number as_integer(DType out, Number x, bool from_integer) {
  const int bits = tensor::row(out).bits;
  const bool is_signed = tensor::is_signed_integer(out);
  const Number low = is_signed ? -std::ldexp(Number{1}, bits - 1) : 0;
  const Number high = std::ldexp(Number{1}, is_signed ? bits - 1 : bits) - 1;
  if (!from_integer) return std::isnan(x) ? 0 : std::clamp(std::trunc(x), low, high);
  // Every integer type fits in the digits of a Number, so halves of the range may be told apart after a cast.
  const auto code = x < 0 ? static_cast<uint64_t>(static_cast<int64_t>(x)) : static_cast<uint64_t>(x);
  const uint64_t kept = bits == 64 ? code : code & ((uint64_t{1} << bits) - 1);
  if (is_signed && (kept >> (bits - 1)) != 0) return static_cast<Number>(kept) - std::ldexp(Number{1}, bits);
  return static_cast<Number>(kept);
}

Number expected(DType in, DType out, Number x) {
  const bool from_integer = !tensor::is_float(in) && !tensor::is_complex(in);
  if (out == DType::kBool) return x != 0 ? 1 : 0;
  if (tensor::is_integer(out)) return as_integer(out, x, from_integer);
  switch (out) {
    case DType::kFloat64:
    case DType::kComplex128:
      return static_cast<Number>(static_cast<double>(x));
    case DType::kFloat32:
    case DType::kComplex64:
      return static_cast<Number>(static_cast<float>(x));
    case DType::kBfloat16:
      return static_cast<Number>(tensor::bfloat16_to_float(tensor::float_to_bfloat16(static_cast<float>(x))));
    case DType::kFloat16:
      return static_cast<Number>(tensor::decode_float(
          tensor::float_format(tensor::DType::kFloat16),
          tensor::encode_float(tensor::float_format(tensor::DType::kFloat16), static_cast<double>(x))));
    default:
      return static_cast<Number>(float8_value(out, tensor::encode_float8(out, static_cast<double>(x))));
  }
}

/// Every value of narrow types (of 16-bit integers some), special and random ones of wide types.
Bytes samples(DType dtype) {
  const int64_t size = tensor::size_bytes(dtype);
  std::mt19937_64 random(static_cast<uint64_t>(dtype) + 1);
  Bytes bytes;
  const auto add = [&](const auto& value) {
    const auto* const from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + size);
  };
  const int bits = tensor::row(dtype).bits;
  if (bits <= 16) {
    const int step = bits == 16 && tensor::is_integer(dtype) ? 13 : 1;
    for (int code = 0; code < 1 << bits; code += step) {
      const int extended = tensor::is_signed_integer(dtype) && code >= 1 << (bits - 1) ? code - (1 << bits) : code;
      add(static_cast<int64_t>(extended));
    }
    return bytes;
  }
  if (dtype == DType::kFloat32 || dtype == DType::kComplex64) {
    for (const float x : float_samples<float>(4000, 1)) add(std::complex<float>(x, 0.5F));
    for (const float x :
         {127.5F, -128.5F, 255.5F, 256.0F, 32767.5F, 65535.5F, 2147483520.0F, 2147483648.0F, 4294967296.0F,
          9.2233715e18F, 9.2233720e18F, 1.8446743e19F, 1.8446744e19F, -2147483648.0F, -9.2233720e18F}) {
      add(std::complex<float>(x, 0));
    }
  } else if (dtype == DType::kFloat64 || dtype == DType::kComplex128) {
    for (const double x : float_samples<double>(4000, 1)) add(std::complex<double>(x, 0.5));
    for (const double x : {127.99, -128.99, 2147483647.5, -2147483648.5, 4294967295.5, 9.223372036854775e18,
                           9.223372036854775807e18, 1.8446744073709550e19, 1.8446744073709552e19, 1.00390625000001,
                           1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)}) {
      add(std::complex<double>(x, 0));
    }
  } else {
    for (int i = 0; i < 4000; ++i) add(random() >> (random() % 64));
    for (const uint64_t x :
         {~uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 54) + (1U << 30) + 1, uint64_t{0}, uint64_t{1} << 31})
      add(x);
  }
  return bytes;
}

TEST(ScalarConvert, every_pair_of_types_does_what_is_said) {
  for (const tensor::DTypeRow& in : tensor::kDTypeTable) {
    const Bytes from = samples(in.dtype);
    const int64_t count = static_cast<int64_t>(from.size()) / in.bytes;
    for (const tensor::DTypeRow& out : tensor::kDTypeTable) {
      const ScalarKernel kernel = find_scalar_kernel(ScalarOp::kConvert, in.dtype, out.dtype);
      ASSERT_NE(kernel, nullptr);
      Bytes to(static_cast<size_t>(count * out.bytes));
      const std::byte* const operand = from.data();
      kernel(&operand, to.data(), count);
      for (int64_t i = 0; i < count; ++i) {
        const Number x = value_at(in.dtype, from.data() + i * in.bytes);
        const Number want = expected(in.dtype, out.dtype, x);
        const Number got = value_at(out.dtype, to.data() + i * out.bytes);
        const bool signs = !tensor::is_float(out.dtype) || std::signbit(got) == std::signbit(want);
        const bool same = std::isnan(want) ? std::isnan(got) : got == want && signs;
        ASSERT_TRUE(same) << in.name << " -> " << out.name << " of " << x << ": got " << got << ", want " << want;
      }
      // In any part of a run the bits are the same.
      Bytes part(static_cast<size_t>(out.bytes));
      for (const int64_t i : {int64_t{0}, count / 2, count - 1}) {
        const std::byte* const one = from.data() + i * in.bytes;
        kernel(&one, part.data(), 1);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), to.begin() + i * out.bytes)) << in.name << " -> " << out.name;
      }
    }
  }
}

TEST(ScalarConvert, complex_types_keep_both_parts) {
  const std::complex<float> narrow(1.5F, -2.25F);
  std::complex<double> wide;
  const auto* from = reinterpret_cast<const std::byte*>(&narrow);
  find_scalar_kernel(ScalarOp::kConvert, DType::kComplex64, DType::kComplex128)(&from,
                                                                                reinterpret_cast<std::byte*>(&wide), 1);
  EXPECT_EQ(wide, std::complex<double>(1.5, -2.25));
}

TEST(ScalarConvert, bitcasts_keep_bits_and_want_equal_widths) {
  const float one = 1;
  uint32_t bits = 0;
  const auto* from = reinterpret_cast<const std::byte*>(&one);
  find_scalar_kernel(ScalarOp::kBitcast, DType::kFloat32, DType::kUint32)(&from, reinterpret_cast<std::byte*>(&bits),
                                                                          1);
  EXPECT_EQ(bits, 0x3F800000U);
  const auto minus_one = int8_t{-1};
  uint8_t nibble = 0;
  from = reinterpret_cast<const std::byte*>(&minus_one);
  find_scalar_kernel(ScalarOp::kBitcast, DType::kInt4, DType::kUint4)(&from, reinterpret_cast<std::byte*>(&nibble), 1);
  EXPECT_EQ(nibble, 15);
  EXPECT_EQ(find_scalar_kernel(ScalarOp::kBitcast, DType::kFloat32, DType::kFloat64), nullptr);
}

/// Rounding to the exponent and mantissa of another type is a conversion there and back, but for its subnormals.
TEST(ScalarConvert, reduce_precision_agrees_with_conversion_to_the_format) {
  const std::vector<float> x = float_samples<float>(20'000, 9);
  std::vector<float> reduced(x.size());
  const auto run = [&](int exponent, int mantissa) {
    reduce_precision(DType::kFloat32, exponent, mantissa, reinterpret_cast<const std::byte*>(x.data()),
                     reinterpret_cast<std::byte*>(reduced.data()), static_cast<int64_t>(x.size()));
  };
  const auto check = [&](const tensor::FloatFormat& format) {
    run(format.exponent_bits, format.mantissa_bits);
    const double smallest = std::ldexp(1.0, 1 - format.bias);
    for (size_t i = 0; i < x.size(); ++i) {
      const double there_and_back =
          tensor::decode_float(format, tensor::encode_float(format, static_cast<double>(x[i])));
      const double magnitude = std::abs(static_cast<double>(x[i]));
      if (magnitude < smallest && format.exponent_bits < 8) {
        ASSERT_TRUE(reduced[i] == 0 || (std::abs(reduced[i]) == smallest && magnitude > 0.8 * smallest)) << x[i];
      } else if (std::isnan(x[i]))
        EXPECT_TRUE(std::isnan(reduced[i]));
      else
        ASSERT_EQ(static_cast<double>(reduced[i]), there_and_back) << x[i];
    }
  };
  check(tensor::float_format(tensor::DType::kBfloat16));
  check(tensor::float_format(tensor::DType::kFloat16));
  check(tensor::float_format(tensor::DType::kFloat8E5M2));
  run(8, 23);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(std::bit_cast<uint32_t>(reduced[i]), std::bit_cast<uint32_t>(x[i]));
}

}  // namespace
}  // namespace meshd::kernels
