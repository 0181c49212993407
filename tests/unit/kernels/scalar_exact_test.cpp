// What has one right answer: arithmetic of integers and floats, comparisons, and that nothing depends on a place in a
// run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>

#include "service/core/error.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/half.h"
#include "tests/unit/kernels/scalar_support.h"

namespace meshd::kernels {
namespace {

using tensor::DType;
using Bytes = std::vector<std::byte>;

/// Room for every product of 64-bit integers.
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

/// Values of any type: numbers of a float64 sample converted to it, then its own extremes.
Bytes sample_bytes(DType dtype, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  const auto size = static_cast<size_t>(tensor::size_bytes(dtype));
  Bytes bytes(static_cast<size_t>(count) * size);
  std::vector<double> numbers = float_samples<double>(static_cast<int>(count), seed);
  numbers.resize(static_cast<size_t>(count));
  std::shuffle(numbers.begin(), numbers.end(), random);
  if (tensor::is_complex(dtype)) {
    const std::vector<double> imaginary = float_samples<double>(static_cast<int>(count), seed + 1);
    const ScalarOp op = ScalarOp::kComplex;
    std::vector<std::complex<double>> pairs(numbers.size());
    const std::byte* parts[] = {reinterpret_cast<const std::byte*>(numbers.data()),
                                reinterpret_cast<const std::byte*>(imaginary.data())};
    find_scalar_kernel(op, DType::kFloat64, DType::kComplex128)(parts, reinterpret_cast<std::byte*>(pairs.data()),
                                                                count);
    const auto* const from = reinterpret_cast<const std::byte*>(pairs.data());
    find_scalar_kernel(ScalarOp::kConvert, DType::kComplex128, dtype)(&from, bytes.data(), count);
    return bytes;
  }
  const auto* const from = reinterpret_cast<const std::byte*>(numbers.data());
  find_scalar_kernel(ScalarOp::kConvert, DType::kFloat64, dtype)(&from, bytes.data(), count);
  return bytes;
}

/// Every op of every type: a run from any place and of any length has the bits of the whole run.
TEST(ScalarKernels, bits_do_not_depend_on_the_place_in_a_run) {
  constexpr int64_t kCount = 300;
  int kernels = 0;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    for (size_t k = 0; k < scalar_op_count(); ++k) {
      const auto op = static_cast<ScalarOp>(k);
      if (op == ScalarOp::kConvert || op == ScalarOp::kBitcast) continue;
      const DType out = result_dtype(op, row.dtype);
      const ScalarKernel kernel = find_scalar_kernel(op, row.dtype, out);
      if (kernel == nullptr) continue;
      ++kernels;
      std::vector<Bytes> operands;
      std::vector<int64_t> sizes;
      for (int i = 0; i < operand_count(op); ++i) {
        const DType dtype = op == ScalarOp::kSelect && i == 0 ? DType::kBool : row.dtype;
        operands.push_back(sample_bytes(dtype, kCount, static_cast<uint32_t>(10 * k) + static_cast<uint32_t>(i)));
        sizes.push_back(tensor::size_bytes(dtype));
      }
      const int64_t size = tensor::size_bytes(out);
      const auto run = [&](int64_t begin, int64_t count, std::byte* result) {
        std::vector<const std::byte*> pointers;
        for (size_t i = 0; i < operands.size(); ++i) pointers.push_back(operands[i].data() + begin * sizes[i]);
        kernel(pointers.data(), result, count);
      };
      Bytes whole(static_cast<size_t>(kCount * size));
      run(0, kCount, whole.data());
      for (const auto& [begin, count] : std::vector<std::pair<int64_t, int64_t>>{
               {0, 1}, {1, 63}, {63, 64}, {64, 65}, {100, 7}, {128, 172}, {299, 1}}) {
        Bytes part(static_cast<size_t>(count * size), std::byte{0x5A});
        run(begin, count, part.data());
        ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + begin * size))
            << name(op) << " of " << row.name << " at " << begin << " for " << count;
      }
      // In place of an operand of the same size.
      for (size_t i = 0; i < operands.size(); ++i) {
        if (sizes[i] != size) continue;
        Bytes taken = operands[i];
        std::vector<const std::byte*> pointers;
        for (const Bytes& operand : operands) pointers.push_back(operand.data());
        pointers[i] = taken.data();
        kernel(pointers.data(), taken.data(), kCount);
        ASSERT_EQ(taken, whole) << name(op) << " of " << row.name << " in place of operand " << i;
      }
    }
  }
  std::printf("%d kernels\n", kernels);
  EXPECT_GT(kernels, 900);
}

