// Machine code of tile programs is held to the interpreter, byte for byte. Tests run it with the processor's level, and
// with MESHD_MAX_ISA=avx2.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/elementwise/scalar/vector_functions.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/fold/fold_kernels.h"
#include "service/kernels/tile/tile_code.h"
#include "service/kernels/tile/tile_program.h"
#include "tests/unit/kernels/fused_support.h"
#include "tests/unit/kernels/scalar_support.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

constexpr int64_t kLanes = 256;
constexpr std::array kTypes = {DType::kFloat32, DType::kFloat32, DType::kBfloat16, DType::kInt32,
                               DType::kUint32,  DType::kBool,    DType::kFloat64,  DType::kInt8};
constexpr uint16_t kNone = 65535;

class TileCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu_level() == CpuLevel::kBase) GTEST_SKIP() << "no code is made for this processor";
  }

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  /// Special values and ordinary ones; of integers also small ones, as amounts to shift by.
  Bytes values(DType dtype, int64_t count) {
    Bytes bytes(static_cast<size_t>(count * tensor::size_bytes(dtype)));
    if (dtype == DType::kFloat32 || dtype == DType::kBfloat16) {
      const std::vector<float> samples = float_samples<float>(400, static_cast<uint32_t>(number(0, 1000)));
      std::vector<float> numbers;
      constexpr std::array kNans = {0x7FC00000U, 0xFFC00000U, 0x7FD30000U, 0xFFD30000U};
      for (int64_t i = 0; i < count; ++i) {
        if (number(0, 5) == 0) {
          numbers.push_back(std::bit_cast<float>(kNans[static_cast<size_t>(number(0, 3))]));
          continue;
        }
        numbers.push_back(number(0, 2) == 0 ? static_cast<float>(number(-9, 9)) * 0.37F
                                            : samples[static_cast<size_t>(number(0, std::ssize(samples) - 1))]);
      }
      const auto* const from = reinterpret_cast<const std::byte*>(numbers.data());
      find_scalar_kernel(ScalarOp::kConvert, DType::kFloat32, dtype)(&from, bytes.data(), count);
      return bytes;
    }
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(number(0, dtype == DType::kBool ? 1 : 255));
    for (int64_t i = 0; i < count && (dtype == DType::kInt32 || dtype == DType::kUint32); ++i) {
      const auto small = static_cast<int32_t>(number(-2, 40));
      if (number(0, 1) == 0) std::memcpy(bytes.data() + i * 4, &small, 4);
    }
    return bytes;
  }

  static uint16_t emit(TileProgram& program, ScalarOp op, const std::vector<uint16_t>& operands, DType out) {
    if (operands.size() == 1) return program.emit(op, {operands[0]}, out);
    if (operands.size() == 2) return program.emit(op, {operands[0], operands[1]}, out);
    return program.emit(op, {operands[0], operands[1], operands[2]}, out);
  }

  static bool has_kernel(ScalarOp op, DType in, DType out) {
    return !is_lane_by_lane(op, in) && find_scalar_kernel(op, in, out) != nullptr;
  }

  /// Any program: registers of all types, or of float32 alone, operations on any of them that is possible; long ones
  /// have more values than there are vector registers.
  TileProgram random_program() {
    TileProgram program;
    only_float_ = number(0, 2) == 0;
    const int64_t inputs = number(0, 3) == 0 ? number(5, 20) : number(1, 5);
    for (int64_t i = 0; i < inputs; ++i) program.add_register(type());
    program.input_count = static_cast<int>(inputs);
    for (int64_t i = number(0, 2); i > 0; --i) {
      const DType dtype = type();
      program.constant(dtype, values(dtype, 1).data());
    }
    const int64_t wanted = number(1, number(0, 3) == 0 ? 150 : 12);
    for (int64_t tries = 0; tries < 2000 && std::ssize(program.instructions) < wanted; ++tries) {
      const auto op = static_cast<ScalarOp>(number(0, static_cast<int64_t>(scalar_op_count()) - 1));
      const uint16_t first = any(program);
      const DType in = program.registers[first];
      const bool is_free = op == ScalarOp::kConvert || op == ScalarOp::kBitcast;
      const DType out = is_free ? type() : result_dtype(op, in);
      if (!has_kernel(op, in, out)) continue;
      std::vector<uint16_t> operands = {first};
      if (op == ScalarOp::kSelect) operands.insert(operands.begin(), any_of(program, DType::kBool));
      while (std::ssize(operands) < operand_count(op)) operands.push_back(any_of(program, in));
      if (std::find(operands.begin(), operands.end(), kNone) != operands.end()) continue;
      emit(program, op, operands, out);
    }
    program.outputs.push_back(static_cast<uint16_t>(program.registers.size() - 1));
    for (int64_t i = number(0, 3); i > 0; --i) program.outputs.push_back(any(program));
    return program;
  }

  std::vector<Bytes> random_inputs(const TileProgram& program, int64_t count) {
    std::vector<Bytes> inputs;
    for (int reg = 0; reg < program.input_count; ++reg)
      inputs.push_back(values(program.registers[static_cast<size_t>(reg)], count));
    return inputs;
  }

  enum class Way : uint8_t { kInterpreted, kCode, kStreaming };

  static std::vector<Bytes> outputs_of(const TileProgram& program, const std::vector<Bytes>& inputs, int64_t count,
                                       const TileCode* code, Way way) {
    TileScratch scratch(program, count);
    for (size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(scratch.reg(static_cast<uint16_t>(i)), inputs[i].data(), inputs[i].size());
    if (way == Way::kStreaming)
      code->run_streaming(scratch.pointers(), 0, count);
    else
      run_tile(program, way == Way::kCode ? code : nullptr, scratch, count);
    std::vector<Bytes> outputs;
    for (const uint16_t reg : program.outputs) {
      const std::byte* const lanes = scratch.reg(reg);
      outputs.emplace_back(lanes, lanes + count * tensor::size_bytes(program.registers[reg]));
    }
    return outputs;
  }

  static std::string describe(const TileProgram& program) {
    std::string text;
    for (const TileInstruction& instruction : program.instructions) {
      text += "r" + std::to_string(instruction.result) + " " +
              std::string(tensor::name(program.registers[instruction.result])) + " = " +
              std::string(name(instruction.op));
      for (int k = 0; k < operand_count(instruction.op); ++k) {
        const uint16_t reg = instruction.operands[static_cast<size_t>(k)];
        text += " r" + std::to_string(reg) + " " + std::string(tensor::name(program.registers[reg]));
      }
      text += "\n";
    }
    return text;
  }

  /// The first lane that differs, for messages.
  static std::string difference(const TileProgram& program, const std::vector<Bytes>& got,
                                const std::vector<Bytes>& expected) {
    for (size_t k = 0; k < got.size(); ++k) {
      const auto bytes = static_cast<size_t>(tensor::size_bytes(program.registers[program.outputs[k]]));
      for (size_t at = 0; at < got[k].size(); at += bytes) {
        if (std::memcmp(got[k].data() + at, expected[k].data() + at, bytes) == 0) continue;
        uint64_t a = 0;  // of complex128 the real part
        uint64_t b = 0;
        std::memcpy(&a, got[k].data() + at, std::min(bytes, sizeof a));
        std::memcpy(&b, expected[k].data() + at, std::min(bytes, sizeof b));
        std::ostringstream text;
        text << "output " << k << " r" << program.outputs[k] << " lane " << at / bytes << std::hex << ": " << a
             << ", interpreted " << b;
        return text.str();
      }
    }
    return "";
  }

  void expect_equal(const TileProgram& program, const TileCode& code, Way way, int64_t count) {
    const std::vector<Bytes> inputs = random_inputs(program, count);
    const std::vector<Bytes> got = outputs_of(program, inputs, count, &code, way);
    const std::vector<Bytes> expected = outputs_of(program, inputs, count, nullptr, Way::kInterpreted);
    EXPECT_EQ(difference(program, got, expected), "") << count << " lanes\n" << describe(program);
  }

  DType type() {
    if (only_float_) return DType::kFloat32;
    return kTypes[static_cast<size_t>(number(0, std::ssize(kTypes) - 1))];
  }
  uint16_t any(const TileProgram& program) {
    return static_cast<uint16_t>(number(0, std::ssize(program.registers) - 1));
  }
  uint16_t any_of(const TileProgram& program, DType dtype) {
    std::vector<uint16_t> found;
    for (uint16_t reg = 0; reg < program.registers.size(); ++reg) {
      if (program.registers[reg] == dtype) found.push_back(reg);
    }
    return found.empty() ? kNone : found[static_cast<size_t>(number(0, std::ssize(found) - 1))];
  }

  std::mt19937 random_{7};
  bool only_float_ = false;
};

