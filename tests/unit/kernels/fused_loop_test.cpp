#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "service/core/error.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "tests/unit/kernels/fused_support.h"
#include "tests/unit/kernels/loop_maker.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;
using tensor::DType;

std::string describe(const FusedLoop& loop) {
  std::string text = "dims " + tensor::to_string(loop.dims);
  for (const FusedInput& input : loop.inputs) {
    text += input.kind == FusedInput::Kind::kIota ? " iota " + std::to_string(input.iota_dim)
                                                  : " strides " + tensor::to_string(input.strides);
  }
  if (loop.reduce) {
    text += " reduce";
    for (const int dim : loop.reduce->dims) text += " " + std::to_string(dim);
  }
  return text;
}

std::vector<int64_t> random_cuts(LoopMaker& maker, int64_t work_items) {
  std::vector<int64_t> cuts;
  for (int64_t i = maker.number(0, 3); i > 0; --i) cuts.push_back(maker.number(0, work_items));
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

TileProgram binary_reducer(ScalarOp op, DType dtype) {
  TileProgram reducer;
  reducer.input_count = 2;
  reducer.add_register(dtype);
  reducer.add_register(dtype);
  reducer.outputs = {reducer.emit(op, {0, 1}, dtype)};
  return reducer;
}

/// (value, index) pairs: the larger value, the smaller index of equal ones.
TileProgram argmax_reducer(DType dtype) {
  TileProgram reducer;
  reducer.input_count = 4;
  for (const DType type : {dtype, DType::kInt32, dtype, DType::kInt32}) reducer.add_register(type);
  const uint16_t larger = reducer.emit(ScalarOp::kCompareGt, {0, 2}, DType::kBool);
  const uint16_t equal = reducer.emit(ScalarOp::kCompareEq, {0, 2}, DType::kBool);
  const uint16_t first = reducer.emit(ScalarOp::kCompareLt, {1, 3}, DType::kBool);
  const uint16_t tie = reducer.emit(ScalarOp::kAnd, {equal, first}, DType::kBool);
  const uint16_t keep = reducer.emit(ScalarOp::kOr, {larger, tie}, DType::kBool);
  reducer.outputs = {reducer.emit(ScalarOp::kSelect, {keep, 0, 2}, dtype),
                     reducer.emit(ScalarOp::kSelect, {keep, 1, 3}, DType::kInt32)};
  return reducer;
}

FusedKernel code_at_once(FusedLoop loop) {
  loop.code_after = 0;
  return FusedKernel(std::move(loop));
}

TEST(FusedLoop, random_chains_have_the_bits_of_single_elements_however_cut) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    LoopMaker maker(seed);
    const FusedLoop loop = maker.loop(seed % 10 == 0 ? 40'000 : 3'000);
    const std::vector<Bytes> operands = maker.operands();
    Dims offsets;
    for (size_t d = 0; d < loop.dims.size(); ++d) offsets.push_back(maker.number(0, 100));
    const FusedKernel kernel(loop);
    const auto expected = run_naively(loop, operands, offsets);
    const auto got = run_kernel(kernel, operands, random_cuts(maker, kernel.work_count()), offsets);
    ASSERT_EQ(got, expected) << "seed " << seed << " " << describe(loop);
    const auto by_code = run_kernel(code_at_once(loop), operands, random_cuts(maker, kernel.work_count()), offsets);
    ASSERT_EQ(by_code, expected) << "code, seed " << seed << " " << describe(loop);
  }
}

// Code reads them where they are, as one element; operands are no longer than they have to be. Tiles are parts of rows,
// rows, or several rows.
TEST(FusedLoop, values_of_a_row_and_of_all_rows_beside_lanes) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16}) {
    for (const int64_t row : {1, 63, 64, 100, 128, 192, 320, 512, 1000, 1024, 3001, 9000, 40'001}) {
      for (const int64_t rows : {1, 5, row > 9000 ? 7 : 131}) {
        if (dtype != DType::kFloat32 && rows * row > 131 * 512) continue;
        LoopMaker maker(static_cast<uint32_t>(row));
        FusedLoop loop;
        loop.dims = {rows, row};
        loop.program.input_count = 4;
        const std::vector<Dims> strides = {{row, 1}, {1, 0}, {0, 0}, {1, 0}};
        for (int i = 0; i < 4; ++i) {
          loop.program.add_register(i == 3 ? DType::kInt32 : dtype);
          FusedInput input;
          input.operand = maker.add_operand(i == 3 ? DType::kInt32 : dtype, i == 0 ? rows * row : i == 2 ? 1 : rows);
          input.strides = strides[static_cast<size_t>(i)];
          loop.inputs.push_back(input);
        }
        const uint16_t difference = loop.program.emit(ScalarOp::kSubtract, {0, 1}, dtype);
        const uint16_t scaled = loop.program.emit(ScalarOp::kMultiply, {2, difference}, dtype);
        const uint16_t number = loop.program.emit(ScalarOp::kConvert, {3}, dtype);
        const uint16_t larger = loop.program.emit(ScalarOp::kCompareGt, {number, scaled}, DType::kBool);
        loop.program.outputs = {loop.program.emit(ScalarOp::kSelect, {larger, scaled, 1}, dtype)};
        if (row == 1000) loop.program.outputs.push_back(1);
        FusedLoop folded = loop;
        folded.program.outputs.resize(1);
        folded.reduce = FusedReduce{{1}, binary_reducer(ScalarOp::kMaximum, dtype), {2}};
        const std::vector<Bytes> operands = maker.operands();
        for (const FusedLoop& each : {loop, folded}) {
          const auto expected = run_naively(each, operands, {0, 0});
          EXPECT_EQ(run_kernel(FusedKernel(each), operands, {}, {0, 0}), expected) << describe(each);
          const FusedKernel code = code_at_once(each);
          EXPECT_EQ(run_kernel(code, operands, random_cuts(maker, code.work_count()), {0, 0}), expected)
              << "code " << describe(each);
        }
      }
    }
  }
}

TEST(FusedLoop, elements_that_follow_each_other_are_read_a_few_times_each) {
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kFloat32, DType::kFloat64, DType::kComplex128}) {
    for (const int64_t repeat : {2, 3, 4, 5, 7, 8, 10, 15, 16, 17, 31, 64, 65}) {
      LoopMaker maker(static_cast<uint32_t>(repeat));
      FusedLoop loop;
      loop.dims = {7, 193, repeat};
      loop.program.add_register(dtype);
      loop.program.input_count = 1;
      FusedInput input;
      const int64_t step = repeat % 3 == 0 ? 2 : 1;
      input.operand = maker.add_operand(dtype, 7 * 193 * step + 1);
      input.offset = 1;
      input.strides = {193 * step, step, 0};
      loop.inputs.push_back(input);
      loop.program.outputs = {0};
      const std::vector<Bytes> operands = maker.operands();
      const FusedKernel kernel(loop);
      const Dims offsets(3, 0);
      const auto expected = run_naively(loop, operands, offsets);
      for (int round = 0; round < 20; ++round) {
        ASSERT_EQ(run_kernel(kernel, operands, random_cuts(maker, kernel.work_count()), offsets), expected)
            << tensor::name(dtype) << " " << repeat;
      }
    }
  }
}

