// A fused loop: pointwise instructions over one iteration space, tile by tile, which reads its inputs once and writes
// its outputs once; broadcasts, iotas and strided slices are indexing maps, never materialised; a reduction may follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/tile/code_pays.h"
#include "service/kernels/tile/tile_program.h"
#include "service/tensor/shape.h"

namespace meshd::kernels {

/// How input register i is filled.
struct FusedInput {
  enum class Kind : uint8_t {
    kTensor,  ///< element at offset + sum(stride[d] * index[d]); stride 0 broadcasts
    kIota,    ///< the index of dimension `iota_dim` plus the call's offset of that dimension, in the register's dtype
  };
  Kind kind = Kind::kTensor;
  int operand = 0;       ///< which operand pointer of the call
  int64_t offset = 0;    ///< in elements
  tensor::Dims strides;  ///< one for each iteration dimension, in elements; may be negative (reverse)
  int iota_dim = 0;
};

/// A reduction behind the loop: output register k of the program is combined along `dims` of the iteration space with
/// `reducer` (inputs: accumulators then values; outputs: new accumulators). Results have the remaining dims.
struct FusedReduce {
  std::vector<int> dims;
  TileProgram reducer;
  std::vector<int> init_operands;  ///< operand index of each scalar init value
};

/// Where an output goes in a result that has more: lane i to element offset + (i / row) * row_stride + i % row.
struct FusedPlace {
  int64_t offset = 0;
  int64_t row = 1;
  int64_t row_stride = 1;
};

/// What is fused into one loop: more instructions would not fit a tile's registers in the first cache.
inline constexpr size_t kMostFusedInstructions = 64;
inline constexpr size_t kMostFusedInputs = 24;

/// Immutable once built.
struct FusedLoop {
  tensor::Dims dims;  ///< iteration space, local sizes
  std::vector<FusedInput> inputs;
  TileProgram program;
  std::optional<FusedReduce> reduce;
  /// Of each output of a loop without reduction, in result 0, which its operands do not overlap. Empty: outputs are
  /// results of their own.
  std::vector<FusedPlace> places;
  std::optional<int64_t> work_item_elements =
      std::nullopt;  ///< of a loop without reduction; chosen where it is missing
  /// How many pieces of this size one step works on: together they pass through the caches.
  int64_t copies = 1;
  /// After so many lanes machine code is made of the program (tile_code.h), without a number never. It changes no bit.
  std::optional<int64_t> code_after = kCodePays;
};

struct FusedCall {
  const std::byte* const* operands = nullptr;
  std::byte* const* results = nullptr;  ///< one for each output; dense row-major over dims (or the dims left by
                                        ///< reduce); where outputs have places, one
  int64_t begin = 0;                    ///< range of work items
  int64_t end = 0;
  const int64_t* dim_offsets =
      nullptr;  ///< global start of this shard in each iteration dimension (iota), or null for zeros
  core::Checkpoint* checkpoint = nullptr;  ///< passed for each tile
  std::byte* workspace = nullptr;  ///< FusedKernel::workspace_bytes(), the same for all work items; aligned to 64
};

class SmallLoop;
struct FusedPlan;

/// Prepared form: strides collapsed, tile size chosen. run() is const and may be called by several threads on disjoint
/// ranges.
class FusedKernel {
 public:
  explicit FusedKernel(FusedLoop loop);
  /// Work is split into work items of the output, and where there is a barrier into parts of what is reduced in front
  /// of it; the order of sums does not depend on which thread has which.
  [[nodiscard]] int64_t work_count() const { return work_count_; }
  /// Work items from this one on begin when all before it are done; 0: there are none.
  [[nodiscard]] int64_t barrier() const;
  [[nodiscard]] int64_t workspace_bytes() const;
  void run(const FusedCall& call) const;
  [[nodiscard]] const FusedLoop& loop() const { return loop_; }
  /// Memory that generated code takes at most.
  [[nodiscard]] int64_t code_bytes() const;
  /// The form of a loop over at most one block of lanes; null: it is none.
  [[nodiscard]] const SmallLoop* small() const;
  /// The schedule of the other forms.
  [[nodiscard]] const FusedPlan& plan() const;

 private:
  FusedLoop loop_;
  int64_t work_count_ = 1;
  struct Prepared;
  std::shared_ptr<const Prepared> prepared_;
};

}  // namespace meshd::kernels
