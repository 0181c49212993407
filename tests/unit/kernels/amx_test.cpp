// Products by tiles of AMX: how operands are packed and sums are cut, with tiles that are emulated, on every machine;
// and that the processor's tiles, where it has them, give the emulation's bits.
#include "service/kernels/product/amx.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "service/kernels/cpu.h"
#include "service/kernels/product/gemm_plans.h"
#include "service/tensor/half.h"

namespace meshd::test {
namespace {

using kernels::AmxCall;
using kernels::GemmSpec;
using kernels::kAmxElements;
using kernels::kAmxSide;
using kernels::MatrixLayout;
using tensor::DType;

constexpr int64_t kStepTerms = 32;  // of bfloat16

float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value; }

float low_of(uint32_t pair) { return flushed(std::bit_cast<float>(pair << 16)); }
float high_of(uint32_t pair) { return flushed(std::bit_cast<float>(pair & 0xFFFF0000U)); }

float multiplied(float x, float y, float sum) { return flushed(std::fma(x, y, sum)); }

template <class T>
T read(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Intel's manual, TDPBF16PS: the earlier and the later terms of the pairs are added apart, then both to the sum.
float add_step(const std::byte* a, const uint32_t* b, float sum) {
  float low = 0;
  float high = 0;
  for (int64_t p = 0; p < kAmxSide; ++p) {
    const auto x = read<uint32_t>(a + p * 4);
    const uint32_t y = b[p * kAmxSide];
    low = multiplied(low_of(x), low_of(y), low);
    high = multiplied(high_of(x), high_of(y), high);
  }
  return flushed(flushed(sum) + flushed(low + high));
}

// Intel's manual, TDPBSSD.
uint32_t add_step(const std::byte* a, const uint32_t* b, uint32_t sum) {
  for (int64_t p = 0; p < kAmxSide; ++p) {
    const auto* const column = reinterpret_cast<const std::byte*>(b + p * kAmxSide);
    for (int64_t k = 0; k < 4; ++k)
      sum += static_cast<uint32_t>(int32_t{read<int8_t>(a + p * 4 + k)} * int32_t{read<int8_t>(column + k)});
  }
  return sum;
}

int tiles_begun = 0;

template <class Sum>
void multiply_emulated(const AmxCall& call) {
  EXPECT_EQ(tiles_begun, 1);
  for (int64_t i = 0; i < (call.a[1] != nullptr ? 2 : 1) * kAmxSide; ++i) {
    for (int64_t j = 0; j < (call.b[1] != nullptr ? 2 : 1) * kAmxSide; ++j) {
      const std::byte* const a = call.a[static_cast<size_t>(i / kAmxSide)] + i % kAmxSide * call.a_row_bytes;
      const uint32_t* const b = call.b[static_cast<size_t>(j / kAmxSide)] + j % kAmxSide;
      Sum sum = call.from != nullptr ? read<Sum>(call.from + i * call.from_row_bytes + j * 4) : Sum{0};
      for (int64_t step = 0; step < call.steps; ++step)
        sum = add_step(a + step * call.a_step_bytes, b + step * kAmxElements, sum);
      std::memcpy(call.to + i * call.to_row_bytes + j * 4, &sum, sizeof(sum));
    }
  }
}

void narrow_emulated(const float* sums, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t value = tensor::float_to_bfloat16(sums[i]);
    std::memcpy(to + i * 2, &value, sizeof(value));
  }
}

constexpr kernels::AmxUnit kEmulated{[] { ++tiles_begun; }, [] { --tiles_begun; }, multiply_emulated<float>,
                                     narrow_emulated};
constexpr kernels::AmxUnit kEmulatedInt8{[] { ++tiles_begun; }, [] { --tiles_begun; }, multiply_emulated<uint32_t>,
                                         nullptr};

uint16_t narrowed(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }
float widened(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

/// A matrix with gaps between its lines, from the second byte of its memory on.
struct Matrix {
  MatrixLayout layout;
  std::vector<std::byte> bytes;

  Matrix(int64_t rows, int64_t columns, bool by_rows, int64_t gap, bool has_special, std::mt19937& random)
      : layout(by_rows ? MatrixLayout{columns + gap, 1} : MatrixLayout{1, rows + gap}) {
    constexpr float kSpecial[] = {std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN(),
                                  -0.0F,
                                  1e-39F,
                                  std::numeric_limits<float>::max(),
                                  1e-30F};
    std::normal_distribution<float> normal;
    const int64_t places = by_rows ? rows * (columns + gap) : columns * (rows + gap);
    bytes.assign(static_cast<size_t>(places * 2 + 2), std::byte{0xFF});  // gaps are NaN
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const bool is_special = has_special && random() % 200 == 0;
        const uint16_t value = narrowed(is_special ? kSpecial[random() % std::size(kSpecial)] : normal(random));
        std::memcpy(bytes.data() + 2 + at(i, j) * 2, &value, sizeof(value));
      }
    }
  }

