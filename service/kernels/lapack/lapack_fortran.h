// LAPACK as Fortran left it, and above it one overloaded function for each routine: arguments by value, `info` as the
// result. Real and complex routines take the same arguments; what only the other kind has is ignored. Matrices are
// column by column. Workspaces are the caller's; with lwork -1 the best size is left in work[0].
#pragma once

#include <complex>
#include <cstddef>

extern "C" {
// Lengths of the strings follow last, as Fortran compilers pass them.
void spotrf_(const char* uplo, const int* n, float* a, const int* lda, int* info, size_t);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info, size_t);
void cpotrf_(const char* uplo, const int* n, std::complex<float>* a, const int* lda, int* info, size_t);
void zpotrf_(const char* uplo, const int* n, std::complex<double>* a, const int* lda, int* info, size_t);
void sgetrf_(const int* m, const int* n, float* a, const int* lda, int* pivots, int* info);
void dgetrf_(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info);
void cgetrf_(const int* m, const int* n, std::complex<float>* a, const int* lda, int* pivots, int* info);
void zgetrf_(const int* m, const int* n, std::complex<double>* a, const int* lda, int* pivots, int* info);
void sgeqrf_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work, const int* lwork,
             int* info);
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work, const int* lwork,
             int* info);
void cgeqrf_(const int* m, const int* n, std::complex<float>* a, const int* lda, std::complex<float>* tau,
             std::complex<float>* work, const int* lwork, int* info);
void zgeqrf_(const int* m, const int* n, std::complex<double>* a, const int* lda, std::complex<double>* tau,
             std::complex<double>* work, const int* lwork, int* info);
void sorgqr_(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau, float* work,
             const int* lwork, int* info);
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau, double* work,
             const int* lwork, int* info);
void cungqr_(const int* m, const int* n, const int* k, std::complex<float>* a, const int* lda,
             const std::complex<float>* tau, std::complex<float>* work, const int* lwork, int* info);
void zungqr_(const int* m, const int* n, const int* k, std::complex<double>* a, const int* lda,
             const std::complex<double>* tau, std::complex<double>* work, const int* lwork, int* info);
void sormqr_(const char* side, const char* trans, const int* m, const int* n, const int* k, const float* a,
             const int* lda, const float* tau, float* c, const int* ldc, float* work, const int* lwork, int* info,
             size_t, size_t);
void dormqr_(const char* side, const char* trans, const int* m, const int* n, const int* k, const double* a,
             const int* lda, const double* tau, double* c, const int* ldc, double* work, const int* lwork, int* info,
             size_t, size_t);
void cunmqr_(const char* side, const char* trans, const int* m, const int* n, const int* k,
             const std::complex<float>* a, const int* lda, const std::complex<float>* tau, std::complex<float>* c,
             const int* ldc, std::complex<float>* work, const int* lwork, int* info, size_t, size_t);
void zunmqr_(const char* side, const char* trans, const int* m, const int* n, const int* k,
             const std::complex<double>* a, const int* lda, const std::complex<double>* tau, std::complex<double>* c,
             const int* ldc, std::complex<double>* work, const int* lwork, int* info, size_t, size_t);
void sgeqp3_(const int* m, const int* n, float* a, const int* lda, int* pivots, float* tau, float* work,
             const int* lwork, int* info);
void dgeqp3_(const int* m, const int* n, double* a, const int* lda, int* pivots, double* tau, double* work,
             const int* lwork, int* info);
void cgeqp3_(const int* m, const int* n, std::complex<float>* a, const int* lda, int* pivots, std::complex<float>* tau,
             std::complex<float>* work, const int* lwork, float* rwork, int* info);
void zgeqp3_(const int* m, const int* n, std::complex<double>* a, const int* lda, int* pivots,
             std::complex<double>* tau, std::complex<double>* work, const int* lwork, double* rwork, int* info);
void ssyevd_(const char* job, const char* uplo, const int* n, float* a, const int* lda, float* w, float* work,
             const int* lwork, int* iwork, const int* liwork, int* info, size_t, size_t);
void dsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w, double* work,
             const int* lwork, int* iwork, const int* liwork, int* info, size_t, size_t);
void cheevd_(const char* job, const char* uplo, const int* n, std::complex<float>* a, const int* lda, float* w,
             std::complex<float>* work, const int* lwork, float* rwork, const int* lrwork, int* iwork,
             const int* liwork, int* info, size_t, size_t);
void zheevd_(const char* job, const char* uplo, const int* n, std::complex<double>* a, const int* lda, double* w,
             std::complex<double>* work, const int* lwork, double* rwork, const int* lrwork, int* iwork,
             const int* liwork, int* info, size_t, size_t);
void sgesdd_(const char* job, const int* m, const int* n, float* a, const int* lda, float* s, float* u, const int* ldu,
             float* vt, const int* ldvt, float* work, const int* lwork, int* iwork, int* info, size_t);
void dgesdd_(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u,
             const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork, int* iwork, int* info,
             size_t);
void cgesdd_(const char* job, const int* m, const int* n, std::complex<float>* a, const int* lda, float* s,
             std::complex<float>* u, const int* ldu, std::complex<float>* vt, const int* ldvt,
             std::complex<float>* work, const int* lwork, float* rwork, int* iwork, int* info, size_t);
void zgesdd_(const char* job, const int* m, const int* n, std::complex<double>* a, const int* lda, double* s,
             std::complex<double>* u, const int* ldu, std::complex<double>* vt, const int* ldvt,
             std::complex<double>* work, const int* lwork, double* rwork, int* iwork, int* info, size_t);
void sgesvd_(const char* job_u, const char* job_vt, const int* m, const int* n, float* a, const int* lda, float* s,
             float* u, const int* ldu, float* vt, const int* ldvt, float* work, const int* lwork, int* info, size_t,
             size_t);
void dgesvd_(const char* job_u, const char* job_vt, const int* m, const int* n, double* a, const int* lda, double* s,
             double* u, const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork, int* info, size_t,
             size_t);
void cgesvd_(const char* job_u, const char* job_vt, const int* m, const int* n, std::complex<float>* a, const int* lda,
             float* s, std::complex<float>* u, const int* ldu, std::complex<float>* vt, const int* ldvt,
             std::complex<float>* work, const int* lwork, float* rwork, int* info, size_t, size_t);
void zgesvd_(const char* job_u, const char* job_vt, const int* m, const int* n, std::complex<double>* a, const int* lda,
             double* s, std::complex<double>* u, const int* ldu, std::complex<double>* vt, const int* ldvt,
             std::complex<double>* work, const int* lwork, double* rwork, int* info, size_t, size_t);
void sgeev_(const char* job_left, const char* job_right, const int* n, float* a, const int* lda, float* w, float* wi,
            float* left, const int* ldl, float* right, const int* ldr, float* work, const int* lwork, int* info, size_t,
            size_t);
void dgeev_(const char* job_left, const char* job_right, const int* n, double* a, const int* lda, double* w, double* wi,
            double* left, const int* ldl, double* right, const int* ldr, double* work, const int* lwork, int* info,
            size_t, size_t);
void cgeev_(const char* job_left, const char* job_right, const int* n, std::complex<float>* a, const int* lda,
            std::complex<float>* w, std::complex<float>* left, const int* ldl, std::complex<float>* right,
            const int* ldr, std::complex<float>* work, const int* lwork, float* rwork, int* info, size_t, size_t);
void zgeev_(const char* job_left, const char* job_right, const int* n, std::complex<double>* a, const int* lda,
            std::complex<double>* w, std::complex<double>* left, const int* ldl, std::complex<double>* right,
            const int* ldr, std::complex<double>* work, const int* lwork, double* rwork, int* info, size_t, size_t);
void sgees_(const char* job, const char* sort, const void* select, const int* n, float* a, const int* lda,
            int* selected, float* w, float* wi, float* vectors, const int* ldv, float* work, const int* lwork,
            int* bwork, int* info, size_t, size_t);
