// Products against their definition: kernels by shape and layout, dot_general by dimension numbers and element types.
#include "service/kernels/product/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "service/core/error.h"
#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "tests/support/row_runner.h"

namespace meshd::test {
namespace {

using tensor::Dims;
using tensor::DType;
using Cut = Instance::Cut;

Array converted(const Array& from, DType dtype) {
  if (from.type.dtype == dtype) return from;
  Array out = Array::zeros({dtype, from.type.dims});
  const kernels::ScalarKernel kernel = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, from.type.dtype, dtype);
  EXPECT_NE(kernel, nullptr) << tensor::name(from.type.dtype) << " to " << tensor::name(dtype);
  const std::byte* data = from.bytes.data();
  if (kernel != nullptr) kernel(&data, out.bytes.data(), tensor::element_count(out.type));
  return out;
}

/// Small integers, so that every sum is exact in every type with 8 bits of mantissa: what is compared is indexing.
Array small_integers(const Dims& dims, DType dtype, std::mt19937& random) {
  std::vector<double> values(static_cast<size_t>(tensor::element_count(dims)));
  const bool is_unsigned = tensor::is_unsigned_integer(dtype) || dtype == DType::kBool;
  for (double& value : values)
    value = is_unsigned ? static_cast<double>(random() % 2) : static_cast<double>(random() % 3) - 1;
  return converted(Array::of(DType::kFloat64, dims, values), dtype);
}

struct Numbers {
  std::vector<int64_t> lhs_batch, rhs_batch, lhs_contract, rhs_contract;
};

Instance dot_general(const Numbers& numbers) {
  const ir::DictAttr dict{"stablehlo.dot",
                          {{"lhs_batching_dimensions", ints_attribute(numbers.lhs_batch)},
                           {"rhs_batching_dimensions", ints_attribute(numbers.rhs_batch)},
                           {"lhs_contracting_dimensions", ints_attribute(numbers.lhs_contract)},
                           {"rhs_contracting_dimensions", ints_attribute(numbers.rhs_contract)}}};
  return {.def = ops::find_op("stablehlo.dot_general"), .attributes = {{"dot_dimension_numbers", {dict}}}};
}

/// The definition, in double.
Array dot_by_definition(const Array& lhs, const Array& rhs, const Numbers& numbers, const Dims& result_dims) {
  const std::vector<double> left = converted(lhs, DType::kFloat64).values<double>();
  const std::vector<double> right = converted(rhs, DType::kFloat64).values<double>();
  const auto free = [](const Dims& dims, const std::vector<int64_t>& batch, const std::vector<int64_t>& contract) {
    std::vector<size_t> out;
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto in = [d](const std::vector<int64_t>& list) {
        return std::find(list.begin(), list.end(), static_cast<int64_t>(d)) != list.end();
      };
      if (!in(batch) && !in(contract)) out.push_back(d);
    }
    return out;
  };
  const std::vector<size_t> lhs_free = free(lhs.type.dims, numbers.lhs_batch, numbers.lhs_contract);
  const std::vector<size_t> rhs_free = free(rhs.type.dims, numbers.rhs_batch, numbers.rhs_contract);
  Dims sum_dims;
  for (const int64_t d : numbers.lhs_contract) sum_dims.push_back(lhs.type.dims[static_cast<size_t>(d)]);
  std::vector<double> out;
  for_each_index(result_dims, [&](const Dims& index) {
    Dims at_left(lhs.type.dims.size());
    Dims at_right(rhs.type.dims.size());
    size_t next = 0;
    for (size_t i = 0; i < numbers.lhs_batch.size(); ++i, ++next) {
      at_left[static_cast<size_t>(numbers.lhs_batch[i])] = index[next];
      at_right[static_cast<size_t>(numbers.rhs_batch[i])] = index[next];
    }
    for (const size_t d : lhs_free) at_left[d] = index[next++];
    for (const size_t d : rhs_free) at_right[d] = index[next++];
    double sum = 0;
    for_each_index(sum_dims, [&](const Dims& step) {
      for (size_t i = 0; i < step.size(); ++i) {
        at_left[static_cast<size_t>(numbers.lhs_contract[i])] = step[i];
        at_right[static_cast<size_t>(numbers.rhs_contract[i])] = step[i];
      }
      sum += left[static_cast<size_t>(position(lhs.type.dims, at_left))] *
             right[static_cast<size_t>(position(rhs.type.dims, at_right))];
    });
    out.push_back(sum);
  });
  return Array::of(DType::kFloat64, result_dims, out);
}

void expect_dot(const Numbers& numbers, const Array& lhs, const Array& rhs, DType result) {
  Instance dot = dot_general(numbers);
  const std::vector<ir::Type> types = {ir::Type::of(lhs.type), ir::Type::of(rhs.type)};
  const Dims result_dims = dot.infer(types)[0].dims();
  dot.declared = {ir::Type::of({result, result_dims})};
  const Array got = dot.run({lhs, rhs})[0];
  const Array expected = converted(dot_by_definition(lhs, rhs, numbers, result_dims), result);
  EXPECT_EQ(converted(got, DType::kFloat64).values<double>(), converted(expected, DType::kFloat64).values<double>())
      << tensor::to_string(lhs.type) << " . " << tensor::to_string(rhs.type) << " -> " << tensor::name(result);
  EXPECT_EQ(dot.run({lhs, rhs}, Cut::kBackwards)[0].bytes, got.bytes) << "cut into units";
}