// Rows of a larger array, and rows of one that are read several times each. The array ends where the last row does.
TEST(FusedLoop, rows_that_are_apart_or_repeated) {
  constexpr int64_t kTimes = 5;
  for (const DType dtype : {DType::kInt8, DType::kFloat32, DType::kComplex128}) {
    for (const int64_t row : {1, 3, 15, 16, 17, 32, 50, 63, 64, 100, 250, 499, 998, 1023, 1025, 3000}) {
      for (const int64_t between : {0, 1, 29}) {
        LoopMaker maker(static_cast<uint32_t>(row));
        FusedLoop loop;
        const int64_t rows = 6;
        loop.dims = {rows, kTimes, row};
        loop.program.input_count = 4;
        const int64_t apart = row + between;
        // Each row kTimes times; all rows; the rows backwards; each element of a column for a row.
        const std::vector<Dims> strides = {
            {apart, 0, 1}, {kTimes * apart, apart, 1}, {-kTimes * row, -row, 1}, {1, 0, 0}};
        const std::vector<int64_t> counts = {(rows - 1) * apart + row, (rows * kTimes - 1) * apart + row,
                                             rows * kTimes * row, rows};
        for (size_t i = 0; i < strides.size(); ++i) {
          loop.program.add_register(dtype);
          FusedInput input;
          input.operand = maker.add_operand(dtype, counts[i]);
          if (i == 2) input.offset = (rows * kTimes - 1) * row;
          input.strides = strides[i];
          loop.inputs.push_back(input);
        }
        const uint16_t sum = loop.program.emit(ScalarOp::kAdd, {0, 1}, dtype);
        const uint16_t difference = loop.program.emit(ScalarOp::kSubtract, {sum, 2}, dtype);
        loop.program.outputs = {loop.program.emit(ScalarOp::kAdd, {difference, 3}, dtype)};
        const std::vector<Bytes> operands = maker.operands();
        const Dims offsets(3, 0);
        const auto expected = run_naively(loop, operands, offsets);
        const FusedKernel kernel(loop);
        ASSERT_EQ(run_kernel(kernel, operands, random_cuts(maker, kernel.work_count()), offsets), expected)
            << describe(loop);
        ASSERT_EQ(run_kernel(code_at_once(loop), operands, {}, offsets), expected) << "code " << describe(loop);
      }
    }
  }
}

/// A copy of bytes, in front of and behind which no memory may be read: at the end of its pages, or at their beginning.
class FencedBytes {
 public:
  FencedBytes(const Bytes& bytes, bool at_end) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t size = (bytes.size() + page - 1) / page * page;
    mapped_ = size + 2 * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page, size, PROT_READ | PROT_WRITE);
    data_ = base_ + page + (at_end ? size - bytes.size() : 0);
    std::memcpy(data_, bytes.data(), bytes.size());
  }
  ~FencedBytes() { munmap(base_, mapped_); }
  FencedBytes(const FencedBytes&) = delete;
  FencedBytes& operator=(const FencedBytes&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  size_t mapped_ = 0;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
};

/// All work items, with operands and results between pages that may not be touched.
std::vector<Bytes> run_fenced(const FusedKernel& kernel, const std::vector<Bytes>& operands,
                              const std::vector<Bytes>& like, bool at_end) {
  std::vector<std::unique_ptr<FencedBytes>> memory;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (const Bytes& operand : operands) {
    memory.push_back(std::make_unique<FencedBytes>(operand, at_end));
    from.push_back(memory.back()->data());
  }
  for (const Bytes& result : like) {
    memory.push_back(std::make_unique<FencedBytes>(Bytes(result.size(), std::byte{0xAB}), at_end));
    to.push_back(memory.back()->data());
  }
  FusedCall call;
  call.operands = from.data();
  call.results = to.data();
  call.end = kernel.work_count();
  kernel.run(call);
  std::vector<Bytes> out;
  for (size_t k = 0; k < like.size(); ++k) out.emplace_back(to[k], to[k] + like[k].size());
  return out;
}

/// Dense rows, rows of longer ones, one row for several and an element for each, which code reads where they are. With
/// three dims one row is for all of the first, or of the second.
void expect_rows_of_each_kind(DType dtype, const Dims& dims) {
  const int64_t row = dims.back();
  const int64_t rows = tensor::element_count(dims, 0, dims.size() - 1);
  LoopMaker maker(static_cast<uint32_t>(row + rows));
  FusedLoop loop;
  loop.dims = dims;
  loop.program.input_count = 5;
  Dims longer = dims;
  longer.back() += 3;
  Dims element = tensor::row_major_strides(Dims(dims.begin(), dims.end() - 1));
  element.push_back(0);
  const std::vector<Dims> strides =
      dims.size() == 2
          ? std::vector<Dims>{{row, 1}, {row + 3, 1}, {0, 1}, element, {0, 1}}
          : std::vector<Dims>{
                tensor::row_major_strides(dims), tensor::row_major_strides(longer), {0, row, 1}, element, {row, 0, 1}};
  const std::vector<int64_t> counts = {rows * row, (rows - 1) * (row + 3) + row, dims.size() == 2 ? row : dims[1] * row,
                                       rows, dims.size() == 2 ? row : dims[0] * row};
  for (size_t i = 0; i < strides.size(); ++i) {
    loop.program.add_register(dtype);
    FusedInput input;
    input.operand = maker.add_operand(dtype, counts[i]);
    input.strides = strides[i];
    loop.inputs.push_back(input);
  }
  const auto emit = [&](ScalarOp op, uint16_t a, uint16_t b) { return loop.program.emit(op, {a, b}, dtype); };
  const uint16_t product = emit(ScalarOp::kMultiply, emit(ScalarOp::kAdd, 0, 1), 2);
  const uint16_t difference = emit(ScalarOp::kSubtract, product, emit(ScalarOp::kMultiply, 3, 4));
  loop.program.outputs = {emit(ScalarOp::kMultiply, difference, difference)};
  const int last = static_cast<int>(dims.size()) - 1;
  FusedLoop largest = loop;
  largest.reduce = FusedReduce{{last}, binary_reducer(ScalarOp::kMaximum, dtype), {maker.add_operand(dtype, 1)}};
  FusedLoop total = loop;
  total.reduce = FusedReduce{{last}, binary_reducer(ScalarOp::kAdd, dtype), {largest.reduce->init_operands[0]}};
  const std::vector<Bytes> operands = maker.operands();
  const Dims offsets(dims.size(), 0);
  for (const FusedLoop& each : {loop, largest, total}) {
    const auto interpreted = run_kernel(FusedKernel(each), operands, {}, offsets);
    const FusedKernel code = code_at_once(each);
    for (const bool at_end : {true, false})
      ASSERT_EQ(run_fenced(code, operands, interpreted, at_end), interpreted) << describe(each);
    if (each.reduce) continue;
    ASSERT_EQ(interpreted, run_naively(each, operands, offsets)) << describe(each);
  }
}

