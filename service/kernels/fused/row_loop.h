// A row loop: fused loops over the same rows, run one after the other on a block of rows that stays in the cache.
// A fold along the rows, spread over them again by the next loop, passes through memory once; values that only the
// row loop's own stages read never reach memory. Softmax, log-sum-exp and layer normalisation are row loops.
//
// 1. The leading dims of every stage's iteration space are the rows: their product is the number of rows. What follows
//    is the stage's own: the elements of a row, or nothing where a stage has one element for each row.
// 2. A block is as many rows as fit in kBlockBytes with everything that the stages read and write of them, at least
//    one. Blocks follow from shapes alone; a work item is a block.
// 3. For each block the stages run in order, each as the loop that it was, with the block's rows in place of all. So an
//    element has the same instructions, and a fold the same order, as if each stage had run over all rows: the same
//    bits.
// 4. Values of the block are in the call's scratch memory, dense. A stage reads them, and results that an earlier stage
//    wrote, row for row: what it needs of a row is in the same row.
//
// Example: softmax of x, 8192x1024xf32. Stages, over 8,192 rows: fold maximum of x -> m (8192); subtract exponential
// of x, m -> e (8192x1024); fold add of e -> s (8192); divide of e, s -> the result (8192x1024). A row of x, e and the
// result has 12 KiB, so a block is 10 rows (120 KiB) and there are 820 work items, the last one of 2 rows. m, e and s
// are values of the block: 40 + 40,960 + 40 bytes of scratch. x is read once and the result written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/fused/fused_loop.h"

namespace meshd::kernels {

/// Where an operand or result of a stage is.
struct RowValue {
  enum class Kind : uint8_t {
    kOperand,  ///< an operand of the call
    kResult,   ///< a result of the call
    kBlock,    ///< a value of the block
  };
  Kind kind = Kind::kOperand;
  int number = 0;
  friend bool operator==(const RowValue&, const RowValue&) = default;
};

/// One loop over all rows. Immutable once built.
struct RowStage {
  FusedLoop loop;
  int row_dims = 0;  ///< so many leading dims of the loop are the rows; a reduction is over all dims behind them
  std::vector<RowValue> operands;  ///< by operand number of the loop
  std::vector<RowValue> results;   ///< by output of the loop
};

/// Immutable once built.
struct RowLoop {
  int64_t rows = 1;
  std::vector<RowStage> stages;
  int block_values = 0;
  /// How many pieces of this size one step works on, as FusedLoop::copies.
  int64_t copies = 1;
};

struct RowCall {
  const std::byte* const* operands = nullptr;
  std::byte* const* results = nullptr;
  int64_t begin = 0;  ///< range of work items
  int64_t end = 0;
  std::byte* scratch = nullptr;            ///< scratch_bytes(), of this call alone, aligned to 64
  const int64_t* dim_offsets = nullptr;    ///< as FusedCall's, for every stage that counts
  core::Checkpoint* checkpoint = nullptr;  ///< passed for each tile
};

/// Bytes of one row that input `input` of a loop reads, whose first `row_dims` dims are the rows; 0 where it reads the
/// same for all rows, or no memory.
int64_t input_row_bytes(const FusedLoop& loop, int row_dims, size_t input);
/// Bytes of one row of an output.
int64_t output_row_bytes(const FusedLoop& loop, int row_dims, size_t output);

/// More bytes of a row than this are not worth a row loop: they leave the cache between stages.
inline constexpr int64_t kMostRowBytes = int64_t{1} << 20;

/// Prepared form. run() is const and may be called by several threads on disjoint ranges.
class RowKernel {
 public:
  explicit RowKernel(RowLoop loop);
  [[nodiscard]] int64_t work_count() const;
  [[nodiscard]] int64_t scratch_bytes() const;
  [[nodiscard]] int64_t block_rows() const;
  /// Memory that generated code takes at most.
  [[nodiscard]] int64_t code_bytes() const;
  void run(const RowCall& call) const;

 private:
  struct Prepared;
  std::shared_ptr<const Prepared> prepared_;
};

}  // namespace meshd::kernels