/// Random roles for dims in random order.
struct RandomDot {
  Numbers numbers;
  Dims lhs, rhs;

  explicit RandomDot(std::mt19937& random) {
    const auto some = [&](size_t most) { return random() % (most + 1); };
    const size_t batch = some(2);
    const size_t contract = some(2);
    const auto place = [&](std::vector<std::pair<int, int64_t>> roles, Dims& dims, std::vector<int64_t>& batches,
                           std::vector<int64_t>& contracts) {
      std::shuffle(roles.begin(), roles.end(), random);
      batches.resize(batch);
      contracts.resize(contract);
      for (const auto& [role, size] : roles) {
        const auto at = static_cast<int64_t>(dims.size());
        if (role >= 0 && role < 10) batches[static_cast<size_t>(role)] = at;
        if (role >= 10) contracts[static_cast<size_t>(role - 10)] = at;
        dims.push_back(size);
      }
    };
    std::vector<std::pair<int, int64_t>> shared;
    for (size_t i = 0; i < batch; ++i) shared.emplace_back(static_cast<int>(i), static_cast<int64_t>(random() % 4) + 1);
    for (size_t i = 0; i < contract; ++i)
      shared.emplace_back(static_cast<int>(10 + i), static_cast<int64_t>(random() % 6) + (random() % 9 != 0 ? 1 : 0));
    const auto with_free = [&] {
      std::vector<std::pair<int, int64_t>> roles = shared;
      for (size_t i = some(2); i > 0; --i) roles.emplace_back(-1, static_cast<int64_t>(random() % 6) + 1);
      return roles;
    };
    place(with_free(), lhs, numbers.lhs_batch, numbers.lhs_contract);
    place(with_free(), rhs, numbers.rhs_batch, numbers.rhs_contract);
  }
};

TEST(dot_general, random_dimension_numbers_of_every_type_match_the_definition) {
  const std::vector<std::array<DType, 3>> types = {{DType::kFloat32, DType::kFloat32, DType::kFloat32},
                                                   {DType::kFloat64, DType::kFloat64, DType::kFloat64},
                                                   {DType::kBfloat16, DType::kBfloat16, DType::kBfloat16},
                                                   {DType::kBfloat16, DType::kBfloat16, DType::kFloat32},
                                                   {DType::kFloat16, DType::kFloat16, DType::kFloat16},
                                                   {DType::kFloat16, DType::kFloat16, DType::kFloat32},
                                                   {DType::kInt8, DType::kInt8, DType::kInt32},
                                                   {DType::kInt8, DType::kInt8, DType::kInt8},
                                                   {DType::kUint8, DType::kUint8, DType::kUint16},
                                                   {DType::kInt16, DType::kInt16, DType::kInt16},
                                                   {DType::kInt32, DType::kInt32, DType::kInt32},
                                                   {DType::kInt4, DType::kInt4, DType::kInt32},
                                                   {DType::kInt32, DType::kInt32, DType::kInt64},
                                                   {DType::kInt8, DType::kInt64, DType::kInt64},
                                                   {DType::kInt64, DType::kInt64, DType::kInt64},
                                                   {DType::kUint64, DType::kUint64, DType::kUint64},
                                                   {DType::kBool, DType::kBool, DType::kBool},
                                                   {DType::kFloat8E4M3FN, DType::kFloat8E5M2, DType::kFloat32},
                                                   {DType::kFloat32, DType::kBfloat16, DType::kFloat32}};
  for (const auto& [lhs, rhs, result] : types) {
    std::mt19937 random(17);
    for (int round = 0; round < 40; ++round) {
      const RandomDot dot(random);
      expect_dot(dot.numbers, small_integers(dot.lhs, lhs, random), small_integers(dot.rhs, rhs, random), result);
    }
  }
}

TEST(dot_general, matrices_of_all_layouts_and_sizes_match_the_definition) {
  std::mt19937 random(5);
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 7}, {1, 65, 33}, {65, 1, 33}, {7, 5, 3}, {64, 64, 64}, {33, 129, 70}}) {
    for (const bool lhs_transposed : {false, true}) {
      for (const bool rhs_transposed : {false, true}) {
        for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kInt8, DType::kInt32}) {
          const Numbers numbers{{}, {}, {lhs_transposed ? 0 : 1}, {rhs_transposed ? 1 : 0}};
          const Array lhs = small_integers(lhs_transposed ? Dims{k, m} : Dims{m, k}, dtype, random);
          const Array rhs = small_integers(rhs_transposed ? Dims{n, k} : Dims{k, n}, dtype, random);
          const DType result = dtype == DType::kBfloat16 ? DType::kFloat32
                               : dtype == DType::kInt8   ? DType::kInt32
                                                         : dtype;
          expect_dot(numbers, lhs, rhs, result);
        }
      }
    }
  }
}

TEST(dot_general, a_large_product_in_row_blocks_has_the_same_bits_however_it_is_cut) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  const auto matrix = [&](int64_t rows, int64_t columns) {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (float& value : values) value = normal(random);
    return f32({rows, columns}, values);
  };
  const Array lhs = matrix(1300, 300);
  const Array rhs = matrix(300, 260);
  const Instance dot = dot_general({{}, {}, {1}, {0}});
  const Array once = dot.run({lhs, rhs})[0];
  EXPECT_EQ(dot.run({lhs, rhs}, Cut::kBackwards)[0].bytes, once.bytes);
  const std::vector<double> expected = dot_by_definition(lhs, rhs, {{}, {}, {1}, {0}}, {1300, 260}).values<double>();
  const std::vector<float> got = once.values<float>();
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
  EXPECT_LT(worst, 300 * 1e-6);  // k rounding errors of values about one
}