/// Integers of any width against arithmetic in 128 bits, wrapped to the width.
template <class T>
class IntegerReference {
 public:
  static T wrap(Wide value) { return static_cast<T>(static_cast<uint64_t>(value)); }

  static void check(ScalarOp op, DType dtype, const std::function<Wide(Wide, Wide)>& exact) {
    std::vector<T> a;
    std::vector<T> b;
    const std::vector<T> values = samples();
    for (const T left : values) {
      for (const T right : values) {
        a.push_back(left);
        b.push_back(right);
      }
    }
    const std::vector<T> got = operand_count(op) == 1 ? run_op<T>(op, dtype, a) : run_op<T>(op, dtype, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(got[i], wrap(exact(a[i], b[i])))
          << name(op) << " of " << tensor::name(dtype) << " " << +a[i] << ", " << +b[i];
    }
  }

 private:
  static std::vector<T> samples() {
    using Limits = std::numeric_limits<T>;
    std::vector<T> values = {T(0),
                             T(1),
                             T(2),
                             T(3),
                             T(5),
                             T(7),
                             T(8),
                             T(15),
                             T(16),
                             T(31),
                             T(32),
                             T(63),
                             T(64),
                             T(100),
                             static_cast<T>(-1),
                             static_cast<T>(-2),
                             static_cast<T>(-7),
                             static_cast<T>(-8),
                             Limits::max(),
                             Limits::min(),
                             static_cast<T>(Limits::max() - 1),
                             static_cast<T>(Limits::min() + 1)};
    std::mt19937_64 random(1);
    for (int i = 0; i < 20; ++i) values.push_back(static_cast<T>(random()));
    return values;
  }
};

template <class T>
void check_integers(DType dtype) {
  using Reference = IntegerReference<T>;
  constexpr int kBits = sizeof(T) * 8;
  const auto as_bits = [](Wide x) { return static_cast<Wide>(static_cast<std::make_unsigned_t<T>>(x)); };
  const auto as_signed = [](Wide x) { return static_cast<Wide>(static_cast<std::make_signed_t<T>>(x)); };
  Reference::check(ScalarOp::kAdd, dtype, [](Wide a, Wide b) { return a + b; });
  Reference::check(ScalarOp::kSubtract, dtype, [](Wide a, Wide b) { return a - b; });
  Reference::check(ScalarOp::kMultiply, dtype,
                   [](Wide a, Wide b) { return Wide(static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b)); });
  Reference::check(ScalarOp::kDivide, dtype, [](Wide a, Wide b) { return b == 0 ? Wide{-1} : a / b; });
  Reference::check(ScalarOp::kRemainder, dtype, [](Wide a, Wide b) { return b == 0 ? a : a % b; });
  Reference::check(ScalarOp::kMaximum, dtype, [](Wide a, Wide b) { return std::max(a, b); });
  Reference::check(ScalarOp::kMinimum, dtype, [](Wide a, Wide b) { return std::min(a, b); });
  Reference::check(ScalarOp::kAnd, dtype, [](Wide a, Wide b) { return a & b; });
  Reference::check(ScalarOp::kOr, dtype, [](Wide a, Wide b) { return a | b; });
  Reference::check(ScalarOp::kXor, dtype, [](Wide a, Wide b) { return a ^ b; });
  Reference::check(scalar_op("not"), dtype, [](Wide a, Wide) { return ~a; });
  Reference::check(ScalarOp::kNegate, dtype, [](Wide a, Wide) { return -a; });
  Reference::check(ScalarOp::kAbs, dtype, [](Wide a, Wide) { return a < 0 ? -a : a; });
  Reference::check(scalar_op("sign"), dtype, [](Wide a, Wide) { return Wide(a > 0) - Wide(a < 0); });
  Reference::check(ScalarOp::kShiftLeft, dtype,
                   [&](Wide a, Wide b) { return as_bits(b) >= kBits ? 0 : as_bits(a) << as_bits(b); });
  Reference::check(ScalarOp::kShiftRightLogical, dtype,
                   [&](Wide a, Wide b) { return as_bits(b) >= kBits ? 0 : as_bits(a) >> as_bits(b); });
  Reference::check(scalar_op("shift_right_arithmetic"), dtype,
                   [&](Wide a, Wide b) { return as_signed(a) >> std::min<Wide>(as_bits(b), kBits - 1); });
  Reference::check(scalar_op("popcnt"), dtype,
                   [&](Wide a, Wide) { return std::popcount(static_cast<uint64_t>(as_bits(a))); });
  Reference::check(scalar_op("count_leading_zeros"), dtype,
                   [&](Wide a, Wide) { return std::countl_zero(static_cast<uint64_t>(as_bits(a))) - (64 - kBits); });
  Reference::check(ScalarOp::kPower, dtype, [](Wide a, Wide b) {
    if (b < 0) return a == 1 ? Wide{1} : a == -1 ? (b % 2 == 0 ? Wide{1} : Wide{-1}) : Wide{0};
    UnsignedWide result = 1;
    UnsignedWide factor = static_cast<UnsignedWide>(a);
    for (; b > 0; b >>= 1) {
      if ((b & 1) != 0) result *= factor;
      factor *= factor;
    }
    return static_cast<Wide>(result);
  });
}