TEST_F(TileCodeTest, every_operation_has_the_interpreters_bits) {
  int made = 0;
  for (size_t op_number = 0; op_number < scalar_op_count(); ++op_number) {
    const auto op = static_cast<ScalarOp>(op_number);
    for (const DType in : kTypes) {
      for (const DType out : kTypes) {
        if (!has_kernel(op, in, out)) continue;
        TileProgram program;
        if (op == ScalarOp::kSelect) program.add_register(DType::kBool);
        while (std::ssize(program.registers) < operand_count(op)) program.add_register(in);
        program.input_count = static_cast<int>(program.registers.size());
        std::vector<uint16_t> operands;
        for (uint16_t reg = 0; reg < program.input_count; ++reg) operands.push_back(reg);
        program.outputs = {emit(program, op, operands, out)};
        const auto code = TileCode::make(program, cpu_level(), {});
        ASSERT_NE(code, nullptr) << describe(program);
        expect_equal(program, *code, Way::kCode, 4 * kLanes);
        ++made;
      }
    }
  }
  EXPECT_GT(made, 200);
}

TEST_F(TileCodeTest, random_programs_have_the_interpreters_bits) {
  int made = 0;
  for (int i = 0; i < 600 && !HasFailure(); ++i) {
    const TileProgram program = random_program();
    const auto code = TileCode::make(program, cpu_level(), {.prefetches = i % 2 == 0, .streams = false});
    if (code == nullptr) continue;
    ++made;
    expect_equal(program, *code, Way::kCode, kLanes);
    expect_equal(program, *code, Way::kCode, number(1, kLanes));
  }
  EXPECT_GT(made, 500);
}