void dgees_(const char* job, const char* sort, const void* select, const int* n, double* a, const int* lda,
            int* selected, double* w, double* wi, double* vectors, const int* ldv, double* work, const int* lwork,
            int* bwork, int* info, size_t, size_t);
void cgees_(const char* job, const char* sort, const void* select, const int* n, std::complex<float>* a, const int* lda,
            int* selected, std::complex<float>* w, std::complex<float>* vectors, const int* ldv,
            std::complex<float>* work, const int* lwork, float* rwork, int* bwork, int* info, size_t, size_t);
void zgees_(const char* job, const char* sort, const void* select, const int* n, std::complex<double>* a,
            const int* lda, int* selected, std::complex<double>* w, std::complex<double>* vectors, const int* ldv,
            std::complex<double>* work, const int* lwork, double* rwork, int* bwork, int* info, size_t, size_t);
void sgehrd_(const int* n, const int* low, const int* high, float* a, const int* lda, float* tau, float* work,
             const int* lwork, int* info);
void dgehrd_(const int* n, const int* low, const int* high, double* a, const int* lda, double* tau, double* work,
             const int* lwork, int* info);
void cgehrd_(const int* n, const int* low, const int* high, std::complex<float>* a, const int* lda,
             std::complex<float>* tau, std::complex<float>* work, const int* lwork, int* info);
void zgehrd_(const int* n, const int* low, const int* high, std::complex<double>* a, const int* lda,
             std::complex<double>* tau, std::complex<double>* work, const int* lwork, int* info);
void ssytrd_(const char* uplo, const int* n, float* a, const int* lda, float* d, float* e, float* tau, float* work,
             const int* lwork, int* info, size_t);
void dsytrd_(const char* uplo, const int* n, double* a, const int* lda, double* d, double* e, double* tau, double* work,
             const int* lwork, int* info, size_t);
void chetrd_(const char* uplo, const int* n, std::complex<float>* a, const int* lda, float* d, float* e,
             std::complex<float>* tau, std::complex<float>* work, const int* lwork, int* info, size_t);
void zhetrd_(const char* uplo, const int* n, std::complex<double>* a, const int* lda, double* d, double* e,
             std::complex<double>* tau, std::complex<double>* work, const int* lwork, int* info, size_t);
void sgtsv_(const int* n, const int* nrhs, float* lower, float* diagonal, float* upper, float* b, const int* ldb,
            int* info);
void dgtsv_(const int* n, const int* nrhs, double* lower, double* diagonal, double* upper, double* b, const int* ldb,
            int* info);
void cgtsv_(const int* n, const int* nrhs, std::complex<float>* lower, std::complex<float>* diagonal,
            std::complex<float>* upper, std::complex<float>* b, const int* ldb, int* info);
void zgtsv_(const int* n, const int* nrhs, std::complex<double>* lower, std::complex<double>* diagonal,
            std::complex<double>* upper, std::complex<double>* b, const int* ldb, int* info);
}