TEST(ScalarKernels, integers_wrap_and_answer_as_xla_where_stablehlo_is_silent) {
  check_integers<int8_t>(DType::kInt8);
  check_integers<int16_t>(DType::kInt16);
  check_integers<int32_t>(DType::kInt32);
  check_integers<int64_t>(DType::kInt64);
  check_integers<uint8_t>(DType::kUint8);
  check_integers<uint16_t>(DType::kUint16);
  check_integers<uint32_t>(DType::kUint32);
  check_integers<uint64_t>(DType::kUint64);
}

/// All pairs of values of 2 and 4 bits against the same op in 8 bits, where the width does not matter, and by hand
/// where it does.
TEST(ScalarKernels, integers_of_few_bits_wrap_to_their_width) {
  const auto run = [](ScalarOp op, DType dtype, int a, int b) {
    return static_cast<int>(run_op<int8_t>(op, dtype, std::vector<int8_t>{static_cast<int8_t>(a)},
                                           std::vector<int8_t>{static_cast<int8_t>(b)})[0]);
  };
  EXPECT_EQ(run(ScalarOp::kAdd, DType::kInt4, 7, 1), -8);
  EXPECT_EQ(run(ScalarOp::kAdd, DType::kUint4, 15, 1), 0);
  EXPECT_EQ(run(ScalarOp::kMultiply, DType::kInt2, 1, -2), -2);
  EXPECT_EQ(run(ScalarOp::kDivide, DType::kUint4, 5, 0), 15);
  EXPECT_EQ(run(ScalarOp::kDivide, DType::kInt4, -8, -1), -8);
  EXPECT_EQ(run(ScalarOp::kShiftLeft, DType::kInt4, 3, 2), -4);
  EXPECT_EQ(run(ScalarOp::kShiftLeft, DType::kInt4, 1, 4), 0);
  EXPECT_EQ(run(ScalarOp::kShiftRightLogical, DType::kInt4, -1, 1), 7);
  EXPECT_EQ(run(ScalarOp::kShiftRightLogical, DType::kInt4, -1, 4), 0);
  EXPECT_EQ(run(scalar_op("shift_right_arithmetic"), DType::kInt4, -8, 2), -2);
  EXPECT_EQ(run(scalar_op("shift_right_arithmetic"), DType::kUint4, 8, 2), 14);
  EXPECT_EQ(run(scalar_op("popcnt"), DType::kInt4, -1, 0), 4);
  EXPECT_EQ(run(scalar_op("count_leading_zeros"), DType::kUint4, 1, 0), 3);
  EXPECT_EQ(run(scalar_op("count_leading_zeros"), DType::kUint2, 0, 0), 2);
  EXPECT_EQ(run(scalar_op("not"), DType::kUint2, 1, 0), 2);
  EXPECT_EQ(run(ScalarOp::kMaximum, DType::kInt4, -8, 7), 7);
}

