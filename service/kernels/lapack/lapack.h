// Factorisations, eigenvalues and solutions of small dense matrices, many at a time, by the LAPACK inside Debian's
// pthread build of OpenBLAS with one thread a call. Matrices are row-major here as everywhere; LAPACK's columns stay
// inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// What is computed of each matrix; operands and results in order. `info` is LAPACK's, an int32: 0, or an error.
enum class LapackRoutine : uint8_t {
  kPotrf,  ///< a -> factor in the triangle `uplo`, the rest as it was; info
  kGetrf,  ///< a -> L and U; pivots (int32, from 1); info
  kGeqrf,  ///< a -> R and reflectors; tau
  kOrgqr,  ///< reflectors (rows x columns), tau (inner) -> columns of Q
  kOrmqr,  ///< reflectors (rows x inner), tau (inner), c (other_rows x other_columns) -> Q c or c Q
  kGeqp3,  ///< a, pivots -> R and reflectors; pivots; tau
  kSyevd,  ///< a -> vectors; values; info
  kGesdd,  ///< a -> what is left of a; values; u (rows x left_columns); vt (right_rows x columns); info
  kGesvd,  ///< the same by another algorithm
  kGeev,   ///< a -> values (real: real parts; imaginary parts); left vectors; right vectors, complex; info
  kGees,   ///< a -> Schur form; vectors; values as of geev; selected (int32, 0); info
  kGehrd,  ///< a -> Hessenberg form and reflectors; tau; info
  kSytrd,  ///< a -> tridiagonal form and reflectors; diagonal; off-diagonal; tau; info
  kGtsv,   ///< lower (its first element is ignored), diagonal, upper, b -> the same, overwritten; info
  kTrsm,   ///< a, b -> x with op(a) x = b or x op(a) = b
  kTridiagonalPerturbed,  ///< lower, diagonal, upper, b -> x, finite where the matrix is singular too
};

/// A batch of equal problems. Sizes without batch dimensions; the names are LAPACK's.
struct LapackSpec {
  LapackRoutine routine = LapackRoutine::kPotrf;
  tensor::DType dtype = tensor::DType::kFloat32;  ///< float32, float64, complex64 or complex128
  int64_t batch = 0;
  int64_t rows = 0;  ///< of a; the order of a square one
  int64_t columns = 0;
  int64_t inner = 0;       ///< reflectors
  int64_t other_rows = 0;  ///< of b or c
  int64_t other_columns = 0;
  int64_t left_columns = 0;  ///< of u
  int64_t right_rows = 0;    ///< of vt
  char uplo = 'L';
  char side = 'L';
  char transpose = 'N';
  char diagonal = 'N';
  char mode = 'V';  ///< job of syevd and gees; of gesdd and gesvd: A, S, N
  char left = 'V';  ///< jobs of geev
  char right = 'V';
  int64_t low = 1;  ///< of gehrd
  int64_t high = 0;
};

/// A batch made ready. Immutable; any thread. A problem's bits depend on its own values and on the sizes alone.
/// Iterations are not begun with values that are not finite: results are then NaN and info is -4.
class Lapack {
 public:
  /// Throws unsupported_dtype for other types, and unsupported_op for sizes beyond 32 bits.
  explicit Lapack(const LapackSpec& spec);

  /// Problems, or parts of large ones.
  [[nodiscard]] int64_t work_count() const { return work_count_; }
  /// Work items from each of these on need the results of all before it.
  [[nodiscard]] const std::vector<int64_t>& barriers() const { return barriers_; }
  /// Bytes of scratch, aligned to 64, that each concurrent run() needs.
  [[nodiscard]] int64_t scratch_bytes() const;
  /// Bytes, aligned to 64, that all calls of one execution share.
  [[nodiscard]] int64_t workspace_bytes() const;
  /// Memory of a call. A result may be an operand's memory where both have the same type.
  struct Memory {
    const std::byte* const* operands = nullptr;
    std::byte* const* results = nullptr;
    std::byte* scratch = nullptr;
    std::byte* workspace = nullptr;
  };
  /// Work items [begin, end). A problem of more than some milliseconds that is not split is one call without
  /// checkpoints (core::UncheckedCall).
  void run(const Memory& memory, int64_t begin, int64_t end, core::Checkpoint* checkpoint = nullptr) const;
  /// Operations of one problem, about.
  [[nodiscard]] double flops() const { return flops_; }

  struct Plan;

 private:
  void run_item(const Memory& memory, int64_t problem, int64_t phase, int64_t item) const;
  void run_problem(const Memory& memory, int64_t problem, core::Checkpoint* checkpoint) const;

  std::shared_ptr<const Plan> plan_;
  int64_t batch_ = 0;
  int64_t work_count_ = 0;
  std::vector<int64_t> barriers_;
  double flops_ = 0;
};

}  // namespace meshd::kernels