namespace meshd::kernels::lapack {

/// Cholesky factor in place.
inline int potrf(char uplo, int n, float* a, int lda) {
  int info = 0;
  spotrf_(&uplo, &n, a, &lda, &info, 1);
  return info;
}
inline int potrf(char uplo, int n, double* a, int lda) {
  int info = 0;
  dpotrf_(&uplo, &n, a, &lda, &info, 1);
  return info;
}
inline int potrf(char uplo, int n, std::complex<float>* a, int lda) {
  int info = 0;
  cpotrf_(&uplo, &n, a, &lda, &info, 1);
  return info;
}
inline int potrf(char uplo, int n, std::complex<double>* a, int lda) {
  int info = 0;
  zpotrf_(&uplo, &n, a, &lda, &info, 1);
  return info;
}

/// LU factors in place.
inline int getrf(int m, int n, float* a, int lda, int* pivots) {
  int info = 0;
  sgetrf_(&m, &n, a, &lda, pivots, &info);
  return info;
}
inline int getrf(int m, int n, double* a, int lda, int* pivots) {
  int info = 0;
  dgetrf_(&m, &n, a, &lda, pivots, &info);
  return info;
}
inline int getrf(int m, int n, std::complex<float>* a, int lda, int* pivots) {
  int info = 0;
  cgetrf_(&m, &n, a, &lda, pivots, &info);
  return info;
}
inline int getrf(int m, int n, std::complex<double>* a, int lda, int* pivots) {
  int info = 0;
  zgetrf_(&m, &n, a, &lda, pivots, &info);
  return info;
}

/// QR factors in place: R, and reflectors below it.
inline int geqrf(int m, int n, float* a, int lda, float* tau, float* work, int lwork) {
  int info = 0;
  sgeqrf_(&m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int geqrf(int m, int n, double* a, int lda, double* tau, double* work, int lwork) {
  int info = 0;
  dgeqrf_(&m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int geqrf(int m, int n, std::complex<float>* a, int lda, std::complex<float>* tau, std::complex<float>* work,
                 int lwork) {
  int info = 0;
  cgeqrf_(&m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int geqrf(int m, int n, std::complex<double>* a, int lda, std::complex<double>* tau, std::complex<double>* work,
                 int lwork) {
  int info = 0;
  zgeqrf_(&m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}

/// Columns of Q from reflectors.
inline int orgqr(int m, int n, int k, float* a, int lda, const float* tau, float* work, int lwork) {
  int info = 0;
  sorgqr_(&m, &n, &k, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int orgqr(int m, int n, int k, double* a, int lda, const double* tau, double* work, int lwork) {
  int info = 0;
  dorgqr_(&m, &n, &k, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int orgqr(int m, int n, int k, std::complex<float>* a, int lda, const std::complex<float>* tau,
                 std::complex<float>* work, int lwork) {
  int info = 0;
  cungqr_(&m, &n, &k, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int orgqr(int m, int n, int k, std::complex<double>* a, int lda, const std::complex<double>* tau,
                 std::complex<double>* work, int lwork) {
  int info = 0;
  zungqr_(&m, &n, &k, a, &lda, tau, work, &lwork, &info);
  return info;
}

/// c times Q from reflectors.
inline int ormqr(char side, char trans, int m, int n, int k, const float* a, int lda, const float* tau, float* c,
                 int ldc, float* work, int lwork) {
  int info = 0;
  sormqr_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, &info, 1, 1);
  return info;
}
inline int ormqr(char side, char trans, int m, int n, int k, const double* a, int lda, const double* tau, double* c,
                 int ldc, double* work, int lwork) {
  int info = 0;
  dormqr_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, &info, 1, 1);
  return info;
}
inline int ormqr(char side, char trans, int m, int n, int k, const std::complex<float>* a, int lda,
                 const std::complex<float>* tau, std::complex<float>* c, int ldc, std::complex<float>* work,
                 int lwork) {
  int info = 0;
  cunmqr_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, &info, 1, 1);
  return info;
}
inline int ormqr(char side, char trans, int m, int n, int k, const std::complex<double>* a, int lda,
                 const std::complex<double>* tau, std::complex<double>* c, int ldc, std::complex<double>* work,
                 int lwork) {
  int info = 0;
  zunmqr_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, &info, 1, 1);
  return info;
}

/// QR factors with column pivots.
inline int geqp3(int m, int n, float* a, int lda, int* pivots, float* tau, float* work, int lwork,
                 [[maybe_unused]] float* rwork) {
  int info = 0;
  sgeqp3_(&m, &n, a, &lda, pivots, tau, work, &lwork, &info);
  return info;
}
inline int geqp3(int m, int n, double* a, int lda, int* pivots, double* tau, double* work, int lwork,
                 [[maybe_unused]] double* rwork) {
  int info = 0;
  dgeqp3_(&m, &n, a, &lda, pivots, tau, work, &lwork, &info);
  return info;
}
inline int geqp3(int m, int n, std::complex<float>* a, int lda, int* pivots, std::complex<float>* tau,
                 std::complex<float>* work, int lwork, [[maybe_unused]] float* rwork) {
  int info = 0;
  cgeqp3_(&m, &n, a, &lda, pivots, tau, work, &lwork, rwork, &info);
  return info;
}
inline int geqp3(int m, int n, std::complex<double>* a, int lda, int* pivots, std::complex<double>* tau,
                 std::complex<double>* work, int lwork, [[maybe_unused]] double* rwork) {
  int info = 0;
  zgeqp3_(&m, &n, a, &lda, pivots, tau, work, &lwork, rwork, &info);
  return info;
}

/// Eigenvalues and vectors of a symmetric matrix.
inline int syevd(char job, char uplo, int n, float* a, int lda, float* w, float* work, int lwork,
                 [[maybe_unused]] float* rwork, [[maybe_unused]] int lrwork, int* iwork, int liwork) {
  int info = 0;
  ssyevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, &info, 1, 1);
  return info;
}
inline int syevd(char job, char uplo, int n, double* a, int lda, double* w, double* work, int lwork,
                 [[maybe_unused]] double* rwork, [[maybe_unused]] int lrwork, int* iwork, int liwork) {
  int info = 0;
  dsyevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, &info, 1, 1);
  return info;
}
inline int syevd(char job, char uplo, int n, std::complex<float>* a, int lda, float* w, std::complex<float>* work,
                 int lwork, [[maybe_unused]] float* rwork, [[maybe_unused]] int lrwork, int* iwork, int liwork) {
  int info = 0;
  cheevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);
  return info;
}
inline int syevd(char job, char uplo, int n, std::complex<double>* a, int lda, double* w, std::complex<double>* work,
                 int lwork, [[maybe_unused]] double* rwork, [[maybe_unused]] int lrwork, int* iwork, int liwork) {
  int info = 0;
  zheevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);
  return info;
}

/// Singular values by divide and conquer.
inline int gesdd(char job, int m, int n, float* a, int lda, float* s, float* u, int ldu, float* vt, int ldvt,
                 float* work, int lwork, [[maybe_unused]] float* rwork, int* iwork) {
  int info = 0;
  sgesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, &info, 1);
  return info;
}
inline int gesdd(char job, int m, int n, double* a, int lda, double* s, double* u, int ldu, double* vt, int ldvt,
                 double* work, int lwork, [[maybe_unused]] double* rwork, int* iwork) {
  int info = 0;
  dgesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, &info, 1);
  return info;
}
inline int gesdd(char job, int m, int n, std::complex<float>* a, int lda, float* s, std::complex<float>* u, int ldu,
                 std::complex<float>* vt, int ldvt, std::complex<float>* work, int lwork, [[maybe_unused]] float* rwork,
                 int* iwork) {
  int info = 0;
  cgesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, iwork, &info, 1);
  return info;
}
inline int gesdd(char job, int m, int n, std::complex<double>* a, int lda, double* s, std::complex<double>* u, int ldu,
                 std::complex<double>* vt, int ldvt, std::complex<double>* work, int lwork,
                 [[maybe_unused]] double* rwork, int* iwork) {
  int info = 0;
  zgesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, iwork, &info, 1);
  return info;
}

/// Singular values by QR iteration.
inline int gesvd(char job_u, char job_vt, int m, int n, float* a, int lda, float* s, float* u, int ldu, float* vt,
                 int ldvt, float* work, int lwork, [[maybe_unused]] float* rwork) {
  int info = 0;
  sgesvd_(&job_u, &job_vt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, &info, 1, 1);
  return info;
}
inline int gesvd(char job_u, char job_vt, int m, int n, double* a, int lda, double* s, double* u, int ldu, double* vt,
                 int ldvt, double* work, int lwork, [[maybe_unused]] double* rwork) {
  int info = 0;
  dgesvd_(&job_u, &job_vt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, &info, 1, 1);
  return info;
}
inline int gesvd(char job_u, char job_vt, int m, int n, std::complex<float>* a, int lda, float* s,
                 std::complex<float>* u, int ldu, std::complex<float>* vt, int ldvt, std::complex<float>* work,
                 int lwork, [[maybe_unused]] float* rwork) {
  int info = 0;
  cgesvd_(&job_u, &job_vt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, &info, 1, 1);
  return info;
}
inline int gesvd(char job_u, char job_vt, int m, int n, std::complex<double>* a, int lda, double* s,
                 std::complex<double>* u, int ldu, std::complex<double>* vt, int ldvt, std::complex<double>* work,
                 int lwork, [[maybe_unused]] double* rwork) {
  int info = 0;
  zgesvd_(&job_u, &job_vt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, &info, 1, 1);
  return info;
}

/// Eigenvalues and vectors.
inline int geev(char job_left, char job_right, int n, float* a, int lda, float* w, [[maybe_unused]] float* wi,
                float* left, int ldl, float* right, int ldr, float* work, int lwork, [[maybe_unused]] float* rwork) {
  int info = 0;
  sgeev_(&job_left, &job_right, &n, a, &lda, w, wi, left, &ldl, right, &ldr, work, &lwork, &info, 1, 1);
  return info;
}
inline int geev(char job_left, char job_right, int n, double* a, int lda, double* w, [[maybe_unused]] double* wi,
                double* left, int ldl, double* right, int ldr, double* work, int lwork,
                [[maybe_unused]] double* rwork) {
  int info = 0;
  dgeev_(&job_left, &job_right, &n, a, &lda, w, wi, left, &ldl, right, &ldr, work, &lwork, &info, 1, 1);
  return info;
}
inline int geev(char job_left, char job_right, int n, std::complex<float>* a, int lda, std::complex<float>* w,
                [[maybe_unused]] float* wi, std::complex<float>* left, int ldl, std::complex<float>* right, int ldr,
                std::complex<float>* work, int lwork, [[maybe_unused]] float* rwork) {
  int info = 0;
  cgeev_(&job_left, &job_right, &n, a, &lda, w, left, &ldl, right, &ldr, work, &lwork, rwork, &info, 1, 1);
  return info;
}
inline int geev(char job_left, char job_right, int n, std::complex<double>* a, int lda, std::complex<double>* w,
                [[maybe_unused]] double* wi, std::complex<double>* left, int ldl, std::complex<double>* right, int ldr,
                std::complex<double>* work, int lwork, [[maybe_unused]] double* rwork) {
  int info = 0;
  zgeev_(&job_left, &job_right, &n, a, &lda, w, left, &ldl, right, &ldr, work, &lwork, rwork, &info, 1, 1);
  return info;
}

/// Schur form.
inline int gees(char job, char sort, int n, float* a, int lda, int* selected, float* w, [[maybe_unused]] float* wi,
                float* vectors, int ldv, float* work, int lwork, [[maybe_unused]] float* rwork, int* bwork) {
  int info = 0;
  sgees_(&job, &sort, nullptr, &n, a, &lda, selected, w, wi, vectors, &ldv, work, &lwork, bwork, &info, 1, 1);
  return info;
}
inline int gees(char job, char sort, int n, double* a, int lda, int* selected, double* w, [[maybe_unused]] double* wi,
                double* vectors, int ldv, double* work, int lwork, [[maybe_unused]] double* rwork, int* bwork) {
  int info = 0;
  dgees_(&job, &sort, nullptr, &n, a, &lda, selected, w, wi, vectors, &ldv, work, &lwork, bwork, &info, 1, 1);
  return info;
}
inline int gees(char job, char sort, int n, std::complex<float>* a, int lda, int* selected, std::complex<float>* w,
                [[maybe_unused]] float* wi, std::complex<float>* vectors, int ldv, std::complex<float>* work, int lwork,
                [[maybe_unused]] float* rwork, int* bwork) {
  int info = 0;
  cgees_(&job, &sort, nullptr, &n, a, &lda, selected, w, vectors, &ldv, work, &lwork, rwork, bwork, &info, 1, 1);
  return info;
}
inline int gees(char job, char sort, int n, std::complex<double>* a, int lda, int* selected, std::complex<double>* w,
                [[maybe_unused]] double* wi, std::complex<double>* vectors, int ldv, std::complex<double>* work,
                int lwork, [[maybe_unused]] double* rwork, int* bwork) {
  int info = 0;
  zgees_(&job, &sort, nullptr, &n, a, &lda, selected, w, vectors, &ldv, work, &lwork, rwork, bwork, &info, 1, 1);
  return info;
}

/// Hessenberg form.
inline int gehrd(int n, int low, int high, float* a, int lda, float* tau, float* work, int lwork) {
  int info = 0;
  sgehrd_(&n, &low, &high, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int gehrd(int n, int low, int high, double* a, int lda, double* tau, double* work, int lwork) {
  int info = 0;
  dgehrd_(&n, &low, &high, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int gehrd(int n, int low, int high, std::complex<float>* a, int lda, std::complex<float>* tau,
                 std::complex<float>* work, int lwork) {
  int info = 0;
  cgehrd_(&n, &low, &high, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int gehrd(int n, int low, int high, std::complex<double>* a, int lda, std::complex<double>* tau,
                 std::complex<double>* work, int lwork) {
  int info = 0;
  zgehrd_(&n, &low, &high, a, &lda, tau, work, &lwork, &info);
  return info;
}

/// Tridiagonal form of a symmetric matrix.
inline int sytrd(char uplo, int n, float* a, int lda, float* d, float* e, float* tau, float* work, int lwork) {
  int info = 0;
  ssytrd_(&uplo, &n, a, &lda, d, e, tau, work, &lwork, &info, 1);
  return info;
}
inline int sytrd(char uplo, int n, double* a, int lda, double* d, double* e, double* tau, double* work, int lwork) {
  int info = 0;
  dsytrd_(&uplo, &n, a, &lda, d, e, tau, work, &lwork, &info, 1);
  return info;
}
inline int sytrd(char uplo, int n, std::complex<float>* a, int lda, float* d, float* e, std::complex<float>* tau,
                 std::complex<float>* work, int lwork) {
  int info = 0;
  chetrd_(&uplo, &n, a, &lda, d, e, tau, work, &lwork, &info, 1);
  return info;
}
inline int sytrd(char uplo, int n, std::complex<double>* a, int lda, double* d, double* e, std::complex<double>* tau,
                 std::complex<double>* work, int lwork) {
  int info = 0;
  zhetrd_(&uplo, &n, a, &lda, d, e, tau, work, &lwork, &info, 1);
  return info;
}

/// Solution of a tridiagonal system.
inline int gtsv(int n, int nrhs, float* lower, float* diagonal, float* upper, float* b, int ldb) {
  int info = 0;
  sgtsv_(&n, &nrhs, lower, diagonal, upper, b, &ldb, &info);
  return info;
}
inline int gtsv(int n, int nrhs, double* lower, double* diagonal, double* upper, double* b, int ldb) {
  int info = 0;
  dgtsv_(&n, &nrhs, lower, diagonal, upper, b, &ldb, &info);
  return info;
}
inline int gtsv(int n, int nrhs, std::complex<float>* lower, std::complex<float>* diagonal, std::complex<float>* upper,
                std::complex<float>* b, int ldb) {
  int info = 0;
  cgtsv_(&n, &nrhs, lower, diagonal, upper, b, &ldb, &info);
  return info;
}
inline int gtsv(int n, int nrhs, std::complex<double>* lower, std::complex<double>* diagonal,
                std::complex<double>* upper, std::complex<double>* b, int ldb) {
  int info = 0;
  zgtsv_(&n, &nrhs, lower, diagonal, upper, b, &ldb, &info);
  return info;
}

}  // namespace meshd::kernels::lapack