template <class T>
void check_floats(DType dtype) {
  const std::vector<T> some = float_samples<T>(1500, 5);
  std::vector<T> a;
  std::vector<T> b;
  for (size_t i = 0; i < some.size(); ++i) {
    for (const size_t j : {i, (i * 7 + 3) % 40, (i * 31 + 11) % some.size()}) {
      a.push_back(some[i]);
      b.push_back(some[j]);
    }
  }
  for (size_t i = 0; i < 34; ++i) {
    for (size_t j = 0; j < 34; ++j) {
      a.push_back(some[i]);
      b.push_back(some[j]);
    }
  }
  const auto check = [&](ScalarOp op, const std::function<T(T, T)>& exact) {
    const std::vector<T> got = operand_count(op) == 1 ? run_op<T>(op, dtype, a) : run_op<T>(op, dtype, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const T want = exact(a[i], b[i]);
      const bool same =
          std::isnan(want) ? std::isnan(got[i]) : std::bit_cast<BitsOf<T>>(got[i]) == std::bit_cast<BitsOf<T>>(want);
      ASSERT_TRUE(same) << name(op) << " of " << a[i] << ", " << b[i] << ": got " << got[i] << ", want " << want;
    }
  };
  check(ScalarOp::kAdd, [](T x, T y) { return x + y; });
  check(ScalarOp::kSubtract, [](T x, T y) { return x - y; });
  check(ScalarOp::kMultiply, [](T x, T y) { return x * y; });
  check(ScalarOp::kDivide, [](T x, T y) { return x / y; });
  check(ScalarOp::kRemainder, [](T x, T y) { return std::fmod(x, y); });
  check(scalar_op("square"), [](T x, T) { return x * x; });
  check(ScalarOp::kAbs, [](T x, T) { return std::fabs(x); });
  check(ScalarOp::kNegate, [](T x, T) { return -x; });
  check(scalar_op("sign"), [](T x, T) { return x == 0 || std::isnan(x) ? x : std::copysign(T{1}, x); });
  check(ScalarOp::kFloor, [](T x, T) { return std::floor(x); });
  check(scalar_op("ceil"), [](T x, T) { return std::ceil(x); });
  check(scalar_op("round_nearest_afz"), [](T x, T) { return std::round(x); });
  check(scalar_op("round_nearest_even"), [](T x, T) { return std::nearbyint(x); });
  check(ScalarOp::kNextAfter, [](T x, T y) { return std::nextafter(x, y); });
  check(ScalarOp::kMaximum, [](T x, T y) {
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    return x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
  });
  check(ScalarOp::kMinimum, [](T x, T y) {
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    return x == y ? (std::signbit(x) ? x : y) : std::min(x, y);
  });
  const auto check_bool = [&](ScalarOp op, const std::function<bool(T, T)>& exact) {
    const std::vector<uint8_t> got =
        operand_count(op) == 1 ? run_op<uint8_t>(op, dtype, a) : run_op<uint8_t>(op, dtype, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(got[i], exact(a[i], b[i]) ? 1 : 0) << name(op) << " of " << a[i] << ", " << b[i];
    }
  };
  const auto key = [](T x) {
    const auto bits = static_cast<Wide>(std::bit_cast<BitsOf<T>>(x));
    return bits < 0 ? -(bits - std::numeric_limits<BitsOf<T>>::min()) - 1 : bits;
  };
  check_bool(scalar_op("is_finite"), [](T x, T) { return std::isfinite(x); });
  check_bool(ScalarOp::kCompareEq, [](T x, T y) { return x == y; });
  check_bool(ScalarOp::kCompareNe, [](T x, T y) { return x != y; });
  check_bool(ScalarOp::kCompareLt, [](T x, T y) { return x < y; });
  check_bool(ScalarOp::kCompareLe, [](T x, T y) { return x <= y; });
  check_bool(ScalarOp::kCompareGt, [](T x, T y) { return x > y; });
  check_bool(ScalarOp::kCompareGe, [](T x, T y) { return x >= y; });
  check_bool(ScalarOp::kTotalEq, [&](T x, T y) { return key(x) == key(y); });
  check_bool(ScalarOp::kTotalNe, [&](T x, T y) { return key(x) != key(y); });
  check_bool(ScalarOp::kTotalLt, [&](T x, T y) { return key(x) < key(y); });
  check_bool(ScalarOp::kTotalLe, [&](T x, T y) { return key(x) <= key(y); });
  check_bool(ScalarOp::kTotalGt, [&](T x, T y) { return key(x) > key(y); });
  check_bool(ScalarOp::kTotalGe, [&](T x, T y) { return key(x) >= key(y); });
}

TEST(ScalarKernels, floats_have_the_bits_of_ieee_754) {
  check_floats<float>(DType::kFloat32);
  check_floats<double>(DType::kFloat64);
}

