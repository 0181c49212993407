// Steps of small whiles (small_while.h) that are no fused loops: what a concatenation, a slice, dynamic_slice and
// dynamic_update_slice are where few elements move. Kernels of these ops say so, so that a loop of them is one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Values of so many lanes are part of a small while at most: longer ones are worth threads.
inline constexpr int64_t kMostWhileLanes = 4096;

/// Each element of the result is one of an operand, as it is (LLVM's shufflevector).
/// Example: concatenate of a f32[1] and b f32[2]: lanes {0, 0}, {1, 0}, {1, 1}.
struct Shuffle {
  struct Lane {
    int32_t operand = 0;
    int64_t element = 0;  ///< in row-major order
  };
  tensor::DType dtype = tensor::DType::kFloat32;
  std::vector<Lane> lanes;
};

/// All elements of the result are one number.
struct Fill {
  tensor::DType dtype = tensor::DType::kFloat32;
  std::vector<std::byte> element;
  int64_t lanes = 1;
};

/// Elements that follow each other in an array, operand 0, are read or written, from element sum(stride * index) on.
struct DynamicRow {
  /// The index is an element of an operand.
  struct Index {
    int operand = 1;
    int64_t element = 0;
    int64_t most = 0;    ///< that is in bounds
    int64_t stride = 0;  ///< in elements
  };
  tensor::DType dtype = tensor::DType::kFloat32;
  tensor::DType index_dtype = tensor::DType::kInt32;
  int written = -1;    ///< the operand that is written; -1: the row is read
  bool skips = false;  ///< a row that is out of bounds is not written (scatter); else indices are clamped
  int64_t lanes = 1;
  std::vector<Index> indices;
  [[nodiscard]] bool writes() const { return written >= 0; }
};

using SmallStep = std::variant<Shuffle, Fill, DynamicRow>;

}  // namespace meshd::kernels