TEST_F(TileCodeTest, inputs_of_one_value_are_read_as_one_element) {
  int made = 0;
  for (int i = 0; i < 600 && !HasFailure(); ++i) {
    const TileProgram program = random_program();
    std::vector<uint16_t> elements;
    std::vector<Bytes> inputs = random_inputs(program, kLanes);
    for (uint16_t reg = 0; reg < program.input_count; ++reg) {
      if (tensor::size_bytes(program.registers[reg]) == 4 && number(0, 1) == 0) elements.push_back(reg);
    }
    const auto code = TileCode::make(program, cpu_level(), {.prefetches = i % 2 == 0, .elements = elements});
    if (code == nullptr || !code->reads_elements()) continue;
    ++made;
    std::vector<Bytes> first_lane = inputs;
    for (const uint16_t reg : elements) {
      for (size_t at = 4; at < inputs[reg].size(); at += 4) {
        std::memcpy(inputs[reg].data() + at, inputs[reg].data(), 4);
        std::memset(first_lane[reg].data() + at, 0xA5, 4);
      }
    }
    std::vector<Bytes> got = outputs_of(program, first_lane, kLanes, code.get(), Way::kCode);
    std::vector<Bytes> expected = outputs_of(program, inputs, kLanes, nullptr, Way::kInterpreted);
    for (size_t k = 0; k < got.size(); ++k) {
      // The code does not write inputs that are outputs.
      if (program.outputs[k] < program.input_count) got[k] = expected[k];
    }
    EXPECT_EQ(difference(program, got, expected), "") << describe(program);
  }
  EXPECT_GT(made, 10);  // fewer in builds whose loops call no vector functions
}

/// The levels whose code this processor runs.
std::vector<CpuLevel> levels_of_code() {
  if (cpu_level() == CpuLevel::kBase) return {};
  if (cpu_level() == CpuLevel::kV3) return {CpuLevel::kV3};
  return {CpuLevel::kV3, CpuLevel::kV4};
}

/// Inputs of f32 over rows: lanes that follow each other, elements of rows, and rows that are apart, with nothing
/// behind the last one. The same for the interpreter and for code.
struct RowsOfInputs {
  static constexpr int64_t kApart = 3;  ///< elements between rows

  RowsOfInputs(const TileProgram& program, int64_t of_rows, int64_t of_lanes)
      : rows(of_rows), lanes(of_lanes), scratch(program, rows * lanes), by_code(program, rows * lanes) {}

