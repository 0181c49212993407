// Packs an operand of a convolution for a library: gathers it into the library's layout and converts it to its type,
// both only where needed; unpacks a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/movement/movement.h"
#include "service/tensor/dtype.h"
#include "service/tensor/shape.h"

namespace meshd::kernels {

/// Immutable; any thread.
class StridedSide {
 public:
  StridedSide() = default;
  /// Elements `dtype` at `strides` (one for each of `extent`), packed dense, row-major, as `wanted`. Throws
  /// unsupported_dtype where there is no conversion.
  StridedSide(const tensor::Dims& extent, const tensor::Dims& strides, tensor::DType dtype, tensor::DType wanted);

  [[nodiscard]] int64_t count() const { return count_; }
  /// Scratch for both steps, a multiple of 64.
  [[nodiscard]] int64_t scratch_bytes() const { return gathered_bytes_ + converted_bytes_; }
  /// Where the dense elements are: in scratch, or where they were.
  const std::byte* read(const std::byte* from, std::byte* scratch) const;
  /// Where a result may be written for write() to unpack.
  [[nodiscard]] std::byte* place(std::byte* to, std::byte* scratch) const;
  /// Brings home what was written to place().
  void write(std::byte* to, std::byte* scratch) const;

 private:
  int64_t count_ = 0;
  int64_t gathered_bytes_ = 0;   ///< of elements in their own type, dense
  int64_t converted_bytes_ = 0;  ///< of elements in the library's type
  std::optional<StridedCopy> gather_;
  std::optional<StridedCopy> scatter_;
  ScalarKernel convert_ = nullptr;  ///< to the library's type
  ScalarKernel restore_ = nullptr;  ///< and back
};

}  // namespace meshd::kernels
