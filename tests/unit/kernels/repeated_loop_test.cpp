#include "service/kernels/fused/repeated_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "tests/unit/kernels/fused_support.h"
#include "tests/unit/kernels/loop_maker.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;
using tensor::DType;

/// A repeated call over memory of its own, whose contents are written over between calls.
class RepeatedCall {
 public:
  /// The results are as large as those of `expected`.
  RepeatedCall(std::shared_ptr<const FusedKernel> kernel, const std::vector<Bytes>& operands,
               const std::vector<Bytes>& expected, const Dims& offsets)
      : operands_(operands), results_(expected), workspace_(static_cast<size_t>(kernel->workspace_bytes())) {
    for (const Bytes& operand : operands_) from_.push_back(operand.data());
    for (Bytes& result : results_) to_.push_back(result.data());
    FusedCall call;
    call.operands = from_.data();
    call.results = to_.data();
    call.end = kernel->work_count();
    call.dim_offsets = offsets.data();
    call.workspace = workspace_.data();
    loop_ = RepeatedLoop::make(std::move(kernel), call);
  }

  [[nodiscard]] bool is_made() const { return loop_ != nullptr; }

  const std::vector<Bytes>& run(const std::vector<Bytes>& operands) {
    for (size_t i = 0; i < operands.size(); ++i)
      std::memcpy(operands_[i].data(), operands[i].data(), operands[i].size());
    for (Bytes& result : results_) std::fill(result.begin(), result.end(), std::byte{0xAB});
    loop_->run();
    return results_;
  }

 private:
  std::vector<Bytes> operands_;
  std::vector<Bytes> results_;
  Bytes workspace_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
  std::unique_ptr<RepeatedLoop> loop_;
};

TileProgram reducer_of(ScalarOp op, DType dtype) {
  TileProgram reducer;
  reducer.input_count = 2;
  for (int i = 0; i < 2; ++i) reducer.add_register(dtype);
  reducer.outputs = {reducer.emit(op, {0, 1}, dtype)};
  return reducer;
}

// Each call sees what memory holds then: rows, elements that code reads where they are, and what readers have copied.
TEST(RepeatedLoop, calls_see_what_memory_holds_then) {
  int made = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    LoopMaker maker(seed);
    FusedLoop loop = maker.loop(seed % 4 == 0 ? 3'000 : 300);
    if (!loop.dims.empty() && seed % 3 == 0) {
      loop.program.outputs.resize(1);
      const DType dtype = loop.program.registers[loop.program.outputs[0]];
      const auto dim = static_cast<int>(maker.number(0, static_cast<int64_t>(loop.dims.size()) - 1));
      const ScalarOp op = seed % 2 == 0 ? ScalarOp::kAdd : ScalarOp::kMaximum;
      loop.reduce = FusedReduce{{dim}, reducer_of(op, dtype), {maker.add_operand(dtype, 1)}};
    }
    if (seed % 2 == 0) loop.code_after = 0;
    const Dims offsets(loop.dims.size(), 7);
    const auto kernel = std::make_shared<const FusedKernel>(loop);
    const std::vector<Bytes> first = maker.operands();
    const std::vector<Bytes> second = maker.operands();
    const auto of_first = run_kernel(*kernel, first, {}, offsets);
    const auto of_second = run_kernel(*kernel, second, {}, offsets);
    RepeatedCall call(kernel, first, of_first, offsets);
    if (!call.is_made()) continue;
    ++made;
    for (int again = 0; again < 3; ++again) {
      ASSERT_EQ(call.run(first), of_first) << "seed " << seed << ", call " << again;
      ASSERT_EQ(call.run(second), of_second) << "seed " << seed << ", call " << again;
    }
  }
  EXPECT_GT(made, 150);
}

// What a while carries is often computed where it was.
TEST(RepeatedLoop, a_result_may_have_the_memory_of_an_operand) {
  for (const int64_t count : {65, 100, 128, 1000}) {
    for (const bool by_code : {false, true}) {
      FusedLoop loop;
      if (by_code) loop.code_after = 0;
      loop.dims = {count};
      loop.program.input_count = 2;
      for (int i = 0; i < 2; ++i) {
        loop.program.add_register(DType::kFloat32);
        FusedInput input;
        input.operand = i;
        input.strides = {1 - i};
        loop.inputs.push_back(input);
      }
      const uint16_t sum = loop.program.emit(ScalarOp::kAdd, {0, 1}, DType::kFloat32);
      loop.program.outputs = {loop.program.emit(ScalarOp::kAdd, {sum, 0}, DType::kFloat32)};
      std::vector<float> values(static_cast<size_t>(count), 1);
      float step = 3;
      const std::vector<const std::byte*> operands = {reinterpret_cast<const std::byte*>(values.data()),
                                                      reinterpret_cast<const std::byte*>(&step)};
      const std::vector<std::byte*> results = {reinterpret_cast<std::byte*>(values.data())};
      const auto kernel = std::make_shared<const FusedKernel>(std::move(loop));
      FusedCall call;
      call.operands = operands.data();
      call.results = results.data();
      call.end = kernel->work_count();
      const auto repeated = RepeatedLoop::make(kernel, call);
      ASSERT_NE(repeated, nullptr);
      repeated->run();
      step = 5;
      repeated->run();
      step = 7;
      repeated->run();
      EXPECT_EQ(values, std::vector<float>(static_cast<size_t>(count), 2 * (2 * (2 + 3) + 5) + 7)) << count;
    }
  }
}

TEST(RepeatedLoop, loops_of_a_block_and_long_ones_begin_anew) {
  for (const int64_t count : {64, 100'000}) {
    FusedLoop loop;
    loop.dims = {count};
    loop.program.input_count = 1;
    loop.program.add_register(DType::kFloat64);
    FusedInput input;
    input.strides = {1};
    loop.inputs.push_back(input);
    loop.program.outputs = {loop.program.emit(ScalarOp::kMultiply, {0, 0}, DType::kFloat64)};
    std::vector<double> values(static_cast<size_t>(count), 1);
    const std::vector<const std::byte*> operands = {reinterpret_cast<const std::byte*>(values.data())};
    const std::vector<std::byte*> results = {reinterpret_cast<std::byte*>(values.data())};
    const auto kernel = std::make_shared<const FusedKernel>(std::move(loop));
    FusedCall call;
    call.operands = operands.data();
    call.results = results.data();
    call.end = kernel->work_count();
    EXPECT_EQ(RepeatedLoop::make(kernel, call), nullptr) << count;
  }
}

}  // namespace
}  // namespace meshd::kernels