  void add(uint16_t reg, Bytes numbers, bool is_element, bool is_apart) {
    auto* const all = reinterpret_cast<float*>(numbers.data());
    for (int64_t at = 0; at < rows * lanes && is_element; ++at) all[at] = all[at - at % lanes];
    std::memcpy(scratch.reg(reg), numbers.data(), numbers.size());
    std::memcpy(by_code.reg(reg), numbers.data(), numbers.size());
    if (!is_element && !is_apart) return;
    std::vector<float>& moved = memory.emplace_back();
    for (int64_t row = 0; row < rows; ++row) {
      const float* const from = all + row * lanes;
      moved.insert(moved.end(), from, from + (is_element ? 1 : lanes));
      if (row + 1 < rows) moved.insert(moved.end(), is_element ? 1 : kApart, 1E30F);
    }
    by_code.bind(reg, reinterpret_cast<std::byte*>(moved.data()));
    constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
    (is_element ? elements : row_inputs).push_back(reg);
    (is_element ? element_strides : row_strides).push_back((is_element ? 2 : kApart) * kBytes);
  }
  [[nodiscard]] std::vector<int64_t> strides() const {
    std::vector<int64_t> all = element_strides;
    all.insert(all.end(), row_strides.begin(), row_strides.end());
    return all;
  }

  int64_t rows;
  int64_t lanes;
  TileScratch scratch;
  TileScratch by_code;
  std::vector<uint16_t> elements;
  std::vector<uint16_t> row_inputs;
  std::vector<int64_t> element_strides;
  std::vector<int64_t> row_strides;
  std::deque<std::vector<float>> memory;
};

class TileRowsTest : public TileCodeTest {
 protected:
  /// Of f32, with one output or two.
  TileProgram program_of_floats(std::span<const ScalarOp> ops, int64_t outputs) {
    TileProgram program;
    const int64_t inputs = number(1, 4);
    for (int64_t k = 0; k < inputs; ++k) program.add_register(DType::kFloat32);
    program.input_count = static_cast<int>(inputs);
    for (int64_t k = number(outputs, 5); k > 0; --k) {
      const ScalarOp op = ops[static_cast<size_t>(number(0, std::ssize(ops) - 1))];
      std::vector<uint16_t> operands;
      while (std::ssize(operands) < operand_count(op)) operands.push_back(any(program));
      emit(program, op, operands, DType::kFloat32);
    }
    for (int64_t k = 1; k <= outputs; ++k)
      program.outputs.push_back(static_cast<uint16_t>(program.registers.size() - static_cast<size_t>(k)));
    return program;
  }

  std::unique_ptr<RowsOfInputs> rows_of(const TileProgram& program, std::span<const int64_t> row_lanes) {
    const int64_t lanes = row_lanes[static_cast<size_t>(number(0, std::ssize(row_lanes) - 1))];
    auto rows = std::make_unique<RowsOfInputs>(program, number(1, 7), lanes);
    // Which of two NaNs a sum is depends on the lane of its block: of other rows, code has other blocks.
    const bool is_special = lanes % kBlockLanes == 0 && number(0, 3) > 0;
    for (uint16_t reg = 0; reg < program.input_count; ++reg) {
      Bytes numbers = values(DType::kFloat32, rows->rows * lanes);
      auto* const all = reinterpret_cast<float*>(numbers.data());
      for (int64_t at = 0; at < rows->rows * lanes && !is_special; ++at)
        all[at] = static_cast<float>(number(-100000, 100000)) * 0.37F;
      const int64_t kind = number(0, 2);
      rows->add(reg, std::move(numbers), kind == 1, kind == 2);
    }
    return rows;
  }
};

constexpr std::array<int64_t, 13> kSummedLanes = {16, 32, 48, 64, 65, 79, 100, 127, 128, 129, 192, 250, 1000};
constexpr std::array<int64_t, 16> kWalkedLanes = {8, 9, 16, 20, 31, 32, 40, 48, 63, 64, 65, 100, 127, 128, 250, 1000};
constexpr std::array kPlainOps = {ScalarOp::kAdd, ScalarOp::kSubtract, ScalarOp::kMultiply, ScalarOp::kAbs,
                                  ScalarOp::kNegate};