TEST(FusedLoop, rows_of_each_kind_side_by_side_are_read_where_they_are) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    for (const int64_t row : {7, 8, 9, 16, 20, 31, 32, 40, 48, 63, 64, 65, 100, 127, 128, 250, 512, 1000, 1024, 4096}) {
      for (const int64_t rows : {2, 3, 37}) {
        expect_rows_of_each_kind(dtype, {rows, row});
        if (row <= 128) expect_rows_of_each_kind(dtype, {5, rows, row});
      }
    }
  }
}

/// Gives a random loop a reduction over some of its dims.
void add_reduction(LoopMaker& maker, FusedLoop& loop, TileProgram reducer) {
  FusedReduce reduce;
  for (size_t d = 0; d < loop.dims.size(); ++d) {
    if (maker.number(0, 1) == 0) reduce.dims.push_back(static_cast<int>(d));
  }
  for (const uint16_t reg : loop.program.outputs) {
    reduce.init_operands.push_back(maker.add_operand(loop.program.registers[reg], 1));
  }
  reduce.reducer = std::move(reducer);
  loop.reduce = std::move(reduce);
}

TEST(FusedLoop, random_integer_reductions_are_exact) {
  constexpr std::array<ScalarOp, 6> kOps = {ScalarOp::kAdd,     ScalarOp::kMultiply, ScalarOp::kMaximum,
                                            ScalarOp::kMinimum, ScalarOp::kAnd,      ScalarOp::kXor};
  constexpr std::array<DType, 6> kTypes = {DType::kInt32, DType::kInt8, DType::kUint16,
                                           DType::kInt64, DType::kInt4, DType::kUint2};
  for (uint32_t seed = 0; seed < 150; ++seed) {
    LoopMaker maker(seed);
    FusedLoop loop = maker.loop(seed % 10 == 0 ? 40'000 : 3'000);
    const DType dtype = kTypes[seed % kTypes.size()];
    loop.program.outputs = {loop.program.emit(ScalarOp::kConvert, {loop.program.outputs[0]}, dtype)};
    add_reduction(maker, loop, binary_reducer(kOps[static_cast<size_t>(maker.number(0, 5))], dtype));
    const std::vector<Bytes> operands = maker.operands();
    const Dims offsets(loop.dims.size(), 3);
    const FusedKernel kernel(loop);
    const auto got = run_kernel(kernel, operands, random_cuts(maker, kernel.work_count()), offsets);
    ASSERT_EQ(got, run_naively(loop, operands, offsets)) << "seed " << seed << " " << describe(loop);
    ASSERT_EQ(run_kernel(code_at_once(loop), operands, {}, offsets), got) << "code, seed " << seed;
  }
}

// The last tile of a group is short, and is computed on more lanes than it has; the next group's first tile begins at
// the same place of the repeated row.
TEST(FusedLoop, a_repeated_row_has_its_values_in_every_tile_of_groups_of_several_tiles) {
  constexpr int64_t kGroups = 4;
  for (const int64_t row : {17, 33, 48, 63, 100}) {
    for (const int64_t rows : {21, 43, 64, 85, 107}) {
      for (const FusedInput::Kind kind : {FusedInput::Kind::kTensor, FusedInput::Kind::kIota}) {
        FusedLoop loop;
        loop.dims = {kGroups, rows, row};
        loop.program.input_count = 2;
        for (int i = 0; i < 2; ++i) loop.program.add_register(DType::kFloat32);
        loop.program.outputs = {loop.program.emit(ScalarOp::kMultiply, {0, 1}, DType::kFloat32)};
        loop.inputs.resize(2);
        loop.inputs[0].strides = {rows * row, row, 1};
        loop.inputs[1].kind = kind;
        loop.inputs[1].operand = 1;
        loop.inputs[1].iota_dim = 2;
        loop.inputs[1].strides = {0, 0, 1};
        loop.reduce = FusedReduce{
            .dims = {1, 2}, .reducer = binary_reducer(ScalarOp::kAdd, DType::kFloat32), .init_operands = {2}};
        std::vector<float> counted(static_cast<size_t>(row));
        std::iota(counted.begin(), counted.end(), 0.0F);
        const std::vector<float> ones(static_cast<size_t>(kGroups * rows * row), 1.0F);
        const std::vector<Bytes> operands = {bytes_of(ones), bytes_of(counted), bytes_of(std::vector<float>{0.0F})};
        const std::vector<Bytes> got = run_kernel(FusedKernel(loop), operands, {}, Dims(3, 0));
        const auto sum = static_cast<float>(rows * row * (row - 1) / 2);
        EXPECT_EQ(values_of<float>(got[0]), std::vector<float>(kGroups, sum)) << describe(loop);
      }
    }
  }
}

// Rows of few lanes share a tile; of many, the last tile of a row begins within the one before.
TEST(FusedLoop, sums_of_columns_are_exact_where_floats_are) {
  for (const int64_t lanes : {63, 64, 65, 100, 255, 256, 300, 511, 512, 513, 520, 1000, 1500, 2113}) {
    for (const int64_t rows : {1, 2, 9, 30}) {
      LoopMaker maker(static_cast<uint32_t>(lanes + rows));
      FusedLoop loop;
      loop.dims = {2, rows, lanes};
      loop.program.input_count = 2;
      for (int i = 0; i < 2; ++i) loop.program.add_register(DType::kFloat32);
      loop.program.outputs = {loop.program.emit(ScalarOp::kMultiply, {0, 1}, DType::kFloat32)};
      loop.inputs.resize(2);
      loop.inputs[0].strides = {rows * lanes, lanes, 1};
      loop.inputs[1].operand = 1;
      loop.inputs[1].strides = {0, 0, 1};
      loop.reduce =
          FusedReduce{.dims = {1}, .reducer = binary_reducer(ScalarOp::kAdd, DType::kFloat32), .init_operands = {2}};
      std::vector<float> values(static_cast<size_t>(2 * rows * lanes));
      for (float& value : values) value = static_cast<float>(maker.number(-100, 100));
      std::vector<float> factors(static_cast<size_t>(lanes));
      for (float& factor : factors) factor = static_cast<float>(maker.number(-9, 9));
      const std::vector<Bytes> operands = {bytes_of(values), bytes_of(factors), bytes_of(std::vector<float>{0.0F})};
      const auto expected = run_naively(loop, operands, Dims(3, 0));
      const FusedKernel kernel(loop);
      EXPECT_EQ(run_kernel(kernel, operands, random_cuts(maker, kernel.work_count()), Dims(3, 0)), expected)
          << describe(loop);
      EXPECT_EQ(run_kernel(code_at_once(loop), operands, {}, Dims(3, 0)), expected) << "code " << describe(loop);
    }
  }
}

