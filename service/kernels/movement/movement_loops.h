// Inner loops of movement: runs, fills, strided runs and transposed blocks, for elements of any size. Private to
// movement.cpp and kernels that move elements themselves.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

/// memcpy of `bytes`; with `streaming` and enough bytes the stores go around the cache (call stream_fence() when all is
/// done).
void copy_run(std::byte* dst, const std::byte* src, int64_t bytes, bool streaming);

/// dst[i * dst_stride] = src[i * src_stride] for i < count; strides in bytes, elements of `elem_size` bytes.
void copy_strided(std::byte* dst, int64_t dst_stride, const std::byte* src, int64_t src_stride, int64_t count,
                  int64_t elem_size);

/// Rows that copy_rows() takes, in bytes: shorter ones are groups of elements, longer ones are worth a call each.
inline constexpr int64_t kLeastCopiedRow = 32;
inline constexpr int64_t kMostCopiedRow = 512;

/// `rows` rows of `bytes`, one every `dst_step` and `src_step` bytes; they do not overlap.
void copy_rows(std::byte* dst, int64_t dst_step, const std::byte* src, int64_t src_step, int64_t bytes, int64_t rows);

/// A matrix whose rows are contiguous and `row_stride` bytes apart.
struct MatrixRows {
  std::byte* data;
  int64_t row_stride;
};
struct ConstMatrixRows {
  const std::byte* data;
  int64_t row_stride;
};

/// dst (rows x columns) = transpose of src (columns x rows), in elements of `elem_size` bytes.
void transpose_block(MatrixRows dst, ConstMatrixRows src, int64_t rows, int64_t columns, int64_t elem_size,
                     bool streaming);

}  // namespace meshd::kernels
