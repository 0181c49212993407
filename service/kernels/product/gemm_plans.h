// The implementations of a matrix product. Private to gemm*.cpp.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "service/kernels/product/amx.h"
#include "service/kernels/product/gemm.h"

namespace meshd::kernels {

/// A plan and the scratch it needs; null when this implementation does not support this product.
struct GemmPlan {
  std::shared_ptr<const Gemm::Plan> plan;
  int64_t scratch_bytes = 0;
  bool keeps_packed = false;  ///< Gemm::keeps_packed()
};

/// Of loops of our own, which say themselves what they need and keep.
template <class Loops>
GemmPlan plan_of_loops(std::shared_ptr<const Loops> loops) {
  const int64_t bytes = loops->scratch_bytes();
  const bool keeps_packed = loops->keeps_packed();
  return {std::move(loops), bytes, keeps_packed};
}

/// The split of a large product into panels of c: never along k, and in multiples of the libraries' register tiles, so
/// that each sum has the order that it has in the unsplit product.
struct Panels {
  static constexpr int64_t kColumnMultiple = 48;
  static constexpr int64_t kRowMultiple = 24;
  int64_t rows = 0;
  int64_t columns = 0;

  /// `least`: rows and columns of a panel, unless the product has fewer.
  explicit Panels(const GemmSpec& spec, int64_t least = 1);

  /// Calls multiply(first row, rows, first column, columns) for each panel.
  template <typename Multiply>
  void for_each(int64_t m, int64_t n, core::Checkpoint* checkpoint, Multiply&& multiply) const {
    for (int64_t row = 0; row < m; row += part(m - row, rows)) {
      for (int64_t column = 0; column < n; column += part(n - column, columns)) {
        multiply(row, part(m - row, rows), column, part(n - column, columns));
        core::pass(checkpoint);
      }
    }
  }

  /// Of what is left; the last panel takes the rest, so that none is smaller than the others.
  static int64_t part(int64_t left, int64_t size) { return left < 2 * size ? left : size; }
};

/// Bytes from the beginning of a matrix to its element (row, column).
inline int64_t byte_offset(MatrixLayout layout, int64_t row, int64_t column, tensor::DType dtype) {
  return (row * layout.row_stride + column * layout.column_stride) * tensor::size_bytes(dtype);
}

/// True when the layout can be given to a BLAS as it is; `rows` x `columns`.
bool is_blas_layout(int64_t rows, int64_t columns, MatrixLayout layout);

/// Loops of our own: integers of 64 bits (any strides of a, b's columns next to each other).
GemmPlan plan_loops(const GemmSpec& spec);
/// dnnl_sgemm.
GemmPlan plan_sgemm(const GemmSpec& spec);
/// Loops of our own: floats and integers of up to 32 bits into 32 bits, in any layout with one stride of 1. Bits do not
/// depend on the block of c.
GemmPlan plan_packed(const GemmSpec& spec);
/// Loops of our own by tiles of AMX: bfloat16 into f32 or bfloat16, int8 into int32, in any layout with one stride
/// of 1. Bits do not depend on the block of c.
GemmPlan plan_amx(const GemmSpec& spec, const AmxUnit& unit);
/// Loops of our own: a matrix and a vector. Bits do not depend on the block of c.
bool takes_vector_loops(const GemmSpec& spec);
GemmPlan plan_vector(const GemmSpec& spec);
/// cblas_?gemm and cblas_?gemv.
GemmPlan plan_openblas(const GemmSpec& spec);
/// oneDNN's matmul primitive: bf16 and i8.
GemmPlan plan_matmul_primitive(const GemmSpec& spec);

/// Once for the process, before oneDNN is used first: it uses no more instructions than cpu_level() says, and no AMX.
/// Any thread.
void limit_onednn();

/// Whether oneDNN has instructions for these types on this processor, and they are faster than f32.
bool has_matmul_primitive(tensor::DType in, tensor::DType out);

}  // namespace meshd::kernels
