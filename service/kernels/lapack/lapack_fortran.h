// LAPACK's routines (its own header declares them, OpenBLAS has them) as one function each for the four element types:
// arguments by value, `info` as the result. Real and complex routines take the same arguments; what only the other kind
// has is ignored. Matrices are column by column. Workspaces are the caller's; with lwork -1 the best size is left in
// work[0]. Any thread.
#pragma once

#include <complex>
#include <cstddef>
#include <type_traits>

// The header's own choice, C's _Complex, is no type of C++.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapack.h>

namespace meshd::kernels::lapack {

/// The real type of T's parts.
template <typename T>
struct RealOf {
  using Type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <typename T>
using Real = typename RealOf<T>::Type;
template <typename T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

namespace fortran {

/// That of the four functions whose elements are T.
template <typename T, typename S, typename D, typename C, typename Z>
constexpr auto of(S* s, D* d, C* c, Z* z) {
  if constexpr (std::is_same_v<T, float>) {
    return s;
  } else if constexpr (std::is_same_v<T, double>) {
    return d;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return c;
  } else {
    static_assert(std::is_same_v<T, std::complex<double>>);
    return z;
  }
}

/// Fortran takes addresses.
template <typename T>
auto address(T& argument) {
  if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>) {
    return argument;
  } else {
    return &argument;
  }
}

/// routine(arguments..., &info, lengths...): Fortran compilers pass the length of every string last.
template <typename Routine, typename... Arguments>
int call(Routine* routine, Arguments... arguments) {
  int info = 0;
  constexpr int kStrings = (0 + ... + static_cast<int>(std::is_same_v<Arguments, char>));
  if constexpr (kStrings == 0) {
    routine(address(arguments)..., &info);
  } else if constexpr (kStrings == 1) {
    routine(address(arguments)..., &info, size_t{1});
  } else {
    static_assert(kStrings == 2);
    routine(address(arguments)..., &info, size_t{1}, size_t{1});
  }
  return info;
}

}  // namespace fortran

/// A parameter that does not decide what T is.
template <typename T>
using Same = std::type_identity_t<T>;

/// Cholesky factor in place.
template <typename T>
int potrf(char uplo, int n, T* a, int lda) {
  return fortran::call(fortran::of<T>(spotrf_, dpotrf_, cpotrf_, zpotrf_), uplo, n, a, lda);
}

/// LU factors in place.
template <typename T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  return fortran::call(fortran::of<T>(sgetrf_, dgetrf_, cgetrf_, zgetrf_), m, n, a, lda, pivots);
}

/// QR factors in place: R, and reflectors below it.
template <typename T>
int geqrf(int m, int n, T* a, int lda, Same<T>* tau, Same<T>* work, int lwork) {
  return fortran::call(fortran::of<T>(sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_), m, n, a, lda, tau, work, lwork);
}

/// Columns of Q from reflectors.
template <typename T>
int orgqr(int m, int n, int k, T* a, int lda, const Same<T>* tau, Same<T>* work, int lwork) {
  return fortran::call(fortran::of<T>(sorgqr_, dorgqr_, cungqr_, zungqr_), m, n, k, a, lda, tau, work, lwork);
}

/// c times Q from reflectors.
template <typename T>
int ormqr(char side, char trans, int m, int n, int k, const Same<T>* a, int lda, const Same<T>* tau, T* c, int ldc,
          Same<T>* work, int lwork) {
  return fortran::call(fortran::of<T>(sormqr_, dormqr_, cunmqr_, zunmqr_), side, trans, m, n, k, a, lda, tau, c, ldc,
                       work, lwork);
}

/// QR factors with column pivots.
template <typename T>
int geqp3(int m, int n, T* a, int lda, int* pivots, Same<T>* tau, Same<T>* work, int lwork,
          [[maybe_unused]] Real<T>* rwork) {
  const auto routine = fortran::of<T>(sgeqp3_, dgeqp3_, cgeqp3_, zgeqp3_);
  if constexpr (kIsComplex<T>) {
    return fortran::call(routine, m, n, a, lda, pivots, tau, work, lwork, rwork);
  } else {
    return fortran::call(routine, m, n, a, lda, pivots, tau, work, lwork);
  }
}

