// A fused loop over no more lanes than one block: scalars and short vectors, as in bodies of loops. Its schedule is
// prepared and it does not allocate; bits are those of the tiles. Of a longer loop, one block of its lanes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "service/kernels/fused/fused_plan.h"
#include "service/kernels/fused/small_reduce.h"

namespace meshd::kernels {

/// Immutable; any thread.
class SmallLoop {
 public:
  /// Nothing where the loop is larger, counts, or reduces other than SmallReduce does.
  static std::optional<SmallLoop> make(const FusedLoop& loop, const FusedPlan& plan);
  /// The same for a block of lanes of a loop of any size, for SmallWhile: nothing where the loop reads other than lane
  /// for lane or one element.
  static std::optional<SmallLoop> make_piece(const FusedLoop& loop);

  void run(const FusedCall& call) const;

  // What SmallWhile joins to one list.
  struct Input {
    int operand = 0;
    int64_t byte_offset = 0;
    int64_t element_bytes = 4;
    int64_t lanes = 1;  ///< read; the rest of the block repeats the last
    size_t home = 0;
    std::vector<int64_t> elements = {};  ///< by lane, from the offset on; empty: one after the other
  };
  struct Instruction {
    ScalarKernel kernel = nullptr;
    std::array<size_t, 3> operands{};  ///< places in the block
    size_t result = 0;
    int64_t lanes = 0;  ///< as many as it computes
    int64_t element_bytes = 4;
  };
  struct Output {
    size_t home = 0;
    size_t bytes = 0;
    int64_t element_bytes = 4;
  };
  /// A reduction of register `values`; its init is the last of the inputs, its result the one output.
  struct Reduction {
    std::shared_ptr<const SmallReduce> reduce;
    size_t values = 0;
    size_t init = 0;
    size_t result = 0;
  };
  [[nodiscard]] int64_t lanes() const { return lanes_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] const std::vector<Input>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<Instruction>& instructions() const { return instructions_; }
  [[nodiscard]] const std::vector<Output>& outputs() const { return outputs_; }
  [[nodiscard]] const std::optional<Reduction>& reduction() const { return reduction_; }
  [[nodiscard]] const std::vector<std::byte>& constants() const { return constants_; }

 private:
  void add_reduction(const FusedLoop& loop, const SmallReduce& reduce, size_t values);
  static std::optional<SmallLoop> make_over(const FusedLoop& loop, const Region& region, int64_t lanes,
                                            const std::optional<SmallReduce>& reduce);

  int64_t lanes_ = 0;
  size_t bytes_ = 0;  ///< of a block's registers
  std::vector<Input> inputs_;
  std::vector<Instruction> instructions_;
  std::vector<Output> outputs_;
  std::optional<Reduction> reduction_;
  std::vector<std::byte> constants_;  ///< registers of constants, which come first in the block
};

}  // namespace meshd::kernels
