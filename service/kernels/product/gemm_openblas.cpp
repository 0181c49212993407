// Products by OpenBLAS: f64, complex, and matrix times vector in f32 too. Debian's pthread build with one thread; its
// serial build gives wrong numbers under concurrent callers.
#include <cblas.h>

#include <algorithm>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/kernels/product/gemm_plans.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

// A layout in BLAS terms: leading dimension, and whether it is transposed.
struct BlasMatrix {
  CBLAS_TRANSPOSE transpose = CblasNoTrans;
  blasint leading = 1;
};

blasint to_blas(int64_t value) {
  if (value > INT32_MAX)
    throw core::Error("unsupported_op", "a matrix product with a dimension beyond 2^31 is not supported");
  return static_cast<blasint>(value);
}

BlasMatrix blas_matrix(int64_t rows, int64_t columns, MatrixLayout layout) {
  const bool plain = (layout.column_stride == 1 || columns == 1) && (layout.row_stride >= columns || rows == 1);
  if (plain) return {CblasNoTrans, to_blas(std::max<int64_t>(rows == 1 ? columns : layout.row_stride, 1))};
  return {CblasTrans, to_blas(std::max<int64_t>(columns == 1 ? rows : layout.column_stride, 1))};
}

/// Terms of a complex sum that are added at once: OpenBLAS adds them along one chain, whose rounding errors add up.
/// Sums of so many cost nothing beside longer ones (an AMD EPYC with AVX2: 69 GFLOP/s and 70 at 64 x 4096 x 64).
constexpr int64_t kMostComplexTerms = 96;

struct GemmByBlas : Gemm::Plan {
  explicit GemmByBlas(const GemmSpec& product)
      : spec(product),
        depth(tensor::is_complex(product.in) ? core::ceil_div(product.k, core::ceil_div(product.k, kMostComplexTerms))
                                             : product.k),
        panels(product),
        a(blas_matrix(product.m, product.k, product.a)),
        b(blas_matrix(product.k, product.n, product.b)) {
    for (const int64_t size : {spec.m, spec.n, spec.k}) to_blas(size);
  }

  GemmSpec spec;
  int64_t depth;  // terms of a part of the sum: even parts, in order
  Panels panels;
  BlasMatrix a;
  BlasMatrix b;

  void run(const std::byte* a_data, const std::byte* b_data, std::byte* c_data, std::byte* /*scratch*/,
           core::Checkpoint* checkpoint, PackedOperand* /*kept*/) const override {
    panels.for_each(spec.m, spec.n, checkpoint, [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
      for (int64_t term = 0; term < spec.k; term += depth) {
        multiply(a_data + byte_offset(spec.a, row, term, spec.in), b_data + byte_offset(spec.b, term, column, spec.in),
                 c_data + byte_offset({spec.c_row_stride(), 1}, row, column, spec.out), to_blas(rows), to_blas(columns),
                 to_blas(std::min(depth, spec.k - term)), term != 0);
      }
    });
  }

 private:
  void multiply(const std::byte* a_data, const std::byte* b_data, std::byte* c_data, blasint m, blasint n, blasint k,
                bool adds) const {
    const blasint pitch = to_blas(spec.c_row_stride());
    const double one[2] = {1, 0};
    const double before[2] = {adds ? 1.0 : 0.0, 0};
    const float one_f[2] = {1, 0};
    const float before_f[2] = {adds ? 1.0F : 0.0F, 0};
    if (spec.in == DType::kFloat64) {
      cblas_dgemm(CblasRowMajor, a.transpose, b.transpose, m, n, k, 1, reinterpret_cast<const double*>(a_data),
                  a.leading, reinterpret_cast<const double*>(b_data), b.leading, 0, reinterpret_cast<double*>(c_data),
                  pitch);
    } else if (spec.in == DType::kFloat32) {
      cblas_sgemm(CblasRowMajor, a.transpose, b.transpose, m, n, k, 1, reinterpret_cast<const float*>(a_data),
                  a.leading, reinterpret_cast<const float*>(b_data), b.leading, 0, reinterpret_cast<float*>(c_data),
                  pitch);
    } else if (spec.in == DType::kComplex128) {
      cblas_zgemm(CblasRowMajor, a.transpose, b.transpose, m, n, k, one, a_data, a.leading, b_data, b.leading, before,
                  c_data, pitch);
    } else {
      cblas_cgemm(CblasRowMajor, a.transpose, b.transpose, m, n, k, one_f, a_data, a.leading, b_data, b.leading,
                  before_f, c_data, pitch);
    }
  }
};

