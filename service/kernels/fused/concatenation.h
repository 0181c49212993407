// A concatenation whose operands are copied, or computed where they lie in the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/movement/movement.h"
#include "service/tensor/shape.h"

namespace meshd::kernels {

struct FusedLoop;
class FusedKernel;

/// An operand of the concatenation that is in memory.
struct CopiedPart {
  int operand = 0;       ///< which operand pointer of the call
  int64_t offset = 0;    ///< of its element at index zero, in elements
  tensor::Dims strides;  ///< in elements; may be zero or negative
  int64_t size = 0;      ///< along the concatenated dim
  int64_t start = 0;     ///< in the result, along it
};

/// Operands that one pointwise loop computes. The loop's operand pointers are those of the call from `first_operand`
/// on.
struct ComputedParts {
  std::shared_ptr<const FusedLoop> loop;  ///< without places
  int first_operand = 0;
  struct Output {
    int64_t size = 0;
    int64_t start = 0;
  };
  std::vector<Output> outputs;  ///< of the loop
};

/// Prepared once; run() is const and may be called by several threads on disjoint ranges. Where rows (what one index of
/// the dims in front of the concatenated one has) are short, a work item is some rows of all parts, whose lines of the
/// result are in the cache; else work items are those of the parts, one part after the other.
class Concatenation {
 public:
  /// `dims` of the result, which parts cover.
  Concatenation(const tensor::Dims& dims, size_t dim, int64_t elem_size, const std::vector<CopiedPart>& copied,
                const std::vector<ComputedParts>& computed);

  [[nodiscard]] int64_t work_count() const { return work_count_; }
  /// Bytes copied, read and written.
  [[nodiscard]] double copied_bytes() const { return copied_bytes_; }
  /// Memory that generated code takes at most.
  [[nodiscard]] int64_t code_bytes() const;
  /// Work items begin..end-1.
  void run(const std::byte* const* operands, std::byte* result, int64_t begin, int64_t end,
           core::Checkpoint* checkpoint) const;

 private:
  struct Part {
    std::variant<StridedCopy, RowCopies, std::shared_ptr<const FusedKernel>> kernel;
    int operand = 0;    ///< of a loop, the first one
    int64_t from = 0;   ///< bytes, in the operand
    int64_t to = 0;     ///< bytes, in the result
    int64_t first = 0;  ///< work item, where parts have work items of their own
    int64_t work_count = 0;
  };

  /// Copied parts of one element a row, whose rows follow each other.
  struct Column {
    int operand = 0;
    int64_t from = 0;  ///< bytes, in the operand
  };
  /// Empty where they are not all of the result, or too many for interleave().
  static std::vector<Column> columns_of(const tensor::Dims& dims, size_t dim, int64_t elem_size,
                                        const std::vector<CopiedPart>& copied);
  void interleave_columns(const std::byte* const* operands, std::byte* result, int64_t row, int64_t count) const;

  std::vector<Column> columns_;  ///< in order; empty: there are parts
  int64_t elem_size_ = 1;
  int64_t rows_ = 1;
  int64_t item_rows_ = 0;  ///< of a work item of all parts; 0: parts have work items of their own
  std::vector<Part> parts_;
  int64_t work_count_ = 0;
  double copied_bytes_ = 0;
};

}  // namespace meshd::kernels
