// The plans of the routines of lapack.h, one each, and what they share: workspace and transposition.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "service/core/error.h"
#include "service/kernels/lapack/lapack.h"
#include "service/kernels/lapack/lapack_fortran.h"

namespace meshd::kernels {

/// One problem. Bytes of each operand and result are the offset to the next problem's.
struct Lapack::Plan {
  virtual ~Plan() = default;
  virtual void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const = 0;

  /// Work item `item` of one phase; only where there are phases. `workspace`: this problem's.
  virtual void run_item(const std::byte* const* /*operands*/, std::byte* const* /*results*/, std::byte* /*workspace*/,
                        int64_t /*phase*/, int64_t /*item*/) const {}

  std::vector<int64_t> operand_bytes;
  std::vector<int64_t> result_bytes;
  int64_t scratch_bytes = 0;
  /// A problem that is split: work items of each phase, between which there are barriers. Empty: run() computes it.
  std::vector<int64_t> phases;
  int64_t workspace_bytes = 0;  ///< of a problem that is split
};

std::shared_ptr<Lapack::Plan> plan_cholesky(const LapackSpec& spec);  ///< potrf
std::shared_ptr<Lapack::Plan> plan_factor(const LapackSpec& spec);    ///< getrf, geqrf, orgqr, ormqr, geqp3
std::shared_ptr<Lapack::Plan> plan_eigen(const LapackSpec& spec);     ///< syevd, geev, gees, gehrd, sytrd
std::shared_ptr<Lapack::Plan> plan_svd(const LapackSpec& spec);       ///< gesdd, gesvd
std::shared_ptr<Lapack::Plan> plan_solve(const LapackSpec& spec);  ///< trsm, gtsv, the perturbed tridiagonal solution

namespace lapack {

/// Makes the plan of the spec's element type: make.template operator()<T>().
template <class Make>
std::shared_ptr<Lapack::Plan> for_dtype(tensor::DType dtype, const Make& make) {
  switch (dtype) {
    case tensor::DType::kFloat64:
      return make.template operator()<double>();
    case tensor::DType::kComplex64:
      return make.template operator()<std::complex<float>>();
    case tensor::DType::kComplex128:
      return make.template operator()<std::complex<double>>();
    case tensor::DType::kFloat32:
      return make.template operator()<float>();
    default:
      throw core::Error("internal", "LAPACK has no routines for " + std::string(tensor::name(dtype)));
  }
}

/// Hands out scratch in pieces aligned to 64 bytes; without memory it only counts.
class Arena {
 public:
  explicit Arena(std::byte* memory) : memory_(memory) {}

  template <class T>
  T* take(int64_t count) {
    const int64_t at = used_;
    used_ += (std::max<int64_t>(count, 1) * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  [[nodiscard]] int64_t used() const { return used_; }

 private:
  std::byte* memory_;
  int64_t used_ = 0;
};

/// Bytes of what a plan's lay_out() takes.
template <class Plan>
int64_t scratch_of(const Plan& plan) {
  Arena counting(nullptr);
  plan.lay_out(counting);
  return counting.used();
}

/// Workspace of most routines: the matrix by columns, and the memory that they request.
template <class T>
struct MatrixAndWork {
  T* a;
  T* work;
};

template <class T>
int64_t bytes_of(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}
/// What a routine overwrites starts as its operand; the two may be one memory, and of nothing there may be none.
inline void take_over(std::byte* to, const std::byte* from, int64_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

inline int to_int(int64_t size) { return static_cast<int>(size); }
/// A leading dimension: at least one.
inline int leading(int64_t rows) { return to_int(std::max<int64_t>(rows, 1)); }

/// The workspace size that a routine returned in work[0]; single precision may have rounded it down.
template <class T>
int asked(T work) {
  const double size = static_cast<double>(std::real(work));
  return std::max(1, static_cast<int>(std::min(std::ceil(size * (1 + 1e-6)), 2147483647.0)));
}

/// Row-major to column-major, blockwise.
template <class T>
void to_columns(const T* from, int64_t rows, int64_t columns, T* to) {
  constexpr int64_t kBlock = 16;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (int64_t j0 = 0; j0 < columns; j0 += kBlock) {
      for (int64_t j = j0; j < std::min(j0 + kBlock, columns); ++j) {
        for (int64_t i = i0; i < std::min(i0 + kBlock, rows); ++i) to[j * rows + i] = from[i * columns + j];
      }
    }
  }
}
template <class T>
void to_rows(const T* from, int64_t rows, int64_t columns, T* to) {
  to_columns(from, columns, rows, to);
}

template <class T>
bool all_finite(const T* values, int64_t count) {
  const auto* parts = reinterpret_cast<const Real<T>*>(values);
  const int64_t part_count = count * (kIsComplex<T> ? 2 : 1);
  return std::all_of(parts, parts + part_count, [](Real<T> part) { return std::isfinite(part); });
}
template <class T>
void fill_nan(T* values, int64_t count) {
  constexpr Real<T> kNan = std::numeric_limits<Real<T>>::quiet_NaN();
  std::fill_n(values, count, T(kNan));
  if constexpr (kIsComplex<T>) std::fill_n(values, count, T(kNan, kNan));
}

/// `info` of a problem that was not begun because values are not finite.
inline constexpr int32_t kNotFinite = -4;

template <class T>
const T* operand(const std::byte* const* operands, size_t index) {
  return reinterpret_cast<const T*>(operands[index]);
}
template <class T>
T* result(std::byte* const* results, size_t index) {
  return reinterpret_cast<T*>(results[index]);
}

}  // namespace lapack
}  // namespace meshd::kernels