/// Eigenvalues and vectors of a symmetric matrix.
template <typename T>
int syevd(char job, char uplo, int n, T* a, int lda, Real<T>* w, Same<T>* work, int lwork,
          [[maybe_unused]] Real<T>* rwork, [[maybe_unused]] int lrwork, int* iwork, int liwork) {
  const auto routine = fortran::of<T>(ssyevd_, dsyevd_, cheevd_, zheevd_);
  if constexpr (kIsComplex<T>) {
    return fortran::call(routine, job, uplo, n, a, lda, w, work, lwork, rwork, lrwork, iwork, liwork);
  } else {
    return fortran::call(routine, job, uplo, n, a, lda, w, work, lwork, iwork, liwork);
  }
}

/// Singular values by divide and conquer.
template <typename T>
int gesdd(char job, int m, int n, T* a, int lda, Real<T>* s, Same<T>* u, int ldu, Same<T>* vt, int ldvt, Same<T>* work,
          int lwork, [[maybe_unused]] Real<T>* rwork, int* iwork) {
  const auto routine = fortran::of<T>(sgesdd_, dgesdd_, cgesdd_, zgesdd_);
  if constexpr (kIsComplex<T>) {
    return fortran::call(routine, job, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, rwork, iwork);
  } else {
    return fortran::call(routine, job, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork);
  }
}

/// Singular values by QR iteration.
template <typename T>
int gesvd(char job_u, char job_vt, int m, int n, T* a, int lda, Real<T>* s, Same<T>* u, int ldu, Same<T>* vt, int ldvt,
          Same<T>* work, int lwork, [[maybe_unused]] Real<T>* rwork) {
  const auto routine = fortran::of<T>(sgesvd_, dgesvd_, cgesvd_, zgesvd_);
  if constexpr (kIsComplex<T>) {
    return fortran::call(routine, job_u, job_vt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, rwork);
  } else {
    return fortran::call(routine, job_u, job_vt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork);
  }
}

/// Eigenvalues and vectors. Real matrices: real and imaginary parts apart, in `w` and `wi`.
template <typename T>
int geev(char job_left, char job_right, int n, T* a, int lda, Same<T>* w, [[maybe_unused]] Real<T>* wi, Same<T>* left,
         int ldl, Same<T>* right, int ldr, Same<T>* work, int lwork, [[maybe_unused]] Real<T>* rwork) {
  const auto routine = fortran::of<T>(sgeev_, dgeev_, cgeev_, zgeev_);
  if constexpr (kIsComplex<T>) {
    return fortran::call(routine, job_left, job_right, n, a, lda, w, left, ldl, right, ldr, work, lwork, rwork);
  } else {
    return fortran::call(routine, job_left, job_right, n, a, lda, w, wi, left, ldl, right, ldr, work, lwork);
  }
}

/// Schur form; nothing is sorted. Real matrices: eigenvalues as geev has them.
template <typename T>
int gees(char job, char sort, int n, T* a, int lda, int* selected, Same<T>* w, [[maybe_unused]] Real<T>* wi,
         Same<T>* vectors, int ldv, Same<T>* work, int lwork, [[maybe_unused]] Real<T>* rwork, int* bwork) {
  const auto routine = fortran::of<T>(sgees_, dgees_, cgees_, zgees_);
  if constexpr (kIsComplex<T>) {
    return fortran::call(routine, job, sort, nullptr, n, a, lda, selected, w, vectors, ldv, work, lwork, rwork, bwork);
  } else {
    return fortran::call(routine, job, sort, nullptr, n, a, lda, selected, w, wi, vectors, ldv, work, lwork, bwork);
  }
}

/// Hessenberg form.
template <typename T>
int gehrd(int n, int low, int high, T* a, int lda, Same<T>* tau, Same<T>* work, int lwork) {
  return fortran::call(fortran::of<T>(sgehrd_, dgehrd_, cgehrd_, zgehrd_), n, low, high, a, lda, tau, work, lwork);
}

/// Tridiagonal form of a symmetric matrix.
template <typename T>
int sytrd(char uplo, int n, T* a, int lda, Real<T>* d, Real<T>* e, Same<T>* tau, Same<T>* work, int lwork) {
  return fortran::call(fortran::of<T>(ssytrd_, dsytrd_, chetrd_, zhetrd_), uplo, n, a, lda, d, e, tau, work, lwork);
}

/// Solution of a tridiagonal system.
template <typename T>
int gtsv(int n, int nrhs, T* lower, Same<T>* diagonal, Same<T>* upper, Same<T>* b, int ldb) {
  return fortran::call(fortran::of<T>(sgtsv_, dgtsv_, cgtsv_, zgtsv_), n, nrhs, lower, diagonal, upper, b, ldb);
}

}  // namespace meshd::kernels::lapack
