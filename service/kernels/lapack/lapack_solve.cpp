// Triangular and tridiagonal systems.
#include <algorithm>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/kernels/lapack/lapack_blas.h"
#include "service/kernels/lapack/lapack_plans.h"

namespace meshd::kernels {
namespace {

using namespace lapack;

// Solutions of so many operations in all are computed in work items of so many right sides each.
constexpr double kSplitTrsmFlops = 3e7;
constexpr int64_t kTrsmSides = 64;

/// op(A) X = B or X op(A) = B, for triangles A: columns of B are right sides, or its rows.
template <class T>
struct Trsm : Lapack::Plan {
  explicit Trsm(const LapackSpec& spec) : m(spec.other_rows), n(spec.other_columns) {
    side = spec.side == 'L' ? CblasLeft : CblasRight;
    uplo = spec.uplo == 'L' ? CblasLower : CblasUpper;
    transpose = spec.transpose == 'N' ? CblasNoTrans : spec.transpose == 'T' ? CblasTrans : CblasConjTrans;
    diagonal = spec.diagonal == 'U' ? CblasUnit : CblasNonUnit;
    order = spec.rows;
    operand_bytes = {bytes_of<T>(order * order), bytes_of<T>(m * n)};
    result_bytes = {bytes_of<T>(m * n)};
    const int64_t sides = side == CblasLeft ? n : m;
    const double flops = static_cast<double>(m * n) * static_cast<double>(order);
    if (flops >= kSplitTrsmFlops && sides >= 2 * kTrsmSides) phases = {core::ceil_div(sides, kTrsmSides)};
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte*) const override {
    if (m != 0 && n != 0) solve(operands, results, 0, m, 0, n);
  }
  void run_item(const std::byte* const* operands, std::byte* const* results, std::byte* /*workspace*/,
                int64_t /*phase*/, int64_t item) const override {
    const int64_t first = item * kTrsmSides;
    if (side == CblasLeft)
      solve(operands, results, 0, m, first, std::min(kTrsmSides, n - first));
    else
      solve(operands, results, first, std::min(kTrsmSides, m - first), 0, n);
  }
  /// A block of B becomes one of X.
  void solve(const std::byte* const* operands, std::byte* const* results, int64_t row, int64_t rows, int64_t column,
             int64_t columns) const {
    T* const x = result<T>(results, 0) + row * n + column;
    const T* const b = operand<T>(operands, 1) + row * n + column;
    for (int64_t i = 0; x != b && i < rows; ++i) std::copy_n(b + i * n, columns, x + i * n);
    trsm(side, uplo, transpose, diagonal, to_int(rows), to_int(columns), operand<T>(operands, 0), leading(order), x,
         leading(n));
  }
  int64_t order, m, n;
  CBLAS_SIDE side;
  CBLAS_UPLO uplo;
  CBLAS_TRANSPOSE transpose;
  CBLAS_DIAG diagonal;
};

template <class T>
struct Gtsv : Lapack::Plan {
  explicit Gtsv(const LapackSpec& spec) : n(spec.rows), sides(spec.other_columns) {
    operand_bytes = {bytes_of<T>(n), bytes_of<T>(n), bytes_of<T>(n), bytes_of<T>(n * sides)};
    result_bytes = operand_bytes;
    result_bytes.push_back(bytes_of<int32_t>(1));
    scratch_bytes = bytes_of<T>(n * sides);
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    for (size_t i = 0; i < 3; ++i) {
      take_over(results[i], operands[i], operand_bytes[i]);
    }
    *result<int32_t>(results, 4) = 0;
    if (n == 0) return;
    T* const b = reinterpret_cast<T*>(scratch);
    to_columns(operand<T>(operands, 3), n, sides, b);
    *result<int32_t>(results, 4) = gtsv(to_int(n), to_int(sides), result<T>(results, 0) + 1, result<T>(results, 1),
                                        result<T>(results, 2), b, leading(n));
    to_rows(b, n, sides, result<T>(results, 3));
  }
  int64_t n, sides;
};

/// Elimination with exchanges of neighbouring rows, as LAPACK's lagtf and lagts do it: the row with the larger pivot
/// relative to its own sum is first, and a pivot that a right side cannot be divided by grows in steps from rounding
/// errors of the largest element.
template <class T>
struct TridiagonalPerturbed : Lapack::Plan {
  explicit TridiagonalPerturbed(const LapackSpec& spec) : n(spec.rows), sides(spec.other_columns) {
    operand_bytes = {bytes_of<T>(n), bytes_of<T>(n), bytes_of<T>(n), bytes_of<T>(n * sides)};
    result_bytes = {bytes_of<T>(n * sides)};
    scratch_bytes = scratch_of(*this);
  }
  /// The diagonals of U: the main one and the two above it.
  struct Upper {
    T* main;
    T* first;
    T* second;
  };
  Upper lay_out(Arena& arena) const { return {arena.take<T>(n), arena.take<T>(n), arena.take<T>(n)}; }

