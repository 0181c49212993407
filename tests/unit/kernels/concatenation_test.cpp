#include "service/kernels/fused/concatenation.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "service/kernels/fused/joined_loops.h"
#include "tests/unit/kernels/fused_support.h"
#include "tests/unit/kernels/loop_maker.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;
using tensor::DType;

/// A loop over `dims` that reads operands 0 and 1 of as many elements, dense or (operand 1) backwards, and has the
/// outputs x * 2 + y and, `both`, x - y.
FusedLoop loop_over(const Dims& dims, bool both) {
  FusedLoop loop;
  loop.dims = dims;
  TileProgram& program = loop.program;
  for (int i = 0; i < 2; ++i) {
    program.add_register(DType::kFloat32);
    ++program.input_count;
    FusedInput input;
    input.operand = i;
    input.strides = tensor::row_major_strides(dims);
    if (i == 1) {
      input.offset = std::max<int64_t>(0, tensor::element_count(dims) - 1);
      for (int64_t& stride : input.strides) stride = -stride;
    }
    loop.inputs.push_back(input);
  }
  const float two = 2;
  const uint16_t constant = program.constant(DType::kFloat32, reinterpret_cast<const std::byte*>(&two));
  const uint16_t twice = program.emit(ScalarOp::kMultiply, {0, constant}, DType::kFloat32);
  program.outputs = {program.emit(ScalarOp::kAdd, {twice, 1}, DType::kFloat32)};
  if (both) program.outputs.push_back(program.emit(ScalarOp::kSubtract, {0, 1}, DType::kFloat32));
  return loop;
}

/// Parts of random sizes, some computed, some read from a longer or a reversed array, some repeated; against the same
/// parts made first and then copied element by element.
void expect_parts_where_they_belong(uint32_t seed) {
  LoopMaker maker(seed);
  constexpr int64_t kBytes = sizeof(float);
  const auto rank = static_cast<size_t>(maker.number(1, 4));
  const auto dim = static_cast<size_t>(maker.number(0, static_cast<int64_t>(rank) - 1));
  Dims dims(rank);
  for (size_t d = 0; d < rank; ++d) dims[d] = maker.number(1, d == 0 ? 3000 : 6);
  dims[dim] = 0;
  std::vector<Bytes> operands;
  std::vector<CopiedPart> copied;
  std::vector<ComputedParts> computed;
  std::vector<std::pair<int64_t, Bytes>> parts;  // size and dense contents, in order
  const auto part_dims = [&](int64_t size) {
    Dims out = dims;
    out[dim] = size;
    return out;
  };
  for (int64_t count = maker.number(1, 4); count > 0; --count) {
    const int64_t size = maker.number(1, dim == 0 ? 2000 : 9);
    const Dims part = part_dims(size);
    const int64_t elements = tensor::element_count(part);
    if (maker.number(0, 1) == 0) {
      const FusedLoop loop = loop_over(part, maker.number(0, 1) == 0);
      const std::vector<Bytes> reads = {maker.values(DType::kFloat32, elements),
                                        maker.values(DType::kFloat32, elements)};
      ComputedParts made{std::make_shared<const FusedLoop>(loop), static_cast<int>(operands.size()), {}};
      for (const Bytes& made_first : run_kernel(FusedKernel(loop), reads, {}, Dims(rank, 0))) {
        made.outputs.push_back({.size = size, .start = dims[dim]});
        parts.emplace_back(size, made_first);
        dims[dim] += size;
      }
      operands.insert(operands.end(), reads.begin(), reads.end());
      computed.push_back(made);
      continue;
    }
    CopiedPart made{.operand = static_cast<int>(operands.size()), .strides = {}, .size = size, .start = dims[dim]};
    const int64_t style = maker.number(0, 3);  // dense, part of longer rows, backwards, repeated along the first dim
    Dims from = part;
    if (style == 1) from.back() += 3;
    made.strides = tensor::row_major_strides(from);
    if (style == 1) made.offset = 2;
    if (style == 2) {
      for (int64_t& stride : made.strides) stride = -stride;
      made.offset = elements - 1;
    }
    if (style == 3) made.strides[0] = 0;
    operands.push_back(maker.values(DType::kFloat32, tensor::element_count(from)));
    Bytes contents(static_cast<size_t>(elements * kBytes));
    StridedCopy(part, tensor::row_major_strides(part), made.strides, kBytes)
        .run(contents.data(), operands.back().data() + made.offset * kBytes);
    copied.push_back(made);
    parts.emplace_back(size, std::move(contents));
    dims[dim] += size;
  }

  Bytes expected(static_cast<size_t>(tensor::element_count(dims) * kBytes));
  const int64_t inner = tensor::element_count(dims, dim + 1, rank) * kBytes;
  int64_t start = 0;
  for (const auto& [size, contents] : parts) {
    for (int64_t row = 0; row < tensor::element_count(dims, 0, dim); ++row)
      std::memcpy(expected.data() + (row * dims[dim] + start) * inner, contents.data() + row * size * inner,
                  static_cast<size_t>(size * inner));
    start += size;
  }

  const Concatenation concatenation(dims, dim, kBytes, copied, computed);
  Bytes got(expected.size(), std::byte{0xAB});
  std::vector<const std::byte*> pointers;
  for (const Bytes& operand : operands) pointers.push_back(operand.data());
  // Work items one by one and backwards: each must stand alone.
  for (int64_t item = concatenation.work_count(); item-- > 0;)
    concatenation.run(pointers.data(), got.data(), item, item + 1, nullptr);
  ASSERT_EQ(got, expected) << "seed " << seed << " dims " << tensor::to_string(dims) << " along " << dim;
}