TEST(dot_general, blocks_of_columns_reach_results_of_every_width) {
  std::mt19937 random(7);
  const Numbers numbers{{}, {}, {1}, {0}};
  for (const auto& [operands, result] : std::vector<std::pair<DType, DType>>{{DType::kFloat32, DType::kFloat32},
                                                                             {DType::kFloat16, DType::kFloat16},
                                                                             {DType::kBfloat16, DType::kBfloat16},
                                                                             {DType::kFloat32, DType::kBfloat16}}) {
    expect_dot(numbers, small_integers({101, 71}, operands, random), small_integers({71, 307}, operands, random),
               result);
  }
}

TEST(dot_general, a_last_block_of_one_column_lands_in_its_column) {
  constexpr int64_t kRows = 32, kTerms = 64, kColumns = 16 * 544 + 1;  // 16 blocks, and a column that is left
  std::vector<float> values;
  for (int64_t i = 0; i < kTerms * kColumns; ++i) values.push_back(static_cast<float>(i % kColumns));
  const Array ones = f32({kRows, kTerms}, std::vector<float>(static_cast<size_t>(kRows * kTerms), 1));
  const std::vector<float> got =
      dot_general({{}, {}, {1}, {0}}).run({ones, f32({kTerms, kColumns}, values)})[0].values<float>();
  for (int64_t i = 0; i < kRows * kColumns; ++i)
    ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<float>(kTerms * (i % kColumns))) << i;
}

// As many rows as the terms are apart in memory: the operand is no transposed matrix for that.
TEST(dot_general, a_batch_dimension_behind_the_rows_is_gathered_before_it_is_widened) {
  std::mt19937 random(8);
  const Numbers numbers{{2}, {0}, {1}, {1}};
  for (const int64_t rows : {2, 5, 64}) {
    for (const DType dtype : {DType::kInt8, DType::kInt32, DType::kFloat16}) {
      const Array lhs = small_integers({rows, 50, rows}, dtype, random);
      const Array rhs = small_integers({rows, 50, 1}, dtype, random);
      expect_dot(numbers, lhs, rhs, dtype == DType::kFloat16 ? DType::kFloat64 : DType::kInt64);
    }
  }
}

// Rows of the left operand and columns of the right one in groups that one stride does not step through.
TEST(dot_general, groups_of_rows_and_of_columns_match_the_definition) {
  std::mt19937 random(23);
  for (const auto& [in, out] : std::vector<std::pair<DType, DType>>{{DType::kFloat32, DType::kFloat32},
                                                                    {DType::kFloat64, DType::kFloat64},
                                                                    {DType::kBfloat16, DType::kBfloat16},
                                                                    {DType::kInt8, DType::kInt32},
                                                                    {DType::kInt64, DType::kInt64},
                                                                    {DType::kInt8, DType::kInt64}}) {
    for (const int64_t rows : {15, 16, 40, 300}) {
      for (const int64_t columns : {17, 64, 130}) {
        const Numbers both{{}, {}, {1}, {1}};
        expect_dot(both, small_integers({3, 9, rows}, in, random), small_integers({2, 9, columns}, in, random), out);
        const Numbers inside_batch{{0}, {1}, {2}, {2}};
        expect_dot(inside_batch, small_integers({2, 3, 9, rows}, in, random),
                   small_integers({2, 2, 9, columns}, in, random), out);
      }
    }
    const Numbers of_two_dims{{}, {}, {2}, {0}};
    expect_dot(of_two_dims, small_integers({2, 3, 7, 2, 20}, in, random), small_integers({7, 33}, in, random), out);
  }
}

TEST(dot_general, terms_in_parts_match_the_definition) {
  std::mt19937 random(29);
  const auto numbers = [&](const Dims& dims, DType dtype) { return small_integers(dims, dtype, random); };
  for (const auto& [in, out] : std::vector<std::pair<DType, DType>>{{DType::kFloat32, DType::kFloat32},
                                                                    {DType::kFloat64, DType::kFloat64},
                                                                    {DType::kBfloat16, DType::kBfloat16},
                                                                    {DType::kFloat16, DType::kFloat32},
                                                                    {DType::kInt8, DType::kInt32},
                                                                    {DType::kInt16, DType::kInt16},
                                                                    {DType::kInt64, DType::kInt64}}) {
    const int64_t k = 20'011;
    expect_dot({{}, {}, {0}, {0}}, numbers({k, 16}, in), numbers({k, 17}, in), out);
    expect_dot({{}, {}, {1}, {0}}, numbers({17, k}, in), numbers({k, 16}, in), out);
    expect_dot({{}, {}, {0}, {0}}, numbers({50 * k}, in), numbers({50 * k}, in), out);
    expect_dot({{}, {}, {1}, {0}}, numbers({90, k}, in), numbers({k}, in), out);
    expect_dot({{}, {}, {0}, {1}}, numbers({k}, in), numbers({90, k}, in), out);
    expect_dot({{1}, {0}, {0}, {1}}, numbers({k, 2, 12}, in), numbers({2, k, 12}, in), out);
  }
}