  /// Eliminates what is below the diagonal, in U and in the right sides at once; returns the largest magnitude of U.
  Real<T> eliminate(const T* below, const T* diagonal, const T* above, const Upper& u, T* x) const {
    const auto above_of = [&](int64_t i) { return i + 1 < n ? above[i] : T{}; };
    u.main[0] = diagonal[0];
    u.first[0] = above_of(0);
    Real<T> row_sum = std::abs(u.main[0]) + std::abs(u.first[0]);
    Real<T> largest = 0;
    for (int64_t i = 0; i + 1 < n; ++i) {
      const T under = below[i + 1];
      const Real<T> next_sum = std::abs(under) + std::abs(diagonal[i + 1]) + std::abs(above_of(i + 1));
      T* const here = x + i * sides;
      T* const there = here + sides;
      u.second[i] = T{};
      u.main[i + 1] = diagonal[i + 1];
      u.first[i + 1] = above_of(i + 1);
      const Real<T> pivot = u.main[i] == T{} ? 0 : std::abs(u.main[i]) / row_sum;
      if (under == T{}) {
        row_sum = next_sum;
      } else if (std::abs(under) / next_sum <= pivot) {
        const T factor = under / u.main[i];
        u.main[i + 1] -= factor * u.first[i];
        for (int64_t j = 0; j < sides; ++j) there[j] -= factor * here[j];
        row_sum = next_sum;
      } else {
        const T factor = u.main[i] / under;
        u.main[i] = under;
        u.main[i + 1] = u.first[i] - factor * diagonal[i + 1];
        u.first[i] = diagonal[i + 1];
        u.second[i] = above_of(i + 1);
        u.first[i + 1] = -factor * above_of(i + 1);
        for (int64_t j = 0; j < sides; ++j) {
          const T kept = here[j];
          here[j] = there[j];
          there[j] = kept - factor * here[j];
        }
        row_sum = std::abs(u.main[i + 1]) + std::abs(u.first[i + 1]);
      }
      for (const T& value : {u.main[i], u.first[i], u.second[i]}) largest = std::max(largest, std::abs(value));
    }
    u.second[n - 1] = T{};
    return std::max(largest, std::abs(u.main[n - 1]));
  }

  /// Divides a row by a pivot that is made large enough for it.
  void divide(T pivot, Real<T> step, T* row) const {
    constexpr Real<T> kLeast = std::numeric_limits<Real<T>>::min();
    Real<T> most = 0;
    for (int64_t j = 0; j < sides; ++j) most = std::max(most, std::abs(row[j]));
    step = std::copysign(std::max(step, kLeast), std::real(pivot));
    while (std::abs(pivot) < 1) {
      const Real<T> size = std::abs(pivot);
      const bool too_small = size < kLeast ? size == 0 || most * kLeast > size : most > size / kLeast;
      if (too_small) {
        pivot += step;
        step *= 2;
        continue;
      }
      if (size < kLeast) {
        pivot /= kLeast;
        for (int64_t j = 0; j < sides; ++j) row[j] /= kLeast;
      }
      break;
    }
    for (int64_t j = 0; j < sides; ++j) row[j] = row[j] / pivot;
  }

  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    if (n == 0) return;
    Arena arena(scratch);
    const Upper u = lay_out(arena);
    T* const x = result<T>(results, 0);
    take_over(results[0], operands[3], operand_bytes[3]);
    const Real<T> largest = eliminate(operand<T>(operands, 0), operand<T>(operands, 1), operand<T>(operands, 2), u, x);
    const Real<T> step = std::numeric_limits<Real<T>>::epsilon() * largest;
    for (int64_t i = n - 1; i >= 0; --i) {
      T* const row = x + i * sides;
      for (int64_t j = 0; j < sides; ++j) {
        if (i + 1 < n) row[j] -= u.first[i] * row[j + sides];
        if (i + 2 < n) row[j] -= u.second[i] * row[j + 2 * sides];
      }
      divide(u.main[i], step, row);
    }
  }
  int64_t n, sides;
};

}  // namespace

std::shared_ptr<Lapack::Plan> plan_solve(const LapackSpec& spec) {
  return for_dtype(spec.dtype, [&]<class T>() -> std::shared_ptr<Lapack::Plan> {
    switch (spec.routine) {
      case LapackRoutine::kGtsv:
        return std::make_shared<Gtsv<T>>(spec);
      case LapackRoutine::kTridiagonalPerturbed:
        return std::make_shared<TridiagonalPerturbed<T>>(spec);
      case LapackRoutine::kTrsm:
        return std::make_shared<Trsm<T>>(spec);
      default:
        throw core::Error("internal", "plan_solve: not a routine that solves");
    }
  });
}

}  // namespace meshd::kernels
