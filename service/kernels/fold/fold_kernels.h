// Reduction loops for the common reducers: add, multiply, maximum, minimum, and, or, xor of one value. Floats of up to
// 32 bits are added and multiplied in double, so that the error of a long sum does not grow with it: where memory is
// the limit, fours of them are added as floats before they are widened, which are two or three roundings. Doubles are
// summed in a fixed tree. Elements of an accumulator have the fold's own type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// How values of one type are folded with one op.
struct FoldKernels {
  tensor::DType value = tensor::DType::kFloat32;  ///< the type values are folded from (narrow types are widened first)
  tensor::DType accumulator = tensor::DType::kFloat32;  ///< the type they are folded in
  bool sums_floats = false;            ///< f32 that is added in double: generated code may add it (TileCode::sum)
  bool rounds = false;                 ///< each step rounds in the accumulator's type: long runs need a tree
  ScalarKernel widen = nullptr;        ///< element type -> value; null when they are the same
  ScalarKernel start = nullptr;        ///< (values) -> accumulators
  ScalarKernel fold = nullptr;         ///< (accumulators, values) -> accumulators, lane by lane
  ScalarKernel combine = nullptr;      ///< (accumulators, accumulators) -> accumulators, lane by lane
  ScalarKernel combine_few = nullptr;  ///< the same, element by element
  ScalarKernel finish = nullptr;       ///< accumulators -> elements
  ScalarKernel start_init = nullptr;   ///< elements -> accumulators
  /// Values (groups, count, lanes) folded over count, which is at least 1: accumulators (groups, lanes). At most 64
  /// lanes.
  void (*segments)(const std::byte* values, int64_t groups, int64_t count, int64_t lanes,
                   std::byte* accumulators) = nullptr;
  /// 1 to kFoldRows rows of values, `row_bytes` apart, folded lane by lane into accumulators, or into what they become
  /// when `starts`.
  void (*rows)(const std::byte* values, int64_t row_bytes, int64_t rows, bool starts, int64_t lanes,
               std::byte* accumulators) = nullptr;

  /// combine, or combine_few where the lanes are not worth a padded vector.
  [[nodiscard]] ScalarKernel combine_kernel(int64_t lanes) const {
    constexpr int64_t kFewLanes = 16;
    return lanes < kFewLanes ? combine_few : combine;
  }
};

/// Rows that are folded in one pass over the accumulators.
inline constexpr int64_t kFoldRows = 8;

/// The fold of `op` over elements of a type, or nothing when there is no direct loop for it.
std::optional<FoldKernels> find_fold(ScalarOp op, tensor::DType element);

}  // namespace meshd::kernels