TEST(dot_general, terms_of_a_few_rows_and_columns_are_work_items) {
  const auto work_items = [](int64_t m, int64_t k, int64_t n, int64_t copies) {
    const Instance dot = dot_general({{}, {}, {1}, {0}});
    const std::vector<ir::Type> types = {ir::Type::of({DType::kFloat32, {m, k}}),
                                         ir::Type::of({DType::kFloat32, {k, n}})};
    const std::vector<ir::Type> results = dot.infer(types);
    ops::OpView view = dot.view(types, results);
    view.copies = copies;
    return std::get<ops::LocalKernel>(dot.def->body).prepare(view);
  };
  const ops::PreparedKernel kernel = work_items(64, 50'000, 64, 1);
  ASSERT_EQ(kernel.barriers.size(), 1U);
  EXPECT_GT(kernel.barriers[0], 1);
  EXPECT_GT(kernel.workspace_bytes, 0);
  EXPECT_TRUE(work_items(64, 50'000, 64, 8).barriers.empty()) << "devices have one product each";
  EXPECT_TRUE(work_items(64, 500, 64, 1).barriers.empty());
  EXPECT_TRUE(work_items(2'000, 50'000, 64, 1).barriers.empty()) << "rows are work items";
}

TEST(dot_general, integer_sums_wrap_around) {
  const Instance dot = dot_general({{}, {}, {0}, {0}});
  const Array lhs = i32({3}, {INT32_MAX, INT32_MAX, 7});
  const Array rhs = i32({3}, {2, 2, 1});
  EXPECT_EQ(dot.run({lhs, rhs})[0].values<int32_t>(), (std::vector<int32_t>{3}));
  const Array bytes = Array::of<int8_t>(DType::kInt8, {2}, {100, 100});
  EXPECT_EQ(dot.run({bytes, bytes})[0].values<int8_t>(), (std::vector<int8_t>{static_cast<int8_t>(20000)}));
}

/// Of any bits, as the type's values modulo 2^64.
struct RandomIntegers {
  Array array;
  std::vector<uint64_t> values;

  RandomIntegers(const Dims& dims, DType dtype, std::mt19937& random) : array(Array::zeros({dtype, dims})) {
    const int64_t bits = tensor::row(dtype).bits;
    const int64_t bytes = tensor::size_bytes(dtype);
    for (int64_t i = 0; i < tensor::element_count(dims); ++i) {
      // Now and then the least, whose products are the largest.
      uint64_t value = random() % 4 == 0 ? uint64_t{1} << (bits - 1) : random() | uint64_t{random()} << 32;
      value <<= 64 - bits;
      value = tensor::is_unsigned_integer(dtype) ? value >> (64 - bits)
                                                 : static_cast<uint64_t>(static_cast<int64_t>(value) >> (64 - bits));
      std::memcpy(array.bytes.data() + i * bytes, &value, static_cast<size_t>(bytes));
      values.push_back(value);
    }
  }
};

TEST(dot_general, integers_of_all_bits_wrap_around_in_any_layout) {
  std::mt19937 random(41);
  const std::vector<std::array<DType, 3>> types = {
      {DType::kInt8, DType::kInt8, DType::kInt32},   {DType::kUint8, DType::kUint8, DType::kInt32},
      {DType::kInt16, DType::kInt16, DType::kInt32}, {DType::kUint16, DType::kUint16, DType::kUint32},
      {DType::kInt32, DType::kInt32, DType::kInt32}, {DType::kUint32, DType::kUint32, DType::kUint32},
      {DType::kInt8, DType::kInt8, DType::kInt8},    {DType::kUint8, DType::kUint8, DType::kUint8},
      {DType::kInt16, DType::kInt16, DType::kInt16}, {DType::kInt8, DType::kUint8, DType::kInt16},
      {DType::kInt8, DType::kInt8, DType::kUint32},  {DType::kInt4, DType::kInt4, DType::kInt4},
      {DType::kInt16, DType::kInt16, DType::kInt64}, {DType::kUint64, DType::kUint64, DType::kUint64}};
  for (int round = 0; round < 12 * static_cast<int>(types.size()); ++round) {
    const auto& [left, right, result] = types[static_cast<size_t>(round) % types.size()];
    const auto size = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint32_t>(most)) + 1; };
    const int64_t m = size(round % 5 == 0 ? 150 : 30);
    const int64_t n = size(round % 5 == 1 ? 300 : 40);
    const int64_t k = size(round % 5 == 2 ? 900 : 60);
    const bool lhs_transposed = random() % 2 == 0;
    const bool rhs_transposed = random() % 2 == 0;
    const RandomIntegers lhs(lhs_transposed ? Dims{k, m} : Dims{m, k}, left, random);
    const RandomIntegers rhs(rhs_transposed ? Dims{n, k} : Dims{k, n}, right, random);
    Instance dot = dot_general({{}, {}, {lhs_transposed ? 0 : 1}, {rhs_transposed ? 1 : 0}});
    dot.declared = {ir::Type::of({result, {m, n}})};
    const Array got = dot.run({lhs.array, rhs.array})[0];
    const int64_t bytes = tensor::size_bytes(result);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        uint64_t sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += lhs.values[static_cast<size_t>(lhs_transposed ? p * m + i : i * k + p)] *
                 rhs.values[static_cast<size_t>(rhs_transposed ? j * k + p : p * n + j)];
        }
        uint64_t made = 0;
        std::memcpy(&made, got.bytes.data() + (i * n + j) * bytes, static_cast<size_t>(bytes));
        ASSERT_EQ((made ^ sum) << (64 - tensor::row(result).bits), 0U)
            << tensor::name(left) << " into " << tensor::name(result) << ", " << m << " x " << k << " x " << n;
      }
    }
    EXPECT_EQ(dot.run({lhs.array, rhs.array}, Cut::kBackwards)[0].bytes, got.bytes) << "cut into units";
  }
}

