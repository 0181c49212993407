// Random fused loops, for tests that hold kernels to what single elements give.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/tile/tile_program.h"
#include "tests/unit/kernels/fused_support.h"

namespace meshd::kernels {

/// Random fused loops: any rank and strides, a chain of some ops, all inputs over memory that holds random values.
class LoopMaker {
 public:
  explicit LoopMaker(uint32_t seed) : random_(seed) {}

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  FusedLoop loop(int64_t most_elements) {
    FusedLoop made;
    const int64_t rank = number(0, 4);
    int64_t room = most_elements;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size =
          number(0, 3) == 0 ? number(1, std::max<int64_t>(1, room)) : number(1, std::min<int64_t>(room, 7));
      made.dims.push_back(size);
      room = std::max<int64_t>(1, room / size);
    }
    std::shuffle(made.dims.begin(), made.dims.end(), random_);
    const int64_t inputs = number(1, 4);
    for (int64_t i = 0; i < inputs; ++i) add_input(made);
    chain(made.program);
    return made;
  }

  /// Another chain over the same space and inputs.
  FusedLoop chain_over(const FusedLoop& loop) {
    FusedLoop made;
    made.dims = loop.dims;
    made.inputs = loop.inputs;
    for (int i = 0; i < loop.program.input_count; ++i)
      made.program.add_register(loop.program.registers[static_cast<size_t>(i)]);
    made.program.input_count = loop.program.input_count;
    chain(made.program);
    return made;
  }

  /// Values for every operand that a loop has been given.
  std::vector<Bytes> operands() {
    std::vector<Bytes> made;
    for (const auto& [dtype, count] : operands_) made.push_back(values(dtype, count));
    return made;
  }

  Bytes values(tensor::DType dtype, int64_t count) {
    std::vector<double> numbers(static_cast<size_t>(count));
    for (double& number_of : numbers) number_of = std::uniform_real_distribution<double>(-9, 9)(random_);
    Bytes bytes(static_cast<size_t>(count * tensor::size_bytes(dtype)));
    const auto* const from = reinterpret_cast<const std::byte*>(numbers.data());
    find_scalar_kernel(ScalarOp::kConvert, tensor::DType::kFloat64, dtype)(&from, bytes.data(), count);
    return bytes;
  }

  int add_operand(tensor::DType dtype, int64_t count) {
    operands_.emplace_back(dtype, count);
    return static_cast<int>(operands_.size() - 1);
  }

 private:
  void add_input(FusedLoop& made) {
    constexpr std::array<tensor::DType, 5> kTypes = {tensor::DType::kFloat32, tensor::DType::kFloat32,
                                                     tensor::DType::kInt32, tensor::DType::kBfloat16,
                                                     tensor::DType::kFloat64};
    const tensor::DType dtype = kTypes[static_cast<size_t>(number(0, 4))];
    FusedInput input;
    made.program.add_register(dtype);
    made.program.input_count++;
    if (!made.dims.empty() && number(0, 4) == 0) {
      input.kind = FusedInput::Kind::kIota;
      input.iota_dim = static_cast<int>(number(0, static_cast<int64_t>(made.dims.size()) - 1));
      made.inputs.push_back(input);
      return;
    }
    // Dims in some order in memory, some broadcast, some reversed, some with steps.
    std::vector<size_t> order(made.dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (number(0, 2) == 0) std::shuffle(order.begin(), order.end(), random_);
    const int64_t style = number(0, 3);
    input.strides.assign(made.dims.size(), 0);
    int64_t stride = 1;
    int64_t lowest = 0;
    for (size_t k = order.size(); k-- > 0;) {
      const size_t d = order[k];
      if (style == 1 && number(0, 1) == 0) continue;
      if (style == 2 && number(0, 1) == 0) stride *= number(1, 3);
      input.strides[d] = style == 3 && number(0, 1) == 0 ? -stride : stride;
      if (input.strides[d] < 0) lowest += input.strides[d] * (made.dims[d] - 1);
      stride *= made.dims[d];
    }
    const int64_t extra = number(0, 5);
    input.offset = extra - lowest;
    input.operand = add_operand(dtype, stride + extra);
    made.inputs.push_back(input);
  }

  void chain(TileProgram& program) {
    std::vector<uint16_t> floats;
    for (uint16_t reg = 0; reg < program.input_count; ++reg) {
      floats.push_back(program.registers[reg] == tensor::DType::kFloat32
                           ? reg
                           : program.emit(ScalarOp::kConvert, {reg}, tensor::DType::kFloat32));
    }
    const float half = 0.5F;
    floats.push_back(program.constant(tensor::DType::kFloat32, reinterpret_cast<const std::byte*>(&half)));
    const auto any = [&] { return floats[static_cast<size_t>(number(0, static_cast<int64_t>(floats.size()) - 1))]; };
    const std::array<ScalarOp, 6> kOps = {ScalarOp::kAdd,     ScalarOp::kSubtract, ScalarOp::kMultiply,
                                          ScalarOp::kMaximum, scalar_op("tanh"),   ScalarOp::kAbs};
    for (int64_t i = number(0, 6); i > 0; --i) {
      const ScalarOp op = kOps[static_cast<size_t>(number(0, 5))];
      const uint16_t a = any();
      const uint16_t b = any();
      floats.push_back(operand_count(op) == 1 ? program.emit(op, {a}, tensor::DType::kFloat32)
                                              : program.emit(op, {a, b}, tensor::DType::kFloat32));
    }
    const uint16_t less = program.emit(ScalarOp::kCompareLt, {any(), any()}, tensor::DType::kBool);
    floats.push_back(program.emit(ScalarOp::kSelect, {less, any(), any()}, tensor::DType::kFloat32));
    program.outputs = {any()};
    if (number(0, 2) == 0) program.outputs.push_back(less);
    if (number(0, 2) == 0) program.outputs.push_back(program.emit(ScalarOp::kConvert, {any()}, tensor::DType::kInt32));
    if (number(0, 4) == 0) program.outputs.push_back(program.outputs[0]);
  }

  std::mt19937 random_;
  std::vector<std::pair<tensor::DType, int64_t>> operands_;
};

}  // namespace meshd::kernels