TEST(FusedLoop, random_argmax_reductions_are_exact) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    LoopMaker maker(seed);
    FusedLoop loop = maker.loop(seed % 10 == 0 ? 30'000 : 3'000);
    // Values with ties, indices from an iota that tells all elements apart along the last dim.
    const uint16_t value =
        loop.program.emit(scalar_op("round_nearest_even"), {loop.program.outputs[0]}, DType::kFloat32);
    const uint16_t index = loop.program.emit(ScalarOp::kConvert, {value}, DType::kInt32);
    loop.program.outputs = {value, index};
    add_reduction(maker, loop, argmax_reducer(DType::kFloat32));
    const std::vector<Bytes> operands = maker.operands();
    const Dims offsets(loop.dims.size(), 0);
    const FusedKernel kernel(loop);
    const auto expected = run_naively(loop, operands, offsets);
    const auto cuts = random_cuts(maker, kernel.work_count());
    ASSERT_EQ(run_kernel(kernel, operands, cuts, offsets), expected) << "seed " << seed << " " << describe(loop);
    ASSERT_EQ(run_kernel(code_at_once(loop), operands, cuts, offsets), expected)
        << "code, seed " << seed << " " << describe(loop);
  }
}

/// (a, b) then (c, d): composition of x -> a x + b, associative but not commutative, in wrapping integers.
TileProgram composition_reducer(DType dtype = DType::kInt64) {
  TileProgram reducer;
  reducer.input_count = 4;
  for (int i = 0; i < 4; ++i) reducer.add_register(dtype);
  const uint16_t slope = reducer.emit(ScalarOp::kMultiply, {0, 2}, dtype);
  const uint16_t moved = reducer.emit(ScalarOp::kMultiply, {2, 1}, dtype);
  reducer.outputs = {slope, reducer.emit(ScalarOp::kAdd, {moved, 3}, dtype)};
  return reducer;
}

// Rows of a longer array, one row for all and rows in reverse, which are results, or are reduced, beside what is
// computed of them: code reads rows where they are, but such a register has to hold the lanes.
TEST(FusedLoop, rows_that_are_outputs_themselves) {
  for (const int64_t row : {20, 32, 64, 100, 250, 1024}) {
    for (const int64_t rows : {3, 37}) {
      const std::array<int64_t, 3> row_strides = {row + 3, 0, -row};
      for (const int64_t row_stride : row_strides) {
        LoopMaker maker(static_cast<uint32_t>(row + rows));
        FusedLoop loop;
        loop.dims = {rows, row};
        loop.program.input_count = 2;
        for (int i = 0; i < 2; ++i) {
          loop.program.add_register(DType::kInt32);
          FusedInput input;
          input.operand = maker.add_operand(DType::kInt32, rows * (row + 3));
          input.strides = {row, 1};
          loop.inputs.push_back(input);
        }
        loop.inputs[1].strides[0] = row_stride;
        if (row_stride < 0) loop.inputs[1].offset = (rows - 1) * row;
        const uint16_t product = loop.program.emit(ScalarOp::kMultiply, {0, 1}, DType::kInt32);
        loop.program.outputs = {1, loop.program.emit(ScalarOp::kSubtract, {product, 0}, DType::kInt32)};
        FusedLoop folded = loop;
        const int init = maker.add_operand(DType::kInt32, 1);
        folded.reduce = FusedReduce{{1}, composition_reducer(DType::kInt32), {init, init}};
        const std::vector<Bytes> operands = maker.operands();
        for (const FusedLoop& each : {loop, folded}) {
          const auto expected = run_naively(each, operands, {0, 0});
          ASSERT_EQ(run_kernel(FusedKernel(each), operands, {}, {0, 0}), expected) << describe(each);
          ASSERT_EQ(run_kernel(code_at_once(each), operands, {}, {0, 0}), expected) << "code " << describe(each);
        }
      }
    }
  }
}

TEST(FusedLoop, a_reducer_that_does_not_commute_sees_items_in_order) {
  const TileProgram reducer = composition_reducer();
  for (uint32_t seed = 0; seed < 100; ++seed) {
    LoopMaker maker(seed);
    FusedLoop loop = maker.loop(5'000);
    const uint16_t a = loop.program.emit(ScalarOp::kConvert, {loop.program.outputs[0]}, DType::kInt64);
    loop.program.outputs = {a, loop.program.emit(ScalarOp::kAdd, {a, a}, DType::kInt64)};
    add_reduction(maker, loop, reducer);
    const std::vector<Bytes> operands = maker.operands();
    const Dims offsets(loop.dims.size(), 0);
    const FusedKernel kernel(loop);
    ASSERT_EQ(run_kernel(kernel, operands, {}, offsets), run_naively(loop, operands, offsets))
        << "seed " << seed << " " << describe(loop);
  }
}

void expect_groups_in_order(DType dtype, int64_t items, int64_t lanes) {
  const int64_t bytes = tensor::size_bytes(dtype);
  FusedLoop loop;
  loop.dims = {150, items, lanes};
  FusedInput input;
  input.strides = {items * lanes, lanes, 1};
  loop.inputs = {input};
  loop.program.input_count = 1;
  loop.program.add_register(dtype);
  loop.program.outputs = {0, loop.program.emit(ScalarOp::kMultiply, {0, 0}, dtype)};
  loop.reduce = FusedReduce{.dims = {1}, .reducer = composition_reducer(dtype), .init_operands = {1, 2}};
  std::mt19937 random(static_cast<uint32_t>(items));
  std::vector<Bytes> operands = {Bytes(static_cast<size_t>(150 * items * lanes * bytes)),
                                 Bytes(static_cast<size_t>(bytes)), Bytes(static_cast<size_t>(bytes))};
  for (Bytes& operand : operands) {
    for (std::byte& byte : operand) byte = static_cast<std::byte>(random());
  }
  const auto expected = run_naively(loop, operands, {0, 0, 0});
  ASSERT_EQ(run_kernel(FusedKernel(loop), operands, {}, {0, 0, 0}), expected)
      << tensor::name(dtype) << ", " << items << " items, " << lanes << " lanes";
  ASSERT_EQ(run_kernel(code_at_once(loop), operands, {}, {0, 0, 0}), expected)
      << "code, " << tensor::name(dtype) << ", " << items << " items, " << lanes << " lanes";
}

TEST(FusedLoop, groups_of_every_short_size_are_folded_in_order) {
  for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kInt16}) {
    for (int64_t items = 1; items <= 40; ++items) {
      for (const int64_t lanes : {1, 3}) expect_groups_in_order(dtype, items, lanes);
    }
  }
}