// For these oneDNN 2.6 generates code by AMX that has an instruction which is none.
TEST(dot_general, narrow_products_of_63_and_of_125_to_127_terms) {
  std::mt19937 random(63);
  const Numbers numbers{{}, {}, {1}, {0}};
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{144, 8}, {193, 15}, {12, 144}, {47, 300}}) {
    for (const DType result : {DType::kBfloat16, DType::kFloat32})
      expect_dot(numbers, small_integers({m, 63}, DType::kBfloat16, random),
                 small_integers({63, n}, DType::kBfloat16, random), result);
  }
  for (const int64_t k : {125, 126, 127}) {
    for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{903, 56}, {64, 8}, {7, 300}, {130, 130}})
      expect_dot(numbers, small_integers({m, k}, DType::kInt8, random), small_integers({k, n}, DType::kInt8, random),
                 DType::kInt32);
  }
}

TEST(dot_general, int8_pairs_do_not_saturate) {
  const int64_t k = 512;
  const std::vector<int8_t> least(static_cast<size_t>(k * 20), -128);
  Instance dot = dot_general({{}, {}, {1}, {0}});
  dot.declared = {ir::Type::of({DType::kInt32, {20, 20}})};
  const Array result =
      dot.run({Array::of<int8_t>(DType::kInt8, {20, k}, least), Array::of<int8_t>(DType::kInt8, {k, 20}, least)})[0];
  for (const int32_t value : result.values<int32_t>()) ASSERT_EQ(value, 128 * 128 * k);
}

TEST(dot_general, complex_product_matches_the_definition) {
  std::mt19937 random(8);
  const auto complex_matrix = [&](int64_t rows, int64_t columns) {
    std::vector<double> values(static_cast<size_t>(rows * columns * 2));
    for (double& value : values) value = static_cast<double>(random() % 7) - 3;
    return Array::of(DType::kComplex128, {rows, columns}, values);
  };
  for (const int64_t n : {1, 9}) {
    const Array lhs = complex_matrix(5, 8);
    const Array rhs = complex_matrix(n, 8);
    const std::vector<double> a = lhs.values<double>();
    const std::vector<double> b = rhs.values<double>();
    const std::vector<double> got = dot_general({{}, {}, {1}, {1}}).run({lhs, rhs})[0].values<double>();
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double real = 0;
        double imag = 0;
        for (int64_t p = 0; p < 8; ++p) {
          const auto x = static_cast<size_t>((i * 8 + p) * 2);
          const auto y = static_cast<size_t>((j * 8 + p) * 2);
          real += a[x] * b[y] - a[x + 1] * b[y + 1];
          imag += a[x] * b[y + 1] + a[x + 1] * b[y];
        }
        EXPECT_EQ(got[static_cast<size_t>((i * n + j) * 2)], real);
        EXPECT_EQ(got[static_cast<size_t>((i * n + j) * 2 + 1)], imag);
      }
    }
  }
}

template <class T>
double mean_error_of_complex_product(DType dtype, int64_t m, int64_t k, int64_t n) {
  std::mt19937 random(10);
  std::normal_distribution<double> normal;
  const auto matrix = [&](int64_t rows, int64_t columns) {
    std::vector<T> values(static_cast<size_t>(2 * rows * columns));
    for (T& value : values) value = static_cast<T>(normal(random));
    return values;
  };
  const std::vector<T> a = matrix(m, k);
  const std::vector<T> b = matrix(k, n);
  const std::vector<T> got = dot_general({{}, {}, {1}, {0}})
                                 .run({Array::of<T>(dtype, {m, k}, a), Array::of<T>(dtype, {k, n}, b)})[0]
                                 .template values<T>();
  using Wide = std::complex<long double>;
  const auto at = [](const std::vector<T>& of, int64_t i) {
    return Wide(of[static_cast<size_t>(2 * i)], of[static_cast<size_t>(2 * i + 1)]);
  };
  long double largest = 0;
  long double errors = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Wide sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += at(a, i * k + p) * at(b, p * n + j);
      largest = std::max(largest, std::abs(sum));
      errors += std::abs(at(got, i * n + j) - sum);
    }
  }
  return static_cast<double>(errors / largest / static_cast<long double>(m * n)) / std::numeric_limits<T>::epsilon();
}

TEST(dot_general, long_complex_sums_are_no_chain) {
  EXPECT_LT(mean_error_of_complex_product<float>(DType::kComplex64, 40, 2000, 30), 0.8);
  EXPECT_LT(mean_error_of_complex_product<double>(DType::kComplex128, 40, 2000, 30), 0.8);
}

