// Lanes that count are held to numbers of 64 bits that are counted one by one and converted.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "service/kernels/elementwise/lanes/count_lanes.h"
#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

std::vector<std::byte> expected(const CountedLanes& lanes, DType dtype, int64_t start, int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = start; i < start + count; ++i) numbers.push_back(lanes.first + i / lanes.repeat % lanes.size);
  std::vector<std::byte> bytes(static_cast<size_t>(count * tensor::size_bytes(dtype)));
  const auto* const from = reinterpret_cast<const std::byte*>(numbers.data());
  find_scalar_kernel(ScalarOp::kConvert, DType::kInt64, dtype)(&from, bytes.data(), count);
  return bytes;
}

void check(const CountedLanes& lanes, DType dtype, int64_t start, int64_t count) {
  const auto bytes = static_cast<size_t>(count * tensor::size_bytes(dtype));
  constexpr auto kMark = std::byte{0xA5};
  std::vector<std::byte> got(bytes + 16, kMark);
  count_lanes(lanes, dtype, start, count, got.data());
  const std::vector<std::byte> wanted = expected(lanes, dtype, start, count);
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), bytes), 0)
      << tensor::name(dtype) << " first " << lanes.first << " size " << lanes.size << " repeat " << lanes.repeat
      << " start " << start << " count " << count;
  for (size_t i = bytes; i < got.size(); ++i) EXPECT_EQ(got[i], kMark) << "behind the last lane";
}

TEST(CountLanes, every_type_has_the_numbers_that_int64_converts_to) {
  constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
  std::mt19937_64 random(5);
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (row.dtype == DType::kBool || find_scalar_kernel(ScalarOp::kConvert, DType::kInt64, row.dtype) == nullptr)
      continue;
    // Around where floats round, bytes and words wrap, and numbers leave 32 bits.
    for (const int64_t first : {int64_t{0}, int64_t{200}, int64_t{65500}, int64_t{1} << 24, kInt32Max - 300, kInt32Max,
                                int64_t{1} << 40, int64_t{1} << 53}) {
      check({.first = first, .size = 2000, .repeat = 1}, row.dtype, 0, 1001);
      check({.first = first, .size = 700, .repeat = 3}, row.dtype, 100, 900);
    }
    for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
      const int64_t size = number(1, number(0, 1) == 0 ? 5 : 400);
      const int64_t repeat = number(1, number(0, 1) == 0 ? 5 : 400);
      check({.first = number(0, 1000), .size = size, .repeat = repeat}, row.dtype, number(0, 3 * size * repeat),
            number(1, 1500));
    }
  }
}

}  // namespace
}  // namespace meshd::kernels