  [[nodiscard]] int64_t at(int64_t i, int64_t j) const { return i * layout.row_stride + j * layout.column_stride; }
  [[nodiscard]] const std::byte* from(int64_t i, int64_t j) const { return bytes.data() + 2 + at(i, j) * 2; }
  [[nodiscard]] uint32_t element(int64_t i, int64_t j) const {
    uint16_t value = 0;
    std::memcpy(&value, from(i, j), sizeof(value));
    return value;
  }
};

/// Memory of a product, and what it leaves there.
struct Scratch {
  explicit Scratch(int64_t bytes) : memory(static_cast<size_t>(bytes) + 64, std::byte{0x7F}) {}
  std::byte* data() { return memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64; }

  std::vector<std::byte> memory;
};

/// c, the gaps of its rows included, which are 7.
std::vector<float> product(const GemmSpec& spec, const Matrix& a, const Matrix& b, const kernels::AmxUnit& unit,
                           int64_t row = 0, int64_t column = 0) {
  const kernels::GemmPlan plan = plan_amx(spec, unit);
  Scratch scratch(plan.scratch_bytes);
  const auto count = static_cast<size_t>(spec.m * spec.c_row_stride());
  if (spec.out == DType::kFloat32) {
    std::vector<float> c(count, 7.0F);
    plan.plan->run(a.from(row, 0), b.from(0, column), reinterpret_cast<std::byte*>(c.data()), scratch.data(), nullptr,
                   nullptr);
    return c;
  }
  std::vector<uint16_t> c(count, narrowed(7.0F));
  plan.plan->run(a.from(row, 0), b.from(0, column), reinterpret_cast<std::byte*>(c.data()), scratch.data(), nullptr,
                 nullptr);
  std::vector<float> out;
  for (const uint16_t value : c) out.push_back(widened(value));
  return out;
}

/// One element by the definition: steps of 32 terms one after the other. Parts of a sum are whole steps, so they do not
/// show.
float by_definition(const Matrix& a, const Matrix& b, int64_t i, int64_t j, int64_t k) {
  float sum = 0;
  for (int64_t term = 0; term < k; term += kStepTerms) {
    float low = 0;
    float high = 0;
    for (int64_t p = term; p < std::min(term + kStepTerms, k); p += 2) {
      low = multiplied(low_of(a.element(i, p)), low_of(b.element(p, j)), low);
      if (p + 1 < k) high = multiplied(low_of(a.element(i, p + 1)), low_of(b.element(p + 1, j)), high);
    }
    sum = flushed(sum + flushed(low + high));
  }
  return sum;
}