/// Narrow floats: the op in double, rounded once, is the right answer for ops that IEEE 754 rounds.
TEST(ScalarKernels, narrow_floats_round_once) {
  const std::vector<std::pair<ScalarOp, double (*)(double, double)>> ops = {
      {ScalarOp::kAdd, [](double a, double b) { return a + b; }},
      {ScalarOp::kSubtract, [](double a, double b) { return a - b; }},
      {ScalarOp::kMultiply, [](double a, double b) { return a * b; }},
      {ScalarOp::kDivide, [](double a, double b) { return a / b; }},
      {ScalarOp::kMaximum, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }},
      {scalar_op("sqrt"), [](double a, double) { return std::sqrt(a); }},
      {ScalarOp::kFloor, [](double a, double) { return std::floor(a); }},
      {ScalarOp::kNegate, [](double a, double) { return -a; }},
      {ScalarOp::kRemainder, [](double a, double b) { return std::fmod(a, b); }},
  };
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    std::mt19937 random(3);
    std::vector<uint16_t> a(40'000);
    std::vector<uint16_t> b(40'000);
    for (auto& code : a) code = static_cast<uint16_t>(random());
    for (auto& code : b) code = static_cast<uint16_t>(random());
    const auto value = [&](uint16_t code) { return tensor::decode_float(tensor::float_format(dtype), code); };
    for (const auto& [op, exact] : ops) {
      const auto got = operand_count(op) == 1 ? run_op<uint16_t>(op, dtype, a) : run_op<uint16_t>(op, dtype, a, b);
      for (size_t i = 0; i < a.size(); ++i) {
        const double want = value(
            static_cast<uint16_t>(tensor::encode_float(tensor::float_format(dtype), exact(value(a[i]), value(b[i])))));
        const double have = value(got[i]);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(have) : want == have)
            << name(op) << " of " << tensor::name(dtype) << " " << value(a[i]) << ", " << value(b[i]) << ": " << have;
      }
    }
  }
  for (const DType dtype : {DType::kFloat4E2M1FN, DType::kFloat6E2M3FN, DType::kFloat6E3M2FN, DType::kFloat8E3M4,
                            DType::kFloat8E4M3, DType::kFloat8E4M3B11FNUZ, DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ,
                            DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ}) {
    std::vector<uint8_t> a;
    std::vector<uint8_t> b;
    for (int code = 0; code < 65536; ++code) {
      a.push_back(static_cast<uint8_t>(code));
      b.push_back(static_cast<uint8_t>(code >> 8));
    }
    const auto values = tensor::float8_values(dtype);
    for (const auto& [op, exact] : ops) {
      const auto got = operand_count(op) == 1 ? run_op<uint8_t>(op, dtype, a) : run_op<uint8_t>(op, dtype, a, b);
      for (size_t i = 0; i < a.size(); ++i) {
        const double exactly = exact(static_cast<double>(values[a[i]]), static_cast<double>(values[b[i]]));
        const float want = values[tensor::encode_float8(dtype, exactly)];
        const float have = values[got[i]];
        ASSERT_TRUE(std::isnan(want) ? std::isnan(have) : want == have)
            << name(op) << " of " << tensor::name(dtype) << " " << values[a[i]] << ", " << values[b[i]] << ": " << have;
      }
    }
  }
}

TEST(ScalarKernels, neighbours_of_16_bit_floats_are_the_next_codes) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    const auto value = [&](uint32_t code) { return tensor::decode_float(tensor::float_format(dtype), code); };
    std::vector<uint16_t> from;
    for (uint32_t code = 0; code < 65536; ++code) from.push_back(static_cast<uint16_t>(code));
    const auto inf = static_cast<uint16_t>(tensor::encode_float(tensor::float_format(dtype), INFINITY));
    const auto up = run_op<uint16_t>(ScalarOp::kNextAfter, dtype, from, std::vector<uint16_t>(65536, inf));
    const auto down = run_op<uint16_t>(ScalarOp::kNextAfter, dtype, from,
                                       std::vector<uint16_t>(65536, static_cast<uint16_t>(inf | 0x8000)));
    for (uint32_t code = 0; code < 65536; ++code) {
      if (std::isnan(value(code))) {
        ASSERT_TRUE(std::isnan(value(up[code])));
        continue;
      }
      if (std::isinf(value(code))) continue;
      ASSERT_GT(value(up[code]), value(code));
      ASSERT_LT(value(down[code]), value(code));
      // Nothing lies between: from the neighbour back is where we came from.
      const auto back = run_op<uint16_t>(ScalarOp::kNextAfter, dtype, std::vector<uint16_t>{up[code]},
                                         std::vector<uint16_t>{static_cast<uint16_t>(inf | 0x8000)})[0];
      ASSERT_EQ(value(back), value(code));
    }
  }
}