// Results that are arguments, each in the other's place: what is stored first does not overwrite the other.
TEST(FusedLoop, a_reducer_that_swaps_its_arguments_gives_whole_pairs) {
  for (const int64_t groups : {32, 63, 64, 200}) {
    FusedLoop loop;
    loop.dims = {groups, 4};
    FusedInput input;
    input.strides = {4, 1};
    loop.inputs = {input};
    loop.program.input_count = 1;
    loop.program.add_register(DType::kInt32);
    loop.program.outputs = {0, loop.program.emit(ScalarOp::kNegate, {0}, DType::kInt32)};
    TileProgram reducer;
    reducer.input_count = 4;
    for (int i = 0; i < 4; ++i) reducer.add_register(DType::kInt32);
    reducer.outputs = {3, 2};
    loop.reduce = FusedReduce{.dims = {1}, .reducer = reducer, .init_operands = {1, 2}};
    std::vector<int32_t> values(static_cast<size_t>(groups * 4));
    std::iota(values.begin(), values.end(), 1);
    const std::vector<Bytes> operands = {bytes_of(values), bytes_of<int32_t>({7}), bytes_of<int32_t>({-7})};
    for (const FusedKernel& kernel : {FusedKernel(loop), code_at_once(loop)}) {
      const auto got = run_kernel(kernel, operands, {}, {0, 0});
      const auto first = values_of<int32_t>(got[0]);
      const auto second = values_of<int32_t>(got[1]);
      for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], -second[i]) << groups << " groups, " << i;
    }
  }
}

TEST(FusedLoop, random_float_sums_are_near_the_true_sum_and_do_not_depend_on_cuts) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    LoopMaker maker(seed);
    FusedLoop loop = maker.loop(seed % 10 == 0 ? 40'000 : 3'000);
    const DType dtype = seed % 3 == 0 ? DType::kFloat64 : seed % 3 == 1 ? DType::kFloat32 : DType::kBfloat16;
    loop.program.outputs = {loop.program.emit(ScalarOp::kConvert, {loop.program.outputs[0]}, dtype)};
    add_reduction(maker, loop, binary_reducer(ScalarOp::kAdd, dtype));
    // The true sum: the same loop in float64, one element after another.
    FusedLoop wide = loop;
    wide.program.outputs = {wide.program.emit(ScalarOp::kConvert, {wide.program.outputs[0]}, DType::kFloat64)};
    wide.reduce->reducer = binary_reducer(ScalarOp::kAdd, DType::kFloat64);
    std::vector<Bytes> operands = maker.operands();
    const auto init = static_cast<size_t>(loop.reduce->init_operands[0]);
    std::vector<Bytes> wide_operands = operands;
    Bytes wide_init(sizeof(double));
    const std::byte* const narrow_init = operands[init].data();
    find_scalar_kernel(ScalarOp::kConvert, dtype, DType::kFloat64)(&narrow_init, wide_init.data(), 1);
    wide_operands[init] = wide_init;
    const Dims offsets(loop.dims.size(), 1);
    const FusedKernel kernel(loop);
    const auto got = run_kernel(kernel, operands, {}, offsets);
    ASSERT_EQ(run_kernel(kernel, operands, random_cuts(maker, kernel.work_count()), offsets), got) << "seed " << seed;
    ASSERT_EQ(run_kernel(code_at_once(loop), operands, {}, offsets), got) << "code, seed " << seed;
    const auto expected = values_of<double>(run_naively(wide, wide_operands, offsets)[0]);
    wide.program.outputs = {wide.program.emit(ScalarOp::kAbs, {wide.program.outputs[0]}, DType::kFloat64)};
    const auto sizes = values_of<double>(run_naively(wide, wide_operands, offsets)[0]);
    Bytes widened(expected.size() * sizeof(double));
    const std::byte* const narrow = got[0].data();
    find_scalar_kernel(ScalarOp::kConvert, dtype, DType::kFloat64)(&narrow, widened.data(),
                                                                   static_cast<int64_t>(expected.size()));
    const auto sums = values_of<double>(widened);
    // Rounding of the result, and a part of what cancels: far less than summing in pairs would lose.
    const double relative = dtype == DType::kFloat64 ? 1e-14 : dtype == DType::kFloat32 ? 6e-8 : 0.004;
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_NEAR(sums[i], expected[i], relative * std::abs(expected[i]) + 2e-9 * std::abs(sizes[i]) + 1e-10)
          << "seed " << seed << describe(loop);
    }
  }
}

/// One input of a type, read as it lies in memory, reduced with one op over the dims given.
FusedLoop plain_reduction(DType dtype, ScalarOp op, Dims dims, std::vector<int> reduced) {
  FusedLoop loop;
  loop.program.input_count = 1;
  loop.program.outputs = {loop.program.add_register(dtype)};
  FusedInput input;
  input.strides = tensor::row_major_strides(dims);
  loop.inputs = {input};
  loop.dims = std::move(dims);
  loop.reduce = FusedReduce{std::move(reduced), binary_reducer(op, dtype), {1}};
  return loop;
}