bool same_bits(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return true;
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

int64_t below(int64_t most, std::mt19937& random) {
  return static_cast<int64_t>(random() % static_cast<uint32_t>(most)) + 1;
}

TEST(AmxProduct, elements_are_sums_of_steps_in_any_layout_size_and_block) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int64_t m = round % 20 == 0 ? below(700, random) : below(80, random);
    const int64_t n = round % 20 == 1 ? below(1300, random) : below(100, random);
    const int64_t k = round % 5 == 2 ? below(900, random) : round % 5 == 3 ? 32 * below(20, random) : below(90, random);
    // Now and then rows of a lie so that they share cache sets, and are copied.
    const int64_t gap = round % 3 == 0 ? 2048 - k : below(5, random) - 1;
    const Matrix a(m, k, random() % 3 != 0, gap, false, random);
    const Matrix b(k, n, random() % 2 == 0, below(5, random) - 1, false, random);
    GemmSpec spec{m, n, k, DType::kBfloat16, DType::kFloat32, a.layout, b.layout};
    spec.c_stride = n + 3;
    const std::vector<float> c = product(spec, a, b, kEmulated);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n + 3; ++j) {
        const float got = c[static_cast<size_t>(i * (n + 3) + j)];
        if (j >= n) {
          ASSERT_EQ(got, 7.0F) << "behind row " << i;
        } else if ((i * n + j) % 7 == 0 || i + 1 == m || j + 1 == n) {
          ASSERT_TRUE(same_bits(got, by_definition(a, b, i, j, k))) << i << ", " << j << " of " << m << "x" << n;
        }
      }
    }
    GemmSpec block = spec;
    const int64_t row = below(m, random) - 1;
    const int64_t column = below(n, random) - 1;
    block.m = below(m - row, random);
    block.n = below(n - column, random);
    const std::vector<float> part = product(block, a, b, kEmulated, row, column);
    for (int64_t i = 0; i < block.m; ++i) {
      for (int64_t j = 0; j < block.n; ++j) {
        ASSERT_TRUE(same_bits(part[static_cast<size_t>(i * (n + 3) + j)],
                              c[static_cast<size_t>((row + i) * (n + 3) + column + j)]));
      }
    }
  }
}

TEST(AmxProduct, sums_become_bfloat16_once) {
  std::mt19937 random(4);
  for (const int64_t k : {40, 700}) {
    const Matrix a(37, k, true, 1, false, random);
    const Matrix b(k, 75, true, 0, false, random);
    GemmSpec spec{37, 75, k, DType::kBfloat16, DType::kFloat32, a.layout, b.layout};
    const std::vector<float> wide = product(spec, a, b, kEmulated);
    spec.out = DType::kBfloat16;
    const std::vector<float> narrow = product(spec, a, b, kEmulated);
    for (size_t i = 0; i < wide.size(); ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(wide[i]);
      const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U;  // half to even
      ASSERT_EQ(std::bit_cast<uint32_t>(narrow[i]), rounded) << i;
    }
  }
}

TEST(AmxProduct, long_sums_of_wide_products_pack_their_operands_part_by_part) {
  std::mt19937 random(5);
  const int64_t k = 9000;  // all panels of 256 columns would be more than 4 MiB
  const Matrix a(20, k, true, 0, false, random);
  const Matrix b(k, 300, true, 0, false, random);
  const GemmSpec spec{20, 300, k, DType::kBfloat16, DType::kFloat32, a.layout, b.layout};
  const kernels::GemmPlan plan = plan_amx(spec, kEmulated);
  EXPECT_FALSE(plan.keeps_packed);
  EXPECT_LT(plan.scratch_bytes, 2 << 20);
  const std::vector<float> c = product(spec, a, b, kEmulated);
  for (const auto& [i, j] : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {19, 299}, {7, 256}, {16, 31}})
    EXPECT_TRUE(same_bits(c[static_cast<size_t>(i * 300 + j)], by_definition(a, b, i, j, k))) << i << ", " << j;
}

TEST(AmxProduct, packed_operand_that_stayed_is_found_and_another_is_not_taken_for_it) {
  std::mt19937 random(6);
  const int64_t k = 600;
  const Matrix a(50, k, true, 0, false, random);
  Matrix b(k, 70, true, 0, false, random);
  const Matrix other(k, 70, true, 0, false, random);
  GemmSpec spec{50, 70, k, DType::kBfloat16, DType::kFloat32, a.layout, b.layout};
  const std::vector<float> expected = product(spec, a, b, kEmulated);
  const std::vector<float> of_other = product(spec, a, other, kEmulated);
  const kernels::GemmPlan plan = plan_amx(spec, kEmulated);
  ASSERT_TRUE(plan.keeps_packed);
  Scratch scratch(plan.scratch_bytes);
  kernels::PackedOperand kept;
  const auto run = [&](const Matrix& of, int64_t m) {
    spec.m = m;
    std::vector<float> c(static_cast<size_t>(m * 70));
    plan_amx(spec, kEmulated)
        .plan->run(a.from(0, 0), of.from(0, 0), reinterpret_cast<std::byte*>(c.data()), scratch.data(), nullptr, &kept);
    return c;
  };
  EXPECT_EQ(run(b, 50), expected);
  std::fill(b.bytes.begin(), b.bytes.end(), std::byte{});  // what is read again would be seen
  EXPECT_EQ(run(b, 50), expected);
  EXPECT_EQ(run(b, 3), std::vector<float>(expected.begin(), expected.begin() + 3 * 70));
  EXPECT_EQ(run(other, 50), of_other);
  EXPECT_NE(run(b, 50), expected) << "there is another one now";
}

