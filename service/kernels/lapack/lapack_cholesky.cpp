// Cholesky factors: small matrices by one call of LAPACK, large ones block by block, in work items with barriers.
#include <cstring>

#include "service/kernels/lapack/lapack_blas.h"
#include "service/kernels/lapack/lapack_plans.h"

namespace meshd::kernels {
namespace {

using namespace lapack;

// Smaller matrices are one call; blocks of larger ones are products of some 10 us.
constexpr int64_t kLeastBlocked = 384;
constexpr int64_t kSmallBlock = 128;
constexpr int64_t kLargeBlock = 256;
constexpr int64_t kLeastLargeBlocked = 4096;

/// A row-major matrix is the transpose of the same memory read by columns, and the factor of the transpose is the
/// factor's transpose: so the other triangle is requested, without a copy.
template <class T>
struct Potrf : Lapack::Plan {
  explicit Potrf(const LapackSpec& spec) : n(spec.rows), triangle(spec.uplo == 'L' ? 'U' : 'L') {
    operand_bytes = {bytes_of<T>(n * n)};
    result_bytes = {bytes_of<T>(n * n), bytes_of<int32_t>(1)};
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte*) const override {
    T* const factor = result<T>(results, 0);
    take_over(results[0], operands[0], operand_bytes[0]);
    *result<int32_t>(results, 1) = n == 0 ? 0 : potrf(triangle, to_int(n), factor, leading(n));
  }
  int64_t n;
  char triangle;
};

/// The right-looking algorithm on blocks, of the lower triangle (the upper one mirrors it). Of block column k, whose
/// diagonal block has its factor already:
///
/// 1. Each block below the diagonal is multiplied by the inverse of that factor: a work item each.
/// 2. Behind a barrier, each block (i, j) with k < j <= i loses the product of blocks (i, k) and (j, k): a work item
///    each. The first is diagonal block k + 1, which is factored at once, while other threads compute the others.
///
/// Before, the matrix is copied, a row of blocks a work item; the first factors diagonal block 0.
///
/// Example: order 1024, blocks of 128: 8 items; then 7, 28, 6, 21, ... 1, 1, with 14 barriers between.
///
/// The workspace has for each problem and block the number of the first pivot that is not positive up to this block, or
/// 0. Behind such a pivot nothing is computed.
template <class T>
struct BlockedPotrf : Lapack::Plan {
  explicit BlockedPotrf(const LapackSpec& spec)
      : n(spec.rows),
        block(n < kLeastLargeBlocked ? kSmallBlock : kLargeBlock),
        blocks((n + block - 1) / block),
        is_lower(spec.uplo == 'L') {
    operand_bytes = {bytes_of<T>(n * n)};
    result_bytes = {bytes_of<T>(n * n), bytes_of<int32_t>(1)};
    phases.push_back(blocks);
    for (int64_t left = blocks - 1; left > 0; --left) {
      phases.push_back(left);
      phases.push_back(left * (left + 1) / 2);
    }
    workspace_bytes = bytes_of<int32_t>(blocks);
  }
  void run(const std::byte* const*, std::byte* const*, std::byte*) const override {
    throw core::Error("internal", "a Cholesky factor of blocks is computed item by item");
  }

  void run_item(const std::byte* const* operands, std::byte* const* results, std::byte* workspace, int64_t phase,
                int64_t item) const override {
    const Matrix matrix = {result<T>(results, 0), reinterpret_cast<int32_t*>(workspace), result<int32_t>(results, 1)};
    if (phase == 0) {
      const int64_t first = item * block * n;
      take_over(results[0] + bytes_of<T>(first), operands[0] + bytes_of<T>(first), bytes_of<T>(size_of(item) * n));
      if (item == 0) factor(matrix, 0);
      return;
    }
    const int64_t k = (phase - 1) / 2;
    if (phase % 2 == 1) {
      if (matrix.failed[k] == 0) divide(matrix, k, k + 1 + item);
      return;
    }
    // Items are the blocks of the triangle behind block k, row by row.
    int64_t row = 0;
    while (item > row) item -= ++row;
    if (matrix.failed[k] == 0) update(matrix, k, k + 1 + row, k + 1 + item);
    if (row == 0) factor(matrix, k + 1);
  }

 private:
  struct Matrix {
    T* elements;
    int32_t* failed;  // by block
    int32_t* info;
  };

  [[nodiscard]] int64_t size_of(int64_t i) const { return std::min(block, n - i * block); }
  [[nodiscard]] int rows_of(int64_t i) const { return to_int(size_of(i)); }
  /// Block (i, j) of the lower triangle; of the upper one, block (j, i).
  [[nodiscard]] T* at(const Matrix& matrix, int64_t i, int64_t j) const {
    return matrix.elements + (is_lower ? i * n + j : j * n + i) * block;
  }

  void factor(const Matrix& matrix, int64_t k) const {
    int32_t& failed = matrix.failed[k];
    failed = k == 0 ? 0 : matrix.failed[k - 1];
    if (failed == 0) {
      // Read by columns, the triangle is the other one.
      const int info = potrf(is_lower ? 'U' : 'L', rows_of(k), at(matrix, k, k), leading(n));
      if (info > 0) failed = to_int(k * block) + info;
    }
    *matrix.info = failed;
  }

  void divide(const Matrix& matrix, int64_t k, int64_t i) const {
    if (is_lower) {
      trsm(CblasRight, CblasLower, kTransposed, CblasNonUnit, rows_of(i), rows_of(k), at(matrix, k, k), leading(n),
           at(matrix, i, k), leading(n));
    } else {
      trsm(CblasLeft, CblasUpper, kTransposed, CblasNonUnit, rows_of(k), rows_of(i), at(matrix, k, k), leading(n),
           at(matrix, i, k), leading(n));
    }
  }

  void update(const Matrix& matrix, int64_t k, int64_t i, int64_t j) const {
    const int ld = leading(n);
    const T* const left = at(matrix, i, k);
    const T* const right = at(matrix, j, k);
    T* const to = at(matrix, i, j);
    if (i == j) {
      subtract_square(is_lower ? CblasLower : CblasUpper, is_lower ? CblasNoTrans : kTransposed, rows_of(i), rows_of(k),
                      left, ld, to, ld);
    } else if (is_lower) {
      subtract_product(CblasNoTrans, kTransposed, rows_of(i), rows_of(j), rows_of(k), left, ld, right, ld, to, ld);
    } else {
      subtract_product(kTransposed, CblasNoTrans, rows_of(j), rows_of(i), rows_of(k), right, ld, left, ld, to, ld);
    }
  }
  static constexpr CBLAS_TRANSPOSE kTransposed = kIsComplex<T> ? CblasConjTrans : CblasTrans;

  int64_t n;
  int64_t block;
  int64_t blocks;
  bool is_lower;
};

}  // namespace

std::shared_ptr<Lapack::Plan> plan_cholesky(const LapackSpec& spec) {
  return for_dtype(spec.dtype, [&]<class T>() -> std::shared_ptr<Lapack::Plan> {
    if (spec.rows >= kLeastBlocked) return std::make_shared<BlockedPotrf<T>>(spec);
    return std::make_shared<Potrf<T>>(spec);
  });
}

}  // namespace meshd::kernels
