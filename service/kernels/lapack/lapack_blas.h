// Products and triangular solutions of blocks of row-major matrices as one overload for each of the four element types.
// One thread a call; any thread.
#pragma once

#include <cblas.h>

#include <complex>

namespace meshd::kernels::lapack {

/// b = op(a)^-1 b, or b op(a)^-1, with a triangular; b has m x n elements.
inline void trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE transpose, CBLAS_DIAG diagonal, int m, int n,
                 const float* a, int lda, float* b, int ldb) {
  cblas_strsm(CblasRowMajor, side, uplo, transpose, diagonal, m, n, 1, a, lda, b, ldb);
}
inline void trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE transpose, CBLAS_DIAG diagonal, int m, int n,
                 const double* a, int lda, double* b, int ldb) {
  cblas_dtrsm(CblasRowMajor, side, uplo, transpose, diagonal, m, n, 1, a, lda, b, ldb);
}
inline void trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE transpose, CBLAS_DIAG diagonal, int m, int n,
                 const std::complex<float>* a, int lda, std::complex<float>* b, int ldb) {
  const std::complex<float> one = 1;
  cblas_ctrsm(CblasRowMajor, side, uplo, transpose, diagonal, m, n, &one, a, lda, b, ldb);
}
inline void trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE transpose, CBLAS_DIAG diagonal, int m, int n,
                 const std::complex<double>* a, int lda, std::complex<double>* b, int ldb) {
  const std::complex<double> one = 1;
  cblas_ztrsm(CblasRowMajor, side, uplo, transpose, diagonal, m, n, &one, a, lda, b, ldb);
}

/// c = c - op(a) op(b); op(a) has m x k elements, op(b) k x n.
inline void subtract_product(CBLAS_TRANSPOSE a_op, CBLAS_TRANSPOSE b_op, int m, int n, int k, const float* a, int lda,
                             const float* b, int ldb, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, a_op, b_op, m, n, k, -1, a, lda, b, ldb, 1, c, ldc);
}
inline void subtract_product(CBLAS_TRANSPOSE a_op, CBLAS_TRANSPOSE b_op, int m, int n, int k, const double* a, int lda,
                             const double* b, int ldb, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, a_op, b_op, m, n, k, -1, a, lda, b, ldb, 1, c, ldc);
}
inline void subtract_product(CBLAS_TRANSPOSE a_op, CBLAS_TRANSPOSE b_op, int m, int n, int k,
                             const std::complex<float>* a, int lda, const std::complex<float>* b, int ldb,
                             std::complex<float>* c, int ldc) {
  const std::complex<float> minus = -1;
  const std::complex<float> one = 1;
  cblas_cgemm(CblasRowMajor, a_op, b_op, m, n, k, &minus, a, lda, b, ldb, &one, c, ldc);
}
inline void subtract_product(CBLAS_TRANSPOSE a_op, CBLAS_TRANSPOSE b_op, int m, int n, int k,
                             const std::complex<double>* a, int lda, const std::complex<double>* b, int ldb,
                             std::complex<double>* c, int ldc) {
  const std::complex<double> minus = -1;
  const std::complex<double> one = 1;
  cblas_zgemm(CblasRowMajor, a_op, b_op, m, n, k, &minus, a, lda, b, ldb, &one, c, ldc);
}

/// A triangle of c = c - a a^H (kNoTrans, a of n x k) or c - a^H a (k x n).
inline void subtract_square(CBLAS_UPLO uplo, CBLAS_TRANSPOSE op, int n, int k, const float* a, int lda, float* c,
                            int ldc) {
  cblas_ssyrk(CblasRowMajor, uplo, op, n, k, -1, a, lda, 1, c, ldc);
}
inline void subtract_square(CBLAS_UPLO uplo, CBLAS_TRANSPOSE op, int n, int k, const double* a, int lda, double* c,
                            int ldc) {
  cblas_dsyrk(CblasRowMajor, uplo, op, n, k, -1, a, lda, 1, c, ldc);
}
inline void subtract_square(CBLAS_UPLO uplo, CBLAS_TRANSPOSE op, int n, int k, const std::complex<float>* a, int lda,
                            std::complex<float>* c, int ldc) {
  cblas_cherk(CblasRowMajor, uplo, op, n, k, -1, a, lda, 1, c, ldc);
}
inline void subtract_square(CBLAS_UPLO uplo, CBLAS_TRANSPOSE op, int n, int k, const std::complex<double>* a, int lda,
                            std::complex<double>* c, int ldc) {
  cblas_zherk(CblasRowMajor, uplo, op, n, k, -1, a, lda, 1, c, ldc);
}

}  // namespace meshd::kernels::lapack