TEST(AmxProduct, int8_sums_are_exact_in_any_layout_and_wrap_around) {
  std::mt19937 random(8);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int64_t m = round % 20 == 0 ? below(600, random) : below(80, random);
    const int64_t n = below(100, random);
    const int64_t k = round % 4 == 0   ? below(1500, random)
                      : round % 4 == 1 ? 64 * below(20, random)
                                       : below(200, random);
    const auto stored = [&](int64_t rows, int64_t columns) {
      const bool by_rows = random() % 2 == 0;
      const int64_t gap = round % 5 == 0 && by_rows ? 4096 - columns : below(5, random) - 1;
      return std::pair(
          by_rows ? MatrixLayout{columns + gap, 1} : MatrixLayout{1, rows + gap},
          std::vector<int8_t>(static_cast<size_t>(by_rows ? rows * (columns + gap) : columns * (rows + gap))));
    };
    auto [a_layout, a] = stored(m, k);
    auto [b_layout, b] = stored(k, n);
    for (std::vector<int8_t>* values : {&a, &b}) {
      for (int8_t& value : *values) value = round % 3 == 0 ? int8_t{-128} : static_cast<int8_t>(random());
    }
    const GemmSpec spec{m, n, k, DType::kInt8, DType::kInt32, a_layout, b_layout};
    std::vector<const kernels::AmxUnit*> units = {&kEmulatedInt8};
    if (kernels::has_amx()) units.push_back(&kernels::amx_unit(DType::kInt8));
    for (const kernels::AmxUnit* unit : units) {
      const kernels::GemmPlan plan = plan_amx(spec, *unit);
      Scratch scratch(plan.scratch_bytes);
      std::vector<int32_t> c(static_cast<size_t>(m * n));
      plan.plan->run(reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data()),
                     reinterpret_cast<std::byte*>(c.data()), scratch.data(), nullptr, nullptr);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          if ((i * n + j) % 5 != 0 && i + 1 != m && j + 1 != n) continue;
          int32_t sum = 0;
          for (int64_t p = 0; p < k; ++p)
            sum += a[static_cast<size_t>(i * a_layout.row_stride + p * a_layout.column_stride)] *
                   b[static_cast<size_t>(p * b_layout.row_stride + j * b_layout.column_stride)];
          ASSERT_EQ(c[static_cast<size_t>(i * n + j)], sum) << i << ", " << j;
        }
      }
    }
  }
}

TEST(AmxProduct, tiles_of_the_processor_have_the_bits_of_the_emulation) {
  if (!kernels::has_amx()) GTEST_SKIP() << "this processor has no AMX";
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int64_t m = below(80, random);
    const int64_t n = below(100, random);
    const int64_t k = below(round % 4 == 0 ? 900 : 90, random);
    const Matrix a(m, k, random() % 2 == 0, below(5, random) - 1, round % 2 == 0, random);
    const Matrix b(k, n, random() % 2 == 0, below(5, random) - 1, round % 2 == 0, random);
    GemmSpec spec{m, n, k, DType::kBfloat16, DType::kFloat32, a.layout, b.layout};
    if (round % 3 == 0) spec.out = DType::kBfloat16;
    const std::vector<float> expected = product(spec, a, b, kEmulated);
    const std::vector<float> got = product(spec, a, b, kernels::amx_unit(DType::kBfloat16));
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_TRUE(same_bits(got[i], expected[i])) << i << ": " << got[i] << " and " << expected[i];
  }
}

}  // namespace
}  // namespace meshd::test
