#include <cmath>

#include "service/kernels/elementwise/functors/complex_functors.h"
#include "service/kernels/elementwise/functors/float_functors.h"
#include "service/kernels/fold/fold_loops.h"

namespace meshd::kernels {
namespace {

/// Complex numbers that widen with static_cast, as fold loops require.
template <class T>
struct Pair : ComplexPair<T> {
  Pair() = default;
  Pair(T real, T imaginary) : ComplexPair<T>{real, imaginary} {}
  template <class U>
  explicit Pair(const Pair<U>& from) : ComplexPair<T>{static_cast<T>(from.re), static_cast<T>(from.im)} {}
};
struct PairAdd {
  static Pair<double> apply(const Pair<double>& a, const Pair<double>& b) { return {a.re + b.re, a.im + b.im}; }
};
struct PairMultiply {
  static Pair<double> apply(const Pair<double>& a, const Pair<double>& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};

/// Of levels with FMA: one of the two products of a part is not rounded by itself.
struct PairMultiplyFma {
  static Pair<double> apply(const Pair<double>& a, const Pair<double>& b) {
    return {std::fma(a.re, b.re, -(a.im * b.im)), std::fma(a.re, b.im, a.im * b.re)};
  }
};

template <class T>
FoldKernels find_real(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
      return fold_loops<Add<double>, double, T>();
    case ScalarOp::kMultiply:
      return fold_loops<Multiply<double>, double, T>();
    case ScalarOp::kMaximum:
      return fold_loops<Maximum<T>, T, T>();
    case ScalarOp::kMinimum:
      return fold_loops<Minimum<T>, T, T>();
    default:
      return {};
  }
}

template <class T>
FoldKernels find_complex(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
      return fold_loops<PairAdd, Pair<double>, Pair<T>>();
    case ScalarOp::kMultiply:
      return cpu_level() == CpuLevel::kBase ? fold_loops<PairMultiply, Pair<double>, Pair<T>>()
                                            : fold_loops<PairMultiplyFma, Pair<double>, Pair<T>>();
    default:
      return {};
  }
}

}  // namespace

FoldKernels find_float_fold(ScalarOp op, tensor::DType value) {
  switch (value) {
    case tensor::DType::kFloat32:
      return find_real<float>(op);
    case tensor::DType::kFloat64:
      return find_real<double>(op);
    case tensor::DType::kComplex64:
      return find_complex<float>(op);
    case tensor::DType::kComplex128:
      return find_complex<double>(op);
    default:
      return {};
  }
}

}  // namespace meshd::kernels