TEST(dot_general, garbage_in_the_result_is_not_read) {
  const Array ones = f32({4, 4}, std::vector<float>(16, 1));
  for (const auto& [lhs, rhs] :
       std::vector<std::pair<Dims, Dims>>{{{4, 4}, {4, 1}}, {{1, 4}, {4, 4}}, {{70, 70}, {70, 70}}}) {
    const Array a = f32(lhs, std::vector<float>(static_cast<size_t>(tensor::element_count(lhs)), 1));
    const Array b = f32(rhs, std::vector<float>(static_cast<size_t>(tensor::element_count(rhs)), 1));
    Instance dot = dot_general({{}, {}, {1}, {0}});
    for (const float value : dot.run({a, b})[0].values<float>()) EXPECT_EQ(value, static_cast<float>(lhs[1]));
  }
}

TEST(dot_general, nothing_to_sum_gives_zeros) {
  const Array got = dot_general({{}, {}, {1}, {0}}).run({f32({2, 0}, {}), f32({0, 3}, {})})[0];
  EXPECT_EQ(got.values<float>(), std::vector<float>(6, 0));
}

TEST(dot_general, messages_name_the_constraint) {
  const auto message = [](const Numbers& numbers, Dims lhs, Dims rhs) -> std::string {
    try {
      (void)dot_general(numbers).infer(
          {ir::Type::of({DType::kFloat32, std::move(lhs)}), ir::Type::of({DType::kFloat32, std::move(rhs)})});
    } catch (const core::Error& error) {
      return error.detail();
    }
    return "no error";
  };
  EXPECT_EQ(message({{}, {}, {1}, {0}}, {2, 64}, {32, 3}),
            "dot_general C10: contracting dims differ in size (lhs dim 1 is 64, rhs dim 0 is 32)");
  EXPECT_EQ(message({{0}, {}, {1}, {0}}, {2, 64}, {32, 3}),
            "dot_general C1: both sides must have as many batching dims, got 1 and 0");
  EXPECT_EQ(message({{1}, {0}, {1}, {0}}, {2, 64}, {64, 3}),
            "dot_general C3: batching and contracting dims of lhs must be distinct, got 1 twice");
  EXPECT_EQ(message({{}, {}, {2}, {0}}, {2, 64}, {64, 3}), "dot_general C5: lhs has 2 dims, got dim 2");
}

TEST(dot, vectors_and_matrices) {
  const Instance dot{.def = ops::find_op("stablehlo.dot")};
  const Array matrix = counting({2, 3});
  EXPECT_EQ(dot.run({matrix, f32({3}, {1, 2, 3})})[0].values<float>(), (std::vector<float>{8, 26}));
  EXPECT_EQ(dot.run({f32({2}, {1, 2}), matrix})[0].values<float>(), (std::vector<float>{6, 9, 12}));
  EXPECT_EQ(dot.run({f32({2}, {1, 2}), f32({2}, {3, 4})})[0].values<float>(), (std::vector<float>{11}));
}

// ---- the loops of our own for floats

/// A matrix in memory: rows x columns, of one type, with gaps between its lines.
struct Stored {
  kernels::MatrixLayout layout;
  std::vector<std::byte> bytes;
  std::vector<float> values;  // row-major

  Stored(int64_t rows, int64_t columns, bool by_rows, int64_t gap, DType dtype, std::vector<float> of)
      : layout(by_rows ? kernels::MatrixLayout{columns + gap, 1} : kernels::MatrixLayout{1, rows + gap}),
        values(std::move(of)) {
    const int64_t places = (by_rows ? rows * (columns + gap) : columns * (rows + gap)) + 1;
    std::vector<float> placed(static_cast<size_t>(places), std::numeric_limits<float>::quiet_NaN());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        placed[static_cast<size_t>(i * layout.row_stride + j * layout.column_stride)] =
            values[static_cast<size_t>(i * columns + j)];
      }
    }
    const Array wide = Array::of(DType::kFloat32, {places}, placed);
    bytes = converted(wide, dtype).bytes;
    // What the narrow type has kept.
    const std::vector<float> kept = converted(converted(wide, dtype), DType::kFloat32).values<float>();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        values[static_cast<size_t>(i * columns + j)] =
            kept[static_cast<size_t>(i * layout.row_stride + j * layout.column_stride)];
      }
    }
  }
};

std::vector<float> run_gemm(const kernels::GemmSpec& spec, const Stored& a, const Stored& b, int64_t row,
                            int64_t column) {
  const kernels::Gemm gemm(spec);
  std::vector<float> c(static_cast<size_t>(spec.m * spec.c_row_stride()), 7.0F);
  std::vector<std::byte> scratch(static_cast<size_t>(gemm.scratch_bytes()) + 64);
  std::byte* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  const int64_t elem = tensor::size_bytes(spec.in);
  gemm.run(a.bytes.data() + row * a.layout.row_stride * elem, b.bytes.data() + column * b.layout.column_stride * elem,
           reinterpret_cast<std::byte*>(c.data()), aligned);
  return c;
}

/// Finite numbers, and now and then one of those that need care.
std::vector<float> difficult_numbers(int64_t count, bool has_special, std::mt19937& random) {
  constexpr std::array<float, 6> kSpecial = {std::numeric_limits<float>::infinity(),
                                             -std::numeric_limits<float>::infinity(),
                                             std::numeric_limits<float>::quiet_NaN(),
                                             -0.0F,
                                             1e-40F,
                                             std::numeric_limits<float>::max()};
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values)
    value = has_special && random() % 40 == 0 ? kSpecial[random() % kSpecial.size()] : normal(random);
  return values;
}