TEST(concatenation, copied_and_computed_parts_are_where_they_belong) {
  for (uint32_t seed = 0; seed < 400; ++seed) expect_parts_where_they_belong(seed);
}

/// A rotary embedding: halves of the rows of an array, and values of some of the rows, of which code reads and writes
/// each row where it is.
void expect_rotated(const Dims& front, int64_t half, bool by_last_front_dim) {
  constexpr int64_t kBytes = sizeof(float);
  LoopMaker maker(static_cast<uint32_t>(half));
  FusedLoop loop;
  loop.dims = front;
  loop.dims.push_back(half);
  const size_t rank = loop.dims.size();
  Dims whole = front;
  whole.push_back(2 * half);
  loop.program.input_count = 4;
  for (int i = 0; i < 4; ++i) {
    loop.program.add_register(DType::kFloat32);
    FusedInput input;
    input.operand = i < 2 ? 0 : i - 1;
    input.strides = i < 2 ? tensor::row_major_strides(whole) : Dims(rank, 0);
    if (i == 1) input.offset = half;
    if (i > 1) {
      input.strides.back() = 1;
      input.strides[rank - (by_last_front_dim ? 2 : 3)] = half;
    }
    loop.inputs.push_back(input);
  }
  const auto emit = [&](ScalarOp op, uint16_t a, uint16_t b) { return loop.program.emit(op, {a, b}, DType::kFloat32); };
  loop.program.outputs = {emit(ScalarOp::kSubtract, emit(ScalarOp::kMultiply, 0, 2), emit(ScalarOp::kMultiply, 1, 3)),
                          emit(ScalarOp::kAdd, emit(ScalarOp::kMultiply, 1, 2), emit(ScalarOp::kMultiply, 0, 3))};
  const int64_t angles = front[rank - (by_last_front_dim ? 2 : 3)] * half;
  const std::vector<Bytes> operands = {maker.values(DType::kFloat32, tensor::element_count(whole)),
                                       maker.values(DType::kFloat32, angles), maker.values(DType::kFloat32, angles)};
  std::vector<const std::byte*> pointers;
  for (const Bytes& operand : operands) pointers.push_back(operand.data());
  std::vector<Bytes> results;
  for (const bool is_code : {false, true}) {
    if (is_code) loop.code_after = 0;
    ComputedParts made{std::make_shared<const FusedLoop>(loop), 0, {{half, 0}, {half, half}}};
    const Concatenation concatenation(whole, rank - 1, kBytes, {}, {made});
    Bytes& got = results.emplace_back(static_cast<size_t>(tensor::element_count(whole) * kBytes), std::byte{0xAB});
    for (int64_t item = concatenation.work_count(); item-- > 0;)
      concatenation.run(pointers.data(), got.data(), item, item + 1, nullptr);
  }
  ASSERT_EQ(results[0], results[1]) << tensor::to_string(front) << " rows of " << half;
}

TEST(concatenation, rows_of_computed_parts_are_written_where_they_belong) {
  for (const int64_t half : {8, 16, 20, 31, 32, 48, 64, 100, 250}) {
    for (const bool by_last_front_dim : {true, false}) {
      expect_rotated({3, 5, 8}, half, by_last_front_dim);
      expect_rotated({7, 40, 1}, half, by_last_front_dim);
      expect_rotated({2, 1, 100}, half, by_last_front_dim);
    }
  }
}