TEST_F(TileRowsTest, sums_of_rows_have_the_bits_of_the_fold) {
  const std::optional<FoldKernels> fold = find_fold(ScalarOp::kAdd, DType::kFloat32);
  ASSERT_TRUE(fold && fold->sums_floats);
  for (const CpuLevel level : levels_of_code()) {
    int made = 0;
    for (int i = 0; i < 600 && !HasFailure(); ++i) {
      const TileProgram program = program_of_floats(kPlainOps, 1);
      const auto of = rows_of(program, kSummedLanes);
      const auto code =
          TileCode::make(program, level, {.sums = of->lanes, .elements = of->elements, .row_inputs = of->row_inputs});
      ASSERT_NE(code, nullptr);
      if (!code->sums()) continue;
      ++made;
      run_tile(program, nullptr, of->scratch, of->rows * of->lanes);
      std::vector<double> expected(static_cast<size_t>(of->rows));
      fold->segments(of->scratch.reg(program.outputs[0]), of->rows, of->lanes, 1,
                     reinterpret_cast<std::byte*>(expected.data()));
      std::vector<double> got(static_cast<size_t>(of->rows));
      const std::vector<int64_t> strides = of->strides();
      code->sum_rows(
          of->by_code.pointers(),
          {.begin = 0, .lanes = of->lanes, .count = of->rows, .strides = strides.data(), .totals = got.data()});
      for (size_t row = 0; row < got.size(); ++row) {
        EXPECT_EQ(std::bit_cast<uint64_t>(got[row]), std::bit_cast<uint64_t>(expected[row]))
            << describe(program) << of->rows << " rows of " << of->lanes << ": " << got[row] << " " << expected[row];
      }
    }
    EXPECT_GT(made, 100);
  }
}

// Some lanes of a row that ends within a vector are computed twice, those of no other row. Rows of results may be
// apart, too.
TEST_F(TileRowsTest, code_that_goes_from_row_to_row_has_the_bits_of_the_interpreter) {
  const std::array kOps = {ScalarOp::kAdd,     ScalarOp::kSubtract, ScalarOp::kMultiply, ScalarOp::kDivide,
                           ScalarOp::kMaximum, ScalarOp::kAbs,      scalar_op("sqrt"),   scalar_op("exponential")};
  for (const CpuLevel level : levels_of_code()) {
    int made = 0;
    for (int i = 0; i < 600 && !HasFailure(); ++i) {
      const TileProgram program = program_of_floats(kOps, number(1, 2));
      const auto of = rows_of(program, kWalkedLanes);
      const bool is_placed = number(0, 1) == 0;
      const auto code = TileCode::make(
          program, level,
          {.prefetches = i % 2 == 0,
           .row_lanes = of->lanes,
           .elements = of->elements,
           .row_inputs = of->row_inputs,
           .row_outputs = is_placed ? std::span<const uint16_t>(program.outputs) : std::span<const uint16_t>()});
      if (code == nullptr || !code->walks()) continue;
      ++made;
      run_tile(program, nullptr, of->scratch, of->rows * of->lanes);
      std::vector<int64_t> strides = of->strides();
      // Rows of all results side by side, or each where the register is.
      const int64_t row_stride = is_placed ? of->lanes * std::ssize(program.outputs) : of->lanes;
      std::vector<float> placed(static_cast<size_t>(row_stride * of->rows));
      std::vector<const std::byte*> results;
      constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
      for (size_t k = 0; k < program.outputs.size(); ++k) {
        float* const to = placed.data() + static_cast<int64_t>(k) * of->lanes;
        if (is_placed) of->by_code.bind(program.outputs[k], reinterpret_cast<std::byte*>(to));
        if (is_placed) strides.push_back((row_stride - of->lanes) * kBytes);
        results.push_back(of->by_code.reg(program.outputs[k]));
      }
      code->run_rows(of->by_code.pointers(),
                     {.begin = 0, .lanes = of->lanes, .count = of->rows, .strides = strides.data(), .totals = nullptr});
      for (size_t k = 0; k < program.outputs.size(); ++k) {
        const std::byte* const expected = of->scratch.reg(program.outputs[k]);
        for (int64_t row = 0; row < of->rows; ++row) {
          const int difference =
              std::memcmp(results[k] + row * row_stride * kBytes, expected + row * of->lanes * kBytes,
                          static_cast<size_t>(of->lanes * kBytes));
          EXPECT_EQ(difference, 0) << describe(program) << of->rows << " rows of " << of->lanes << ", row " << row;
        }
      }
    }
    EXPECT_GT(made, 100);
  }
}

TEST_F(TileCodeTest, stores_past_the_caches_have_the_same_bits) {
  int made = 0;
  for (int i = 0; i < 400 && !HasFailure(); ++i) {
    const TileProgram program = random_program();
    const auto code = TileCode::make(program, cpu_level(), {.prefetches = false, .streams = true});
    if (code == nullptr || !code->streams()) continue;
    ++made;
    expect_equal(program, *code, Way::kStreaming, kLanes);
    EXPECT_LE(code->bytes(), code_bytes(program, {.streams = true})) << describe(program);
  }
  EXPECT_GT(made, 20);
}