/// Every type and op with a direct loop, over rows, columns, both and few columns: near one element after another in
/// double, and exactly so where nothing rounds.
TEST(FusedLoop, direct_loops_of_every_type_agree_with_one_after_another) {
  const std::vector<std::pair<Dims, std::vector<int>>> shapes = {
      {{3, 300}, {1}}, {{300, 3}, {0}}, {{20, 70}, {0}}, {{4, 50, 3}, {1}}, {{20, 21}, {0, 1}}, {{3, 4, 70}, {0, 2}}};
  LoopMaker maker(1);
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (row.dtype == DType::kFloat8E8M0FNU) continue;  // has no zero to start a sum from
    for (const ScalarOp op :
         {ScalarOp::kAdd, ScalarOp::kMultiply, ScalarOp::kMaximum, ScalarOp::kMinimum, ScalarOp::kOr}) {
      if (find_scalar_kernel(op, row.dtype, row.dtype) == nullptr) continue;
      const bool rounds = (tensor::is_float(row.dtype) || tensor::is_complex(row.dtype)) &&
                          (op == ScalarOp::kAdd || op == ScalarOp::kMultiply);
      if (rounds && row.bits < 32) continue;  // one after another rounds too coarsely to compare with
      for (const auto& [dims, reduced] : shapes) {
        const FusedLoop loop = plain_reduction(row.dtype, op, dims, reduced);
        std::vector<Bytes> operands = {maker.values(row.dtype, tensor::element_count(dims)),
                                       maker.values(row.dtype, 1)};
        if (op == ScalarOp::kMultiply && rounds) {
          // Factors around 1, or products leave the range.
          const FusedLoop to_one = [&] {
            FusedLoop made;
            made.dims = {tensor::element_count(dims)};
            made.program.input_count = 1;
            made.program.add_register(row.dtype);
            made.inputs = {FusedInput{
                .kind = FusedInput::Kind::kTensor, .operand = 0, .offset = 0, .strides = {1}, .iota_dim = 0}};
            made.program.outputs = {made.program.emit(scalar_op("cosine"), {0}, row.dtype)};
            for (const ScalarOp step : {ScalarOp::kExp, scalar_op("sqrt"), scalar_op("sqrt"), scalar_op("sqrt")}) {
              made.program.outputs = {made.program.emit(step, {made.program.outputs[0]}, row.dtype)};
            }
            return made;
          }();
          operands[0] = run_kernel(FusedKernel(to_one), {operands[0]}, {}, {0})[0];
        }
        const Dims offsets(dims.size(), 0);
        const Bytes got = run_kernel(FusedKernel(loop), operands, {}, offsets)[0];
        const Bytes expected = run_naively(loop, operands, offsets)[0];
        if (!rounds) {
          ASSERT_EQ(got, expected) << name(op) << " of " << row.name << " over " << tensor::to_string(dims);
          continue;
        }
        const int64_t count = static_cast<int64_t>(got.size()) / row.bytes;
        std::vector<double> a(static_cast<size_t>(count));
        std::vector<double> b(static_cast<size_t>(count));
        const std::byte* from = got.data();
        const ScalarKernel widen = find_scalar_kernel(ScalarOp::kConvert, row.dtype, DType::kFloat64);
        widen(&from, reinterpret_cast<std::byte*>(a.data()), count);
        from = expected.data();
        widen(&from, reinterpret_cast<std::byte*>(b.data()), count);
        const bool narrow = row.dtype == DType::kFloat32 || row.dtype == DType::kComplex64;
        const double relative = narrow ? 1e-4 : 1e-12;
        for (size_t i = 0; i < a.size(); ++i) {
          ASSERT_NEAR(a[i], b[i], relative * std::abs(b[i]) + relative * 100) << name(op) << " of " << row.name;
        }
      }
    }
  }
}

template <class T>
void expect_special_values_are_chosen(DType dtype) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const std::vector<std::vector<T>> kinds = {
      {T{-0.0}, T{0}, -1, std::numeric_limits<T>::denorm_min()},
      {T{-0.0}, T{0}},
      {T{-0.0}},
      {T{-0.0}, T{0}, 1, -std::numeric_limits<T>::denorm_min()},
      {1, 2, -3, std::numeric_limits<T>::quiet_NaN()},
      {kInfinity, -kInfinity, 5},
      {-kInfinity},
      {std::numeric_limits<T>::quiet_NaN(), kInfinity, T{-0.0}},
      {std::numeric_limits<T>::lowest(), -1, std::numeric_limits<T>::max()},
  };
  std::mt19937 random(3);
  for (const int64_t count : {63, 64, 65, 95, 96, 127, 200, 1024}) {
    for (const std::vector<T>& kind : kinds) {
      std::vector<T> values(static_cast<size_t>(3 * count), kind.back());
      for (T& value : values) value = kind[random() % kind.size()];
      // Alone among others.
      values[static_cast<size_t>(count + static_cast<int64_t>(random()) % count)] = kind.back();
      for (const ScalarOp op : {ScalarOp::kMaximum, ScalarOp::kMinimum}) {
        const FusedLoop loop = plain_reduction(dtype, op, {3, count}, {1});
        const std::vector<Bytes> operands = {
            bytes_of(values), bytes_of(std::vector<T>{op == ScalarOp::kMaximum ? -kInfinity : kInfinity})};
        ASSERT_EQ(run_kernel(FusedKernel(loop), operands, {}, {0, 0})[0], run_naively(loop, operands, {0, 0})[0])
            << name(op) << " of " << count << " values such as " << kind.front();
      }
    }
  }
}

TEST(FusedLoop, maximum_and_minimum_choose_zeros_and_nans_as_one_after_another) {
  expect_special_values_are_chosen<float>(DType::kFloat32);
  expect_special_values_are_chosen<double>(DType::kFloat64);
}