/// NaNs count as equal, whatever their payload.
int64_t different_bits(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ? 0 : 1;
}

TEST(gemm, sums_of_packed_products_have_the_order_of_their_terms_in_any_layout_and_block) {
  std::mt19937 random(12);
  const auto below = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint32_t>(most)) + 1; };
  int packed = 0;
  for (int round = 0; round < 250; ++round) {
    const DType in = std::array{DType::kFloat32, DType::kBfloat16, DType::kFloat16}[static_cast<size_t>(round % 3)];
    // Few enough rows that most are multiplied by the packed loops at every level.
    const int64_t m = round % 50 == 0 ? below(300) + 1 : below(60) + 1;
    const int64_t n = round % 10 == 0 ? below(1200) + 1 : below(90) + 1;
    const int64_t k = round % 10 == 0 ? below(40) : round % 10 == 1 ? below(1200) : below(100);
    const Stored a(m, k, random() % 2 == 0, below(5) - 1, in, difficult_numbers(m * k, round % 4 == 3, random));
    const Stored b(k, n, random() % 2 == 0, below(5) - 1, in, difficult_numbers(k * n, round % 4 == 3, random));
    kernels::GemmSpec spec{m, n, k, in, DType::kFloat32, a.layout, b.layout};
    if (kernels::gemm_choice(spec) != "packed") continue;
    ++packed;
    const std::vector<float> c = run_gemm(spec, a, b, 0, 0);

    // The definition: parts of at most 384 terms, as long as each other, in order; of more than 192 their halves.
    const int64_t parts = (k + 383) / 384;
    const int64_t depth = (k + parts - 1) / parts;
    const bool fuses = kernels::cpu_level() != kernels::CpuLevel::kBase;
    int64_t different = 0;
    double worst = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t term = 0; term < k; term += depth) {
          const auto chain = [&](int64_t begin, int64_t end) {
            float out = 0;
            for (int64_t p = begin; p < end; ++p) {
              const float x = a.values[static_cast<size_t>(i * k + p)];
              const float y = b.values[static_cast<size_t>(p * n + j)];
              out = fuses ? std::fma(x, y, out) : out + x * y;
            }
            return out;
          };
          const int64_t end = std::min(k, term + depth);
          const int64_t middle = end - (end - term) / 2;
          const float part = end - term > 192 ? chain(term, middle) + chain(middle, end) : chain(term, end);
          sum = term == 0 ? part : sum + part;
        }
        const float got = c[static_cast<size_t>(i * n + j)];
        different += different_bits(got, sum);
        if (std::isfinite(sum) && std::isfinite(got)) worst = std::max<double>(worst, std::abs(got - sum));
      }
    }
    // Without AVX2 the compiler may fuse, or not.
    if (fuses) {
      ASSERT_EQ(different, 0) << m << " x " << n << " x " << k << ", round " << round;
    } else if (round % 4 != 3) {
      ASSERT_LT(worst, 1e-4) << m << " x " << n << " x " << k << ", round " << round;
    }

    // A block of it, in a matrix of its width.
    const int64_t row = below(m) - 1;
    const int64_t column = below(n) - 1;
    kernels::GemmSpec part = spec;
    part.m = std::max<int64_t>(2, below(m - row));
    part.n = std::max<int64_t>(2, below(n - column));
    part.c_stride = n;
    if (row + part.m > m || column + part.n > n) continue;
    const std::vector<float> block = run_gemm(part, a, b, row, column);
    for (int64_t i = 0; i < part.m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const float got = block[static_cast<size_t>(i * n + j)];
        const float wanted = j < part.n ? c[static_cast<size_t>((row + i) * n + column + j)] : 7.0F;
        ASSERT_EQ(different_bits(got, wanted), 0) << "block of " << part.m << " x " << part.n << ", round " << round;
      }
    }
  }
  EXPECT_GT(packed, 100);
}

TEST(gemm, products_with_a_vector_have_the_same_bits_in_any_block) {
  std::mt19937 random(77);
  const auto below = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint32_t>(most)) + 1; };
  int vectors = 0;
  for (int round = 0; round < 400; ++round) {
    const bool is_row = round % 2 == 0;
    const int64_t results = round % 10 == 0 ? below(1200) : below(90);
    // About a vector, about the terms of short rows, and of several parts.
    const int64_t k = round % 20 == 0 ? 4000 + below(400) : round % 5 == 0 ? 240 + below(40) : below(40);
    const int64_t m = is_row ? 1 : results;
    const int64_t n = is_row ? results : 1;
    const DType in = DType::kFloat32;
    const Stored a(m, k, random() % 2 == 0, below(5) - 1, in, difficult_numbers(m * k, round % 4 == 3, random));
    const Stored b(k, n, random() % 2 == 0, below(5) - 1, in, difficult_numbers(k * n, round % 4 == 3, random));
    kernels::GemmSpec spec{m, n, k, in, in, a.layout, b.layout};
    if (kernels::gemm_choice(spec) != "vector") continue;
    ++vectors;
    ASSERT_TRUE(kernels::gemm_takes_blocks(spec));
    const std::vector<float> c = run_gemm(spec, a, b, 0, 0);
    for (int64_t i = 0; i < results && round % 4 != 3; ++i) {
      double sum = 0;
      double magnitude = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double product = static_cast<double>(a.values[static_cast<size_t>(is_row ? p : i * k + p)]) *
                               static_cast<double>(b.values[static_cast<size_t>(is_row ? p * n + i : p)]);
        sum += product;
        magnitude += std::abs(product);
      }
      ASSERT_NEAR(c[static_cast<size_t>(i)], sum, 1e-6 * magnitude) << "round " << round;
    }
    const int64_t begin = below(results) - 1;
    kernels::GemmSpec part = spec;
    (is_row ? part.n : part.m) = below(results - begin);
    const std::vector<float> block = run_gemm(part, a, b, is_row ? 0 : begin, is_row ? begin : 0);
    for (size_t i = 0; i < block.size(); ++i) {
      ASSERT_EQ(different_bits(block[i], c[static_cast<size_t>(begin) + i]), 0)
          << (is_row ? "1 x " : "") << results << (is_row ? "" : " x 1") << ", " << k << " terms, block of "
          << block.size() << " from " << begin << ", round " << round;
    }
  }
  EXPECT_GT(vectors, 200);
}