/// Arrays of `elem` bytes side by side, of which the second has rows `stride` elements apart.
void expect_columns(size_t columns, int64_t elem, const Dims& front, int64_t stride) {
  const int64_t rows = tensor::element_count(front);
  Dims dims = front;
  dims.push_back(static_cast<int64_t>(columns));
  Bytes expected(static_cast<size_t>(rows * elem) * columns);
  std::vector<Bytes> operands;
  std::vector<CopiedPart> copied;
  for (size_t k = 0; k < columns; ++k) {
    const int64_t step = k == 1 ? stride : 1;
    Bytes operand(static_cast<size_t>((rows * step + 3) * elem));
    for (size_t i = 0; i < operand.size(); ++i) operand[i] = static_cast<std::byte>(i * 31 + k * 7 + i / 256);
    Dims strides = tensor::row_major_strides(front);
    for (int64_t& each : strides) each *= step;
    strides.push_back(0);
    copied.push_back({static_cast<int>(k), 3, strides, 1, static_cast<int64_t>(k)});
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(expected.data() + (row * static_cast<int64_t>(columns) + static_cast<int64_t>(k)) * elem,
                  operand.data() + (3 + row * step) * elem, static_cast<size_t>(elem));
    }
    operands.push_back(std::move(operand));
  }
  std::vector<const std::byte*> pointers;
  for (const Bytes& operand : operands) pointers.push_back(operand.data());
  std::swap(copied.front(), copied.back());  // they come in any order
  const Concatenation concatenation(dims, front.size(), elem, copied, {});
  Bytes got(expected.size(), std::byte{0xAB});
  for (int64_t item = concatenation.work_count(); item-- > 0;)
    concatenation.run(pointers.data(), got.data(), item, item + 1, nullptr);
  ASSERT_EQ(got, expected) << columns << " columns of " << rows << " elements of " << elem << " bytes";
}

TEST(concatenation, columns_of_every_width_are_interleaved) {
  for (const int64_t elem : {1, 2, 4, 8, 16}) {
    for (const size_t columns : {2, 3, 4, 5}) {
      for (const Dims& front : {Dims{2}, Dims{7}, Dims{33}, Dims{100}, Dims{9, 11}, Dims{70'001}}) {
        expect_columns(columns, elem, front, 1);
        expect_columns(columns, elem, front, 2);
      }
    }
  }
}

TEST(concatenation, a_part_without_columns_beside_one_of_two) {
  const std::vector<int32_t> pairs = {1, 2, 3, 4, 5, 6};
  std::vector<int32_t> result(6);
  const std::vector<CopiedPart> copied = {{0, 0, {2, 1}, 2, 0}, {1, 0, {0, 0}, 0, 2}};
  const Concatenation concatenation({3, 2}, 1, 4, copied, {});
  const std::byte* const operands[] = {reinterpret_cast<const std::byte*>(pairs.data()), nullptr};
  concatenation.run(operands, reinterpret_cast<std::byte*>(result.data()), 0, concatenation.work_count(), nullptr);
  EXPECT_EQ(result, pairs);
}

TEST(concatenation, joined_loops_have_the_outputs_of_both) {
  int joined = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    LoopMaker maker(seed);
    const FusedLoop first = maker.loop(2000);
    FusedLoop second = maker.chain_over(first);
    const std::vector<Bytes> operands = maker.operands();
    const std::optional<FusedLoop> both = join_loops(first, second);
    ASSERT_TRUE(both) << "seed " << seed;
    EXPECT_LE(both->inputs.size(), first.inputs.size());
    const Dims offsets(first.dims.size(), 0);
    std::vector<Bytes> expected = run_kernel(FusedKernel(first), operands, {}, offsets);
    for (Bytes& output : run_kernel(FusedKernel(second), operands, {}, offsets)) expected.push_back(std::move(output));
    ASSERT_EQ(run_kernel(FusedKernel(*both), operands, {}, offsets), expected) << "seed " << seed;
    joined +=
        both->program.instructions.size() < first.program.instructions.size() + second.program.instructions.size();
    second.dims.push_back(2);
    EXPECT_FALSE(join_loops(first, second));
  }
  EXPECT_GT(joined, 0);  // what both compute is computed once
}

TEST(concatenation, loops_that_read_nothing_in_common_are_not_joined) {
  const FusedLoop first = loop_over({10}, false);
  FusedLoop second = first;
  for (FusedInput& input : second.inputs) input.operand += 2;
  EXPECT_FALSE(join_loops(first, second));
  const std::optional<FusedLoop> both = join_loops(first, second, true);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->inputs.size(), 4U);
  LoopMaker maker(1);
  for (int i = 0; i < 4; ++i) maker.add_operand(DType::kFloat32, 10);
  const std::vector<Bytes> operands = maker.operands();
  std::vector<Bytes> expected = run_kernel(FusedKernel(first), operands, {}, {0});
  for (Bytes& output : run_kernel(FusedKernel(second), operands, {}, {0})) expected.push_back(std::move(output));
  EXPECT_EQ(run_kernel(FusedKernel(*both), operands, {}, {0}), expected);
}

}  // namespace
}  // namespace meshd::kernels