TEST(FusedLoop, sums_of_16_bit_floats_do_not_stop_growing) {
  const FusedLoop loop = plain_reduction(DType::kBfloat16, ScalarOp::kAdd, {100'000}, {0});
  const std::vector<Bytes> operands = {bytes_of(std::vector<uint16_t>(100'000, 0x3F80)), Bytes(2)};
  const Bytes got = run_kernel(FusedKernel(loop), operands, {}, {0})[0];
  EXPECT_EQ(values_of<uint16_t>(got)[0], 0x47C3);  // 99,840: the bfloat16 nearest to 100,000
}

TEST(FusedLoop, long_sums_of_doubles_lose_no_more_than_pairs_would) {
  const int64_t count = 3'000'000;
  std::vector<double> x(static_cast<size_t>(count), 0.1);
  for (const auto& dims : {Dims{count}, Dims{count / 100, 100}, Dims{count / 2, 2}}) {
    std::vector<int> reduced = {0};
    const FusedLoop loop = plain_reduction(DType::kFloat64, ScalarOp::kAdd, dims, reduced);
    const auto sums = values_of<double>(run_kernel(FusedKernel(loop), {bytes_of(x), Bytes(8)}, {}, {0, 0})[0]);
    const double exact = static_cast<double>(static_cast<long double>(0.1) * static_cast<long double>(dims[0]));
    for (const double sum : sums) EXPECT_NEAR(sum, exact, 22 * 1.2e-16 * exact);
  }
}

TEST(FusedLoop, sum_of_many_ones_and_tenths_does_not_saturate) {
  const int64_t count = 40'000'000;
  FusedLoop loop;
  loop.dims = {count};
  loop.program.input_count = 1;
  loop.program.outputs = {loop.program.add_register(DType::kFloat32)};
  FusedInput input;
  input.strides = {1};
  loop.inputs = {input};
  loop.reduce = FusedReduce{{0}, binary_reducer(ScalarOp::kAdd, DType::kFloat32), {1}};
  const std::vector<Bytes> operands = {bytes_of(std::vector<float>(static_cast<size_t>(count), 0.1F)),
                                       bytes_of(std::vector<float>{0})};
  const FusedKernel kernel(loop);
  const float sum = values_of<float>(run_kernel(kernel, operands, {}, {0})[0])[0];
  EXPECT_EQ(sum, static_cast<float>(static_cast<double>(0.1F) * static_cast<double>(count)));
}

// One result, or few: what is reduced is cut along an outer dim or the items, and parts are combined in their order.
TEST(FusedLoop, large_reductions_to_few_results_are_cut_into_parts) {
  const std::vector<std::pair<Dims, std::vector<int>>> shapes = {
      {{140'001}, {0}},      {{45'000, 3}, {0}},      {{401, 700}, {0}},         {{3, 45'003}, {1}},
      {{29, 5'001}, {0, 1}}, {{12, 21, 600}, {0, 1}}, {{2, 41, 3, 555}, {1, 3}}, {{131, 600, 2}, {0, 1, 2}}};
  for (const auto& [dims, reduced] : shapes) {
    const auto make = [&, &dims = dims, &reduced = reduced](DType dtype, size_t values, TileProgram reducer) {
      FusedLoop loop = plain_reduction(dtype, ScalarOp::kAdd, dims, reduced);
      std::vector<int> inits;
      for (size_t k = 0; k < values; ++k) inits.push_back(static_cast<int>(k) + 1);
      loop.reduce = FusedReduce{reduced, std::move(reducer), inits};
      return loop;
    };
    FusedLoop sum = make(DType::kInt32, 1, binary_reducer(ScalarOp::kAdd, DType::kInt32));
    FusedLoop composition = make(DType::kInt64, 2, composition_reducer());
    composition.program.outputs.push_back(composition.program.emit(ScalarOp::kMultiply, {0, 0}, DType::kInt64));
    FusedLoop argmax = make(DType::kFloat32, 2, argmax_reducer(DType::kFloat32));
    const uint16_t rounded = argmax.program.emit(scalar_op("round_nearest_even"), {0}, DType::kFloat32);
    FusedLoop counted = make(DType::kFloat32, 2, argmax_reducer(DType::kFloat32));
    argmax.program.outputs = {rounded, argmax.program.emit(ScalarOp::kConvert, {0}, DType::kInt32)};
    FusedInput iota;
    iota.kind = FusedInput::Kind::kIota;
    iota.iota_dim = reduced.back();
    counted.inputs.push_back(iota);
    counted.program.outputs.push_back(counted.program.add_register(DType::kInt32));
    counted.program.input_count = 2;
    for (FusedLoop* const loop : {&sum, &composition, &argmax, &counted}) {
      LoopMaker maker(static_cast<uint32_t>(dims[0]));
      std::vector<Bytes> operands = {maker.values(loop->program.registers[0], tensor::element_count(dims))};
      for (const uint16_t output : loop->program.outputs)
        operands.push_back(maker.values(loop->program.registers[output], 1));
      const Dims offsets(dims.size(), 0);
      const auto expected = run_naively(*loop, operands, offsets);
      const FusedKernel kernel(*loop);
      EXPECT_GT(kernel.barrier(), 1) << describe(*loop);
      ASSERT_EQ(run_kernel(kernel, operands, random_cuts(maker, kernel.work_count()), offsets), expected)
          << describe(*loop);
      ASSERT_EQ(run_kernel(code_at_once(*loop), operands, {}, offsets), expected) << "code, " << describe(*loop);
    }
    const FusedLoop floats = make(DType::kFloat32, 1, binary_reducer(ScalarOp::kAdd, DType::kFloat32));
    LoopMaker maker(7);
    const std::vector<Bytes> operands = {maker.values(DType::kFloat32, tensor::element_count(dims)), Bytes(4)};
    const FusedKernel kernel(floats);
    const auto whole = run_kernel(kernel, operands, {}, Dims(dims.size(), 0));
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(run_kernel(kernel, operands, random_cuts(maker, kernel.work_count()), Dims(dims.size(), 0)), whole);
    FusedLoop of_many = floats;
    of_many.copies = 8;  // threads have one each
    EXPECT_EQ(FusedKernel(of_many).barrier(), 0);
  }
}

// Items that are cut would come before those of the next outer index.
TEST(FusedLoop, items_behind_an_outer_dim_are_cut_only_where_their_order_does_not_matter) {
  for (const auto& [dims, reduced] : std::vector<std::pair<Dims, std::vector<int>>>{
           {{2, 3, 30'001}, {0, 2}}, {{2, 2, 2, 20'001}, {1, 3}}, {{2, 2, 20'001, 3}, {0, 2}}}) {
    FusedLoop loop = plain_reduction(DType::kInt64, ScalarOp::kAdd, dims, reduced);
    const FusedLoop sum = loop;
    loop.program.outputs.push_back(loop.program.emit(ScalarOp::kMultiply, {0, 0}, DType::kInt64));
    loop.reduce = FusedReduce{reduced, composition_reducer(), {1, 2}};
    LoopMaker maker(3);
    const std::vector<Bytes> operands = {maker.values(DType::kInt64, tensor::element_count(dims)),
                                         maker.values(DType::kInt64, 1), maker.values(DType::kInt64, 1)};
    const Dims offsets(dims.size(), 0);
    ASSERT_EQ(run_kernel(FusedKernel(loop), operands, {}, offsets), run_naively(loop, operands, offsets))
        << describe(loop);
    EXPECT_GT(FusedKernel(sum).barrier(), 1);
    ASSERT_EQ(run_kernel(FusedKernel(sum), operands, {}, offsets), run_naively(sum, operands, offsets))
        << describe(sum);
  }
}

// Code adds what it computes along rows, and where all is one row; blocks of it, parts and rests.
TEST(FusedLoop, sums_by_code_have_the_bits_of_folds) {
  for (const int64_t row : {63, 64, 65, 100, 128, 250, 1000, 1023, 4099, 70'001}) {
    for (const int64_t rows : {1, 7, row > 5000 ? 3 : 131}) {
      for (const std::vector<int>& reduced : {std::vector<int>{1}, std::vector<int>{0, 1}}) {
        LoopMaker maker(static_cast<uint32_t>(row));
        FusedLoop loop;
        loop.dims = {rows, row};
        loop.program.input_count = 4;
        const std::vector<Dims> strides = {{row, 1}, {1, 0}, {0, 1}, {0, 0}};
        const std::vector<int64_t> sizes = {rows * row, rows, row, 1};
        for (size_t i = 0; i < 4; ++i) {
          loop.program.add_register(DType::kFloat32);
          FusedInput input;
          input.operand = maker.add_operand(DType::kFloat32, sizes[i]);
          input.strides = strides[i];
          loop.inputs.push_back(input);
        }
        const int init = maker.add_operand(DType::kFloat32, 1);
        const uint16_t difference = loop.program.emit(ScalarOp::kSubtract, {0, 1}, DType::kFloat32);
        const FusedLoop begun = loop;
        for (const uint16_t other : {difference, uint16_t{2}, uint16_t{3}}) {
          loop = begun;
          loop.program.outputs = {loop.program.emit(ScalarOp::kMultiply, {difference, other}, DType::kFloat32)};
          loop.reduce = FusedReduce{reduced, binary_reducer(ScalarOp::kAdd, DType::kFloat32), {init}};
          const std::vector<Bytes> operands = maker.operands();
          const FusedKernel kernel(loop);
          const auto expected = run_kernel(kernel, operands, {}, {0, 0});
          const FusedKernel code = code_at_once(loop);
          for (int again = 0; again < 2; ++again) {
            ASSERT_EQ(
                run_kernel(code, operands, random_cuts(maker, kernel.barrier() > 0 ? 0 : kernel.work_count()), {0, 0}),
                expected)
                << describe(loop);
          }
        }
      }
    }
  }
}

TEST(FusedLoop, results_may_take_over_the_memory_of_an_operand) {
  for (const bool by_code : {false, true}) {
    FusedLoop loop;
    if (by_code) loop.code_after = 0;
    loop.dims = {100'000};
    loop.program.input_count = 2;
    for (int i = 0; i < 2; ++i) {
      loop.program.add_register(DType::kFloat32);
      FusedInput input;
      input.operand = i;
      input.strides = {1};
      loop.inputs.push_back(input);
    }
    // The first output is ready before the second has read the first input.
    const uint16_t sum = loop.program.emit(ScalarOp::kAdd, {0, 1}, DType::kFloat32);
    const uint16_t difference = loop.program.emit(ScalarOp::kSubtract, {0, 1}, DType::kFloat32);
    loop.program.outputs = {sum, difference};
    std::vector<float> a(100'000);
    std::vector<float> b(100'000, 1.5F);
    std::iota(a.begin(), a.end(), 0.0F);
    const FusedKernel kernel(loop);
    const std::vector<const std::byte*> operands = {reinterpret_cast<std::byte*>(a.data()),
                                                    reinterpret_cast<std::byte*>(b.data())};
    const std::vector<std::byte*> results = {reinterpret_cast<std::byte*>(a.data()),
                                             reinterpret_cast<std::byte*>(b.data())};
    FusedCall call;
    call.operands = operands.data();
    call.results = results.data();
    call.end = kernel.work_count();
    kernel.run(call);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i], static_cast<float>(i) + 1.5F);
      ASSERT_EQ(b[i], static_cast<float>(i) - 1.5F);
    }
  }
}

TEST(FusedLoop, outputs_streamed_by_code_are_the_same_wherever_they_begin) {
  constexpr size_t kCount = 9'000'001;
  FusedLoop loop;
  loop.dims = {static_cast<int64_t>(kCount)};
  loop.program.input_count = 1;
  loop.program.add_register(DType::kFloat32);
  FusedInput input;
  input.strides = {1};
  loop.inputs = {input};
  loop.program.outputs = {loop.program.emit(
      ScalarOp::kSubtract, {loop.program.emit(ScalarOp::kAbs, {0}, DType::kFloat32), 0}, DType::kFloat32)};
  const FusedKernel code = code_at_once(loop);
  loop.code_after.reset();
  const FusedKernel interpreted(loop);
  std::vector<float> values(kCount);
  for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 1000) - 500;
  const auto* const from = reinterpret_cast<const std::byte*>(values.data());
  constexpr size_t kAlignment = 64;
  std::vector<float> memory(kCount + 2 * kAlignment);
  std::vector<float> expected(kCount);
  const auto run = [&](const FusedKernel& kernel, float* to) {
    std::byte* const result = reinterpret_cast<std::byte*>(to);
    FusedCall call;
    call.operands = &from;
    call.results = &result;
    call.end = kernel.work_count();
    kernel.run(call);
  };
  run(interpreted, expected.data());
  float* const aligned = memory.data() + -reinterpret_cast<uintptr_t>(memory.data()) % kAlignment / sizeof(float);
  for (const size_t skip : {0, 3}) {
    run(code, aligned + skip);
    EXPECT_EQ(std::memcmp(aligned + skip, expected.data(), kCount * sizeof(float)), 0) << skip;
  }
}

TEST(FusedLoop, large_outputs_are_the_same_when_streamed) {
  FusedLoop loop;
  loop.dims = {9'000'001};
  loop.program.input_count = 1;
  loop.program.add_register(DType::kFloat32);
  FusedInput input;
  input.kind = FusedInput::Kind::kIota;
  loop.inputs = {input};
  loop.program.outputs = {loop.program.emit(ScalarOp::kAdd, {0, 0}, DType::kFloat32)};
  const FusedKernel kernel(loop);
  const auto got = values_of<float>(run_kernel(kernel, {}, {7}, {5})[0]);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 2 * static_cast<float>(i + 5));
}

TEST(FusedLoop, empty_dims_give_the_initial_value_or_nothing) {
  FusedLoop loop;
  loop.dims = {3, 0};
  loop.program.input_count = 1;
  loop.program.outputs = {loop.program.add_register(DType::kFloat32)};
  FusedInput input;
  input.strides = {0, 1};
  loop.inputs = {input};
  const std::vector<Bytes> operands = {Bytes(4), bytes_of(std::vector<float>{2.5F})};
  EXPECT_EQ(FusedKernel(loop).work_count(), 0);
  loop.inputs[0].strides = {1, 0};  // rows do not join: the innermost dim stays empty
  EXPECT_EQ(FusedKernel(loop).work_count(), 0);
  loop.inputs[0].strides = {0, 1};
  for (const auto& reducer :
       {binary_reducer(ScalarOp::kAdd, DType::kFloat32), binary_reducer(ScalarOp::kPower, DType::kFloat32)}) {
    loop.reduce = FusedReduce{{1}, reducer, {1}};
    EXPECT_EQ(values_of<float>(run_kernel(FusedKernel(loop), operands, {}, {0, 0})[0]),
              (std::vector<float>{2.5F, 2.5F, 2.5F}));
    loop.reduce = FusedReduce{{0}, reducer, {1}};
    EXPECT_EQ(FusedKernel(loop).work_count(), 0);
  }
}

}  // namespace
}  // namespace meshd::kernels