TEST(gemm, a_copy_of_b_that_stayed_is_found_and_another_b_is_not_taken_for_it) {
  std::mt19937 random(31);
  constexpr int64_t kColumns = 75, kTerms = 700;  // of two parts, and of columns that fill no tile
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    for (const bool by_rows : {true, false}) {
      SCOPED_TRACE(std::string(tensor::name(dtype)) + (by_rows ? " by rows" : " by columns"));
      const kernels::MatrixLayout layout =
          by_rows ? kernels::MatrixLayout{kColumns, 1} : kernels::MatrixLayout{1, kTerms};
      kernels::GemmSpec spec{70, kColumns, kTerms, dtype, DType::kFloat32, {kTerms, 1}, layout};
      const int64_t count = kTerms * kColumns;
      const std::vector<float> numbers = difficult_numbers(count, false, random);
      std::vector<std::byte> b = converted(Array::of(DType::kFloat32, {count}, numbers), dtype).bytes;
      const std::vector<std::byte> other_b = b;
      const std::vector<float> rows = difficult_numbers(70 * kTerms, false, random);
      const std::vector<std::byte> a = converted(Array::of(DType::kFloat32, {70 * kTerms}, rows), dtype).bytes;
      kernels::GemmSpec few_rows = spec;
      few_rows.m = 3;  // which other loops may multiply
      const int64_t bytes = std::max(kernels::Gemm(spec).scratch_bytes(), kernels::Gemm(few_rows).scratch_bytes());
      std::vector<std::byte> scratch(static_cast<size_t>(bytes) + 64);
      std::byte* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
      const auto product = [&](int64_t m, const std::byte* of, kernels::PackedOperand* kept) {
        spec.m = m;
        std::vector<float> c(static_cast<size_t>(m * kColumns));
        kernels::Gemm(spec).run(a.data(), of, reinterpret_cast<std::byte*>(c.data()), aligned, nullptr, kept);
        return c;
      };
      const std::vector<float> expected = product(70, b.data(), nullptr);
      const std::vector<float> expected_of_few(expected.begin(), expected.begin() + 3 * kColumns);
      if (!kernels::Gemm(spec).keeps_packed()) continue;  // a library makes it
      kernels::PackedOperand kept;
      EXPECT_EQ(product(70, b.data(), &kept), expected);
      EXPECT_EQ(kept.of, b.data());
      std::fill(b.begin(), b.end(), std::byte{});  // what is read again would be seen
      EXPECT_EQ(product(70, b.data(), &kept), expected);
      const bool has_same_loops = kernels::gemm_choice(spec) == kernels::gemm_choice(few_rows);
      if (kernels::Gemm(few_rows).keeps_packed()) {
        EXPECT_EQ(product(3, b.data(), &kept), has_same_loops ? expected_of_few : std::vector<float>(3 * kColumns))
            << "few rows, with the copy of many, which is not taken where other loops multiply";
      }
      EXPECT_EQ(product(70, other_b.data(), &kept), expected);
      EXPECT_EQ(kept.of, other_b.data());
      EXPECT_NE(product(70, b.data(), &kept), expected) << "there is another one now";
    }
  }
}

TEST(gemm, many_threads_at_once_get_the_same_bits) {
  const kernels::GemmSpec spec{96, 96, 96, DType::kFloat32, DType::kFloat32, {96, 1}, {96, 1}};
  const kernels::GemmSpec wide{96, 96, 96, DType::kFloat64, DType::kFloat64, {96, 1}, {96, 1}};
  std::mt19937 random(9);
  std::vector<float> a(96 * 96);
  for (float& value : a) value = static_cast<float>(random() % 1000) / 999.0F;
  const std::vector<double> b(a.begin(), a.end());
  const auto product = [&](const kernels::GemmSpec& of, const void* matrix) {
    const kernels::Gemm gemm(of);
    std::vector<std::byte> out(static_cast<size_t>(96 * 96 * tensor::size_bytes(of.out)));
    std::vector<std::byte> scratch(static_cast<size_t>(gemm.scratch_bytes()));
    gemm.run(static_cast<const std::byte*>(matrix), static_cast<const std::byte*>(matrix), out.data(), scratch.data());
    return out;
  };
  const auto expected = product(spec, a.data());
  const auto expected_wide = product(wide, b.data());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      kernels::prepare_thread();
      for (int round = 0; round < 50; ++round) {
        if (product(spec, a.data()) != expected) ++wrong;
        if (product(wide, b.data()) != expected_wide) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace meshd::test
