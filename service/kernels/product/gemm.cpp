#include "service/kernels/product/gemm.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "service/core/error.h"
#include "service/kernels/lapack/blas_core.h"
#include "service/kernels/product/gemm_plans.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

// Up to here OpenBLAS, which has loops for small matrices, is faster than oneDNN's argument checks.
constexpr int64_t kSmallFlops = 2 * 48 * 48 * 48;

bool is_loop_integer(DType dtype) { return tensor::is_integer(dtype) && tensor::row(dtype).bits >= 8; }

GemmPlan choose(const GemmSpec& spec) {
  if (spec.in == DType::kBfloat16 || spec.in != spec.out) return plan_matmul_primitive(spec);
  if (tensor::is_integer(spec.in)) return plan_loops(spec);
  const bool is_large =
      static_cast<double>(spec.m) * static_cast<double>(spec.n) * static_cast<double>(spec.k) * 2 > kSmallFlops;
  if (spec.in == DType::kFloat32 && is_large && spec.m > 1 && spec.n > 1) return plan_sgemm(spec);
  return plan_openblas(spec);
}

}  // namespace

Panels::Panels(const GemmSpec& spec, int64_t least) : rows(spec.m), columns(spec.n) {
  constexpr double kPanelFlops = 4e9;  // a hundred or two milliseconds: what is less is one panel
  constexpr double kWantedFlops = 2e9;
  const double of_sum = 2 * static_cast<double>(spec.k) * (tensor::is_complex(spec.in) ? 4 : 1);
  const auto flops = [&] { return of_sum * static_cast<double>(rows) * static_cast<double>(columns); };
  const auto cut = [&](int64_t& size, int64_t multiple) {
    const double wanted = static_cast<double>(size) * kWantedFlops / flops();
    const int64_t at_least = std::max(static_cast<int64_t>(wanted), least);
    size = std::min(size, std::max<int64_t>(1, at_least / multiple) * multiple);
  };
  if (flops() <= kPanelFlops) return;
  cut(columns, kColumnMultiple);
  if (flops() > kPanelFlops) cut(rows, kRowMultiple);
}

void prepare_thread() {
  prepare_openblas();
  omp_set_num_threads(1);
}

bool is_blas_layout(int64_t rows, int64_t columns, MatrixLayout layout) {
  const bool plain = (layout.column_stride == 1 || columns == 1) && (layout.row_stride >= columns || rows == 1);
  const bool transposed = (layout.row_stride == 1 || rows == 1) && (layout.column_stride >= rows || columns == 1);
  return plain || transposed;
}

bool gemm_takes(DType in, DType out) {
  if (in == out && (in == DType::kFloat32 || in == DType::kFloat64 || tensor::is_complex(in) || is_loop_integer(in)))
    return true;
  return has_matmul_primitive(in, out);
}

bool gemm_takes_a(DType in, int64_t rows, int64_t columns, MatrixLayout layout) {
  return (is_loop_integer(in) && in != DType::kInt8) || is_blas_layout(rows, columns, layout);
}

bool gemm_takes_b(DType in, int64_t rows, int64_t columns, MatrixLayout layout) {
  if (is_loop_integer(in)) return layout.column_stride == 1 || columns == 1;
  return is_blas_layout(rows, columns, layout);
}

Gemm::Gemm(const GemmSpec& spec) {
  if (!gemm_takes(spec.in, spec.out)) {
    throw core::Error("unsupported_dtype", "no product of " + std::string(tensor::name(spec.in)) + " into " +
                                               std::string(tensor::name(spec.out)));
  }
  result_bytes_ = spec.m * spec.n * tensor::size_bytes(spec.out);
  is_empty_sum_ = spec.k == 0;
  if (is_empty_sum_ || result_bytes_ == 0) return;
  prepare_thread();  // oneDNN plans for the threads that it sees here
  GemmPlan plan = choose(spec);
  plan_ = std::move(plan.plan);
  scratch_bytes_ = plan.scratch_bytes;
}

void Gemm::run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* scratch,
               core::Checkpoint* checkpoint) const {
  if (result_bytes_ == 0) return;
  if (is_empty_sum_) {
    std::memset(c, 0, static_cast<size_t>(result_bytes_));
    return;
  }
  prepare_thread();
  plan_->run(a, b, c, scratch, checkpoint);
}

}  // namespace meshd::kernels