TEST_F(TileCodeTest, part_of_a_tile_leaves_the_rest) {
  TileProgram program;
  program.add_register(DType::kFloat32);
  program.input_count = 1;
  program.outputs = {program.emit(ScalarOp::kNegate, {0}, DType::kFloat32)};
  const auto code = TileCode::make(program, cpu_level(), {});
  TileScratch scratch(program, kLanes);
  for (const uint16_t reg : {uint16_t{0}, program.outputs[0]}) {
    const float value = 2;
    repeat_element(reinterpret_cast<const std::byte*>(&value), 4, scratch.reg(reg), kLanes);
  }
  code->run(scratch.pointers(), 64, 128);
  const auto* const got = reinterpret_cast<const float*>(scratch.reg(program.outputs[0]));
  for (int64_t i = 0; i < kLanes; ++i) EXPECT_EQ(got[i], i >= 64 && i < 128 ? -2 : 2) << i;
}

/// Permissions of the mapping that holds an address, such as "r-xp"; empty: there is none.
std::string permissions_at(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    std::string permissions;
    fields >> std::hex >> begin >> dash >> end >> permissions;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (at >= begin && at < end) return permissions;
  }
  return "";
}

TEST(CodeMemory, is_executable_and_not_writable_and_unmapped_with_its_object) {
  const std::array<std::byte, 3> code = {std::byte{1}, std::byte{2}, std::byte{3}};
  auto memory = CodeMemory::make(code);
  ASSERT_NE(memory, nullptr);
  const std::byte* const at = memory->begin();
  EXPECT_EQ(permissions_at(at), "r-xp");
  EXPECT_EQ(std::memcmp(at, code.data(), code.size()), 0);
  EXPECT_EQ(memory->bytes() % 4096, 0U);
  memory.reset();
  EXPECT_EQ(permissions_at(at), "");
}

TEST_F(TileCodeTest, code_comes_when_it_pays_and_only_where_it_gains) {
  TileProgram one;
  one.add_register(DType::kFloat32);
  one.input_count = 1;
  one.outputs = {one.emit(ScalarOp::kNegate, {0}, DType::kFloat32)};
  EXPECT_FALSE(gains_by_code(one, {}));
  EXPECT_TRUE(gains_by_code(one, {.streams = true}));
  EXPECT_TRUE(gains_by_code(one, {.sums = true}));
  TileProgram two = one;
  two.outputs = {two.emit(ScalarOp::kAbs, {two.outputs[0]}, DType::kFloat32)};
  EXPECT_TRUE(gains_by_code(two, {}));
  EXPECT_GT(code_bytes(two, {}), 0);
  TileProgram function = two;
  function.outputs = {function.emit(scalar_op("log"), {function.outputs[0]}, DType::kFloat32)};
  const bool has_functions = vector_function(scalar_op("log"), cpu_level()) != nullptr;
  EXPECT_FALSE(gains_by_code(function, {}));
  EXPECT_EQ(gains_by_code(function, {.streams = true}), has_functions);
  EXPECT_FALSE(gains_by_code(function, {.sums = true})) << "code with calls does not sum";
  TileProgram recipe = one;
  recipe.outputs = {recipe.emit(ScalarOp::kExp, {0}, DType::kFloat32)};
  EXPECT_EQ(gains_by_code(recipe, {}), has_functions) << "the code computes it itself";
  TileProgram calls = two;
  calls.outputs = {calls.emit(scalar_op("lgamma"), {calls.outputs[0]}, DType::kFloat32)};
  EXPECT_FALSE(gains_by_code(calls, {.streams = true}));

  const LazyTileCode lazy(1000);
  EXPECT_EQ(lazy.get(two, {}, 999), nullptr);
  const TileCode* const code = lazy.get(two, {}, 1);
  EXPECT_NE(code, nullptr);
  EXPECT_EQ(lazy.get(two, {}, 1), code);
  const LazyTileCode none(0);
  EXPECT_EQ(none.get(one, {}, 1), nullptr);
}

TEST_F(TileCodeTest, too_many_instructions_are_interpreted) {
  TileProgram program;
  program.add_register(DType::kFloat32);
  program.input_count = 1;
  uint16_t last = 0;
  for (int i = 0; i < 2100; ++i) last = program.emit(ScalarOp::kAdd, {last, 0}, DType::kFloat32);
  program.outputs = {last};
  EXPECT_EQ(TileCode::make(program, cpu_level(), {}), nullptr);
}

}  // namespace
}  // namespace meshd::kernels