TEST(ScalarKernels, bool_ops_select_and_clamp) {
  const std::vector<uint8_t> a = {0, 0, 1, 1};
  const std::vector<uint8_t> b = {0, 1, 0, 1};
  using Bools = std::vector<uint8_t>;
  EXPECT_EQ(run_op<uint8_t>(ScalarOp::kAdd, DType::kBool, a, b), (Bools{0, 1, 1, 1}));
  EXPECT_EQ(run_op<uint8_t>(ScalarOp::kMultiply, DType::kBool, a, b), (Bools{0, 0, 0, 1}));
  EXPECT_EQ(run_op<uint8_t>(ScalarOp::kXor, DType::kBool, a, b), (Bools{0, 1, 1, 0}));
  EXPECT_EQ(run_op<uint8_t>(scalar_op("not"), DType::kBool, a), (Bools{1, 1, 0, 0}));
  EXPECT_EQ(run_op<uint8_t>(ScalarOp::kCompareLt, DType::kBool, a, b), (Bools{0, 1, 0, 0}));
  using Floats = std::vector<float>;
  EXPECT_EQ(run_op<float>(ScalarOp::kSelect, DType::kFloat32, a, Floats{1, 2, 3, 4}, Floats{5, 6, 7, 8}),
            (Floats{5, 6, 3, 4}));
  EXPECT_EQ(
      run_op<float>(ScalarOp::kClamp, DType::kFloat32, Floats{3, 3, 0, 0}, Floats{1, 5, 1, 9}, Floats{2, 2, 4, 4}),
      (Floats{2, 2, 1, 4}));
  EXPECT_TRUE(std::isnan(run_op<float>(ScalarOp::kClamp, DType::kFloat32, Floats{0}, Floats{NAN}, Floats{1})[0]));
  EXPECT_EQ(find_scalar_kernel(ScalarOp::kSubtract, DType::kBool, DType::kBool), nullptr);
  EXPECT_EQ(find_scalar_kernel(scalar_op("tanh"), DType::kInt32, DType::kInt32), nullptr);
  EXPECT_EQ(find_scalar_kernel(ScalarOp::kAdd, DType::kFloat32, DType::kFloat64), nullptr);
}

TEST(ScalarTable, every_operation_is_found_by_its_name_and_an_unknown_one_is_not) {
  for (size_t i = 0; i < scalar_op_count(); ++i) EXPECT_EQ(scalar_op(name(static_cast<ScalarOp>(i))), ScalarOp(i));
  EXPECT_EQ(scalar_op("compare LT"), ScalarOp::kCompareLt);
  EXPECT_THROW(scalar_op("cube_root"), core::Error);
}

TEST(ScalarTable, identities_leave_every_value_as_it_is) {
  struct Case {
    ScalarOp op;
    Identity identity;
    bool is_idempotent;
  };
  for (const auto& [op, identity, idempotent] :
       {Case{ScalarOp::kAdd, Identity::kSum, false}, Case{ScalarOp::kMultiply, Identity::kOne, false},
        Case{ScalarOp::kMaximum, Identity::kLowest, true}, Case{ScalarOp::kMinimum, Identity::kHighest, true},
        Case{ScalarOp::kAnd, Identity::kOnes, true}, Case{ScalarOp::kOr, Identity::kZero, true},
        Case{ScalarOp::kXor, Identity::kZero, false}, Case{ScalarOp::kSubtract, Identity::kNone, false}}) {
    EXPECT_EQ(identity_of(op), identity) << name(op);
    EXPECT_EQ(is_idempotent(op), idempotent) << name(op);
    EXPECT_EQ(is_associative(op), identity != Identity::kNone) << name(op);
  }
}

TEST(ScalarTable, a_function_call_for_each_element_is_known_by_the_type) {
  EXPECT_FALSE(is_lane_by_lane(ScalarOp::kDivide, DType::kFloat32));
  EXPECT_FALSE(is_lane_by_lane(ScalarOp::kDivide, DType::kInt32));
  EXPECT_TRUE(is_lane_by_lane(ScalarOp::kDivide, DType::kInt64));
  EXPECT_FALSE(is_lane_by_lane(ScalarOp::kDivide, DType::kComplex64));
  EXPECT_TRUE(is_lane_by_lane(ScalarOp::kDivide, DType::kComplex128));
  EXPECT_TRUE(is_lane_by_lane(scalar_op("digamma"), DType::kFloat16));
  EXPECT_FALSE(is_lane_by_lane(scalar_op("tanh"), DType::kFloat32));
}

}  // namespace
}  // namespace meshd::kernels