// y = op(matrix) x, where the matrix has `rows` rows of `columns` elements in memory.
struct GemvByBlas : Gemm::Plan {
  DType dtype = DType::kFloat64;
  CBLAS_TRANSPOSE transpose = CblasNoTrans;
  blasint rows = 0;
  blasint columns = 0;
  blasint leading = 1;
  blasint step = 1;  // of x
  bool matrix_is_b = false;
  int64_t result_bytes = 0;

  void run(const std::byte* a_data, const std::byte* b_data, std::byte* c_data, std::byte* /*scratch*/,
           core::Checkpoint* checkpoint, PackedOperand* /*kept*/) const override {
    core::pass(checkpoint);
    const std::byte* matrix = matrix_is_b ? b_data : a_data;
    const std::byte* x = matrix_is_b ? a_data : b_data;
    const double one[2] = {1, 0};
    const double zero[2] = {0, 0};
    const float one_f[2] = {1, 0};
    const float zero_f[2] = {0, 0};
    // beta = 0 must not read the old values, not even a NaN.
    std::memset(c_data, 0, static_cast<size_t>(result_bytes));
    if (dtype == DType::kFloat64) {
      cblas_dgemv(CblasRowMajor, transpose, rows, columns, 1, reinterpret_cast<const double*>(matrix), leading,
                  reinterpret_cast<const double*>(x), step, 0, reinterpret_cast<double*>(c_data), 1);
    } else if (dtype == DType::kFloat32) {
      cblas_sgemv(CblasRowMajor, transpose, rows, columns, 1, reinterpret_cast<const float*>(matrix), leading,
                  reinterpret_cast<const float*>(x), step, 0, reinterpret_cast<float*>(c_data), 1);
    } else if (dtype == DType::kComplex128) {
      cblas_zgemv(CblasRowMajor, transpose, rows, columns, one, matrix, leading, x, step, zero, c_data, 1);
    } else {
      cblas_cgemv(CblasRowMajor, transpose, rows, columns, one_f, matrix, leading, x, step, zero_f, c_data, 1);
    }
  }
};

// The matrix of a product with a vector: `rows` x `columns`, the result has `rows` elements, or `columns` where the
// matrix is b.
std::shared_ptr<const Gemm::Plan> plan_gemv(const GemmSpec& spec, bool matrix_is_b) {
  auto plan = std::make_shared<GemvByBlas>();
  plan->dtype = spec.in;
  plan->matrix_is_b = matrix_is_b;
  plan->result_bytes = spec.m * spec.n * tensor::size_bytes(spec.out);
  const int64_t rows = matrix_is_b ? spec.k : spec.m;
  const int64_t columns = matrix_is_b ? spec.n : spec.k;
  const BlasMatrix matrix = blas_matrix(rows, columns, matrix_is_b ? spec.b : spec.a);
  // c = a b with m = 1 is b' a: the transposed product.
  const bool stored_transposed = matrix.transpose == CblasTrans;
  plan->rows = to_blas(stored_transposed ? columns : rows);
  plan->columns = to_blas(stored_transposed ? rows : columns);
  plan->transpose = stored_transposed != matrix_is_b ? CblasTrans : CblasNoTrans;
  plan->leading = matrix.leading;
  plan->step = to_blas(std::max<int64_t>(1, matrix_is_b ? spec.a.column_stride : spec.b.row_stride));
  return plan;
}

}  // namespace

GemmPlan plan_openblas(const GemmSpec& spec) {
  if (spec.n == 1) return {plan_gemv(spec, false), 0};
  if (spec.m == 1) return {plan_gemv(spec, true), 0};
  return {std::make_shared<GemmByBlas>(spec), 0};
}

}  // namespace meshd::kernels
