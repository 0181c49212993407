// Quotients and remainders by one number for many are held to the processor's division: as lanes of a kernel, and in
// machine code where the divisor is a constant of the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_code.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

template <class T>
T expected(ScalarOp op, T a, T b) {
  const bool is_quotient = op == ScalarOp::kDivide;
  if (b == 0) return is_quotient ? static_cast<T>(~T{0}) : a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return is_quotient ? static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(a)) : T{0};
  return static_cast<T>(is_quotient ? a / b : a % b);
}

/// The extremes, powers of two, what lies beside both, and random numbers of all sizes.
template <class T>
std::vector<T> samples(int random_count) {
  std::vector<T> values;
  const auto with_neighbours = [&](T x) {
    for (const int by : {-1, 0, 1}) values.push_back(static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) + by));
  };
  with_neighbours(std::numeric_limits<T>::max());
  with_neighbours(std::numeric_limits<T>::min());
  for (size_t bit = 0; bit < sizeof(T) * 8; ++bit) {
    const auto power = static_cast<T>(uint64_t{1} << bit);
    with_neighbours(power);
    with_neighbours(static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(power)));
  }
  for (const int x : {3, 5, 6, 7, 10, 12, 100, 127, 255}) with_neighbours(static_cast<T>(x));
  std::mt19937_64 random(3);
  for (int i = 0; i < random_count; ++i) values.push_back(static_cast<T>(random() >> (random() % 64)));
  return values;
}

template <class T>
void check_kernels(DType dtype) {
  // Odd, so that there are lanes behind the last block.
  std::vector<T> dividends = samples<T>(sizeof(T) == 1 ? 0 : 500);
  for (int x = 0; x < 256; ++x) dividends.push_back(static_cast<T>(x));
  if (dividends.size() % 2 == 0) dividends.push_back(1);
  const auto count = static_cast<int64_t>(dividends.size());
  std::vector<T> divisors = samples<T>(300);
  for (int x = 0; sizeof(T) == 1 && x < 256; ++x) divisors.push_back(static_cast<T>(x));
  for (const ScalarOp op : {ScalarOp::kDivide, ScalarOp::kRemainder}) {
    const ScalarKernel kernel = find_scalar_kernel(op, dtype, dtype);
    for (const T divisor : divisors) {
      std::vector<T> lanes(dividends.size(), divisor);
      const std::byte* const operands[] = {reinterpret_cast<const std::byte*>(dividends.data()),
                                           reinterpret_cast<const std::byte*>(lanes.data())};
      // The result may take the divisors' memory.
      kernel(operands, reinterpret_cast<std::byte*>(lanes.data()), count);
      for (size_t i = 0; i < dividends.size(); ++i) {
        ASSERT_EQ(lanes[i], expected(op, dividends[i], divisor))
            << name(op) << " " << tensor::name(dtype) << " " << +dividends[i] << " by " << +divisor;
      }
    }
  }
}

TEST(ConstantDivision, lanes_of_one_divisor_have_the_quotients_of_division) {
  check_kernels<int8_t>(DType::kInt8);
  check_kernels<int16_t>(DType::kInt16);
  check_kernels<int32_t>(DType::kInt32);
  check_kernels<int64_t>(DType::kInt64);
  check_kernels<uint8_t>(DType::kUint8);
  check_kernels<uint16_t>(DType::kUint16);
  check_kernels<uint32_t>(DType::kUint32);
  check_kernels<uint64_t>(DType::kUint64);
}

TEST(ConstantDivision, one_lane_with_another_divisor_is_seen) {
  constexpr int64_t kCount = 200;
  const ScalarKernel kernel = find_scalar_kernel(ScalarOp::kDivide, DType::kInt32, DType::kInt32);
  const std::vector<int32_t> dividends(kCount, 1000);
  for (size_t other = 0; other < kCount; ++other) {
    std::vector<int32_t> divisors(kCount, 3);
    divisors[other] = 7;
    std::vector<int32_t> got(kCount);
    const std::byte* const operands[] = {reinterpret_cast<const std::byte*>(dividends.data()),
                                         reinterpret_cast<const std::byte*>(divisors.data())};
    kernel(operands, reinterpret_cast<std::byte*>(got.data()), kCount);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(got[i], i == other ? 142 : 333) << i << " where " << other << " is 7";
  }
}

/// Quotient, remainder and quotient again by one constant, in an order that makes the code share what it has.
template <class T>
TileProgram division_program(DType dtype, T divisor, bool remainder_first) {
  TileProgram program;
  program.add_register(dtype);
  program.input_count = 1;
  const uint16_t by = program.constant(dtype, reinterpret_cast<const std::byte*>(&divisor));
  const ScalarOp first = remainder_first ? ScalarOp::kRemainder : ScalarOp::kDivide;
  const ScalarOp second = remainder_first ? ScalarOp::kDivide : ScalarOp::kRemainder;
  for (const ScalarOp op : {first, second, first}) program.outputs.push_back(program.emit(op, {0, by}, dtype));
  return program;
}

template <class T>
void check_code(DType dtype) {
  const std::vector<T> dividends = samples<T>(1000);
  const auto count = static_cast<int64_t>(dividends.size());
  for (const T divisor : samples<T>(300)) {
    const TileProgram program = division_program<T>(dtype, divisor, divisor % 2 == 0);
    const auto code = TileCode::make(program, cpu_level(), {});
    ASSERT_NE(code, nullptr);
    if (divisor != 0) {
      EXPECT_TRUE(gains_by_code(program, {}));
    }
    TileScratch scratch(program, count);
    std::memcpy(scratch.reg(0), dividends.data(), dividends.size() * sizeof(T));
    run_tile(program, code.get(), scratch, count);
    for (size_t k = 0; k < program.outputs.size(); ++k) {
      const auto* const got = reinterpret_cast<const T*>(scratch.reg(program.outputs[k]));
      for (size_t i = 0; i < dividends.size(); ++i) {
        ASSERT_EQ(got[i], expected(program.instructions[k].op, dividends[i], divisor))
            << name(program.instructions[k].op) << " " << dividends[i] << " by " << divisor;
      }
    }
  }
}

TEST(ConstantDivision, code_has_the_quotients_of_division) {
  if (cpu_level() == CpuLevel::kBase) GTEST_SKIP() << "no code is made for this processor";
  check_code<int32_t>(DType::kInt32);
  check_code<uint32_t>(DType::kUint32);
}

}  // namespace
}  // namespace meshd::kernels
