// Batch normalisation: inference, training, and the gradient. Computed in double and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/core/checkpoint.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

enum class BatchNormKind : uint8_t { kTraining, kInference, kGrad };

/// Arrays are (outer, features, inner), row-major; the others have an element for each feature. Immutable; run() may be
/// called by several threads on disjoint ranges of work items.
class BatchNorm {
 public:
  struct Sizes {
    int64_t outer = 1;
    int64_t features = 1;
    int64_t inner = 1;
  };
  /// Throws unsupported_dtype where `dtype` is no float.
  BatchNorm(BatchNormKind kind, const Sizes& sizes, double epsilon, tensor::DType dtype);

  [[nodiscard]] int64_t work_count() const;
  [[nodiscard]] int64_t scratch_bytes() const;
  /// kTraining: operand, scale, offset -> output, mean, variance. kInference: operand, scale, offset, mean, variance ->
  /// output. kGrad: operand, scale, mean, variance, gradient -> gradients of operand, scale, offset.
  void run(const std::byte* const* operands, std::byte* const* results, int64_t begin, int64_t end, std::byte* scratch,
           core::Checkpoint* checkpoint = nullptr) const;

 private:
  class WorkItem;

  BatchNormKind kind_;
  Sizes sizes_;
  double epsilon_;
  int64_t elem_;
  int64_t block_ = 1;  ///< features in a work item
  int64_t tile_ = 1;   ///< elements of a row at once
  ScalarKernel widen_;
  ScalarKernel narrow_;
};

}  // namespace meshd::kernels
