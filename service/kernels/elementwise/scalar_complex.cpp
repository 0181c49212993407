#include "service/kernels/elementwise/complex_functors.h"
#include "service/kernels/elementwise/lane_loop.h"
#include "service/kernels/elementwise/scalar_tables.h"

namespace meshd::kernels {
namespace {

using Complex = std::complex<double>;

template <class T, Complex (*F)(const Complex&)>
struct ThroughDouble {
  static ComplexPair<T> apply(ComplexPair<T> z) { return from_double<T>(F(to_double(z))); }
};
template <class T>
struct ComplexPower {
  static ComplexPair<T> apply(ComplexPair<T> a, ComplexPair<T> b) {
    return from_double<T>(complex_power(to_double(a), to_double(b)));
  }
};

template <class T, Complex (*F)(const Complex&)>
ScalarKernel function() {
  return call_kernel<ThroughDouble<T, F>, ComplexPair<T>, ComplexPair<T>>();
}
template <template <class> class F, class T>
ScalarKernel unary() {
  return vector_kernel<F<T>, ComplexPair<T>, ComplexPair<T>>();
}
template <template <class> class F, class T>
ScalarKernel part() {
  return vector_kernel<F<T>, T, ComplexPair<T>>();
}
template <template <class> class F, class T>
ScalarKernel binary() {
  return vector_kernel<F<T>, ComplexPair<T>, ComplexPair<T>, ComplexPair<T>>();
}
template <template <class> class F, class T>
ScalarKernel compare() {
  return vector_kernel<F<T>, uint8_t, ComplexPair<T>, ComplexPair<T>>();
}

template <class T>
ScalarKernel find_function(ScalarOp op) {
  switch (op) {
    case ScalarOp::kExp:
      return function<T, std::exp<double>>();
    case ScalarOp::kExpm1:
      return function<T, complex_expm1>();
    case ScalarOp::kLog:
      return function<T, std::log<double>>();
    case ScalarOp::kLog1p:
      return function<T, complex_log1p>();
    case ScalarOp::kSqrt:
      return function<T, std::sqrt<double>>();
    case ScalarOp::kRsqrt:
      return function<T, complex_rsqrt>();
    case ScalarOp::kCbrt:
      return function<T, complex_cbrt>();
    case ScalarOp::kSin:
      return function<T, std::sin<double>>();
    case ScalarOp::kCos:
      return function<T, std::cos<double>>();
    case ScalarOp::kTan:
      return function<T, std::tan<double>>();
    case ScalarOp::kTanh:
      return function<T, std::tanh<double>>();
    case ScalarOp::kLogistic:
      return function<T, complex_logistic>();
    case ScalarOp::kAsin:
      return function<T, std::asin<double>>();
    case ScalarOp::kAcos:
      return function<T, std::acos<double>>();
    case ScalarOp::kAtan:
      return function<T, std::atan<double>>();
    case ScalarOp::kSinh:
      return function<T, std::sinh<double>>();
    case ScalarOp::kCosh:
      return function<T, std::cosh<double>>();
    case ScalarOp::kAsinh:
      return function<T, std::asinh<double>>();
    case ScalarOp::kAcosh:
      return function<T, std::acosh<double>>();
    case ScalarOp::kAtanh:
      return function<T, std::atanh<double>>();
    default:
      return nullptr;
  }
}

template <class T>
ScalarKernel find_complex(ScalarOp op) {
  using Pair = ComplexPair<T>;
  switch (op) {
    case ScalarOp::kAbs:
      return call_kernel<ComplexAbs<T>, T, Pair>();
    case ScalarOp::kSign:
      return call_kernel<ComplexSign<T>, Pair, Pair>();
    case ScalarOp::kNegate:
      return unary<ComplexNegate, T>();
    case ScalarOp::kConj:
      return unary<ComplexConj, T>();
    case ScalarOp::kSquare:
      return unary<ComplexSquare, T>();
    case ScalarOp::kReal:
      return part<ComplexReal, T>();
    case ScalarOp::kImag:
      return part<ComplexImag, T>();
    case ScalarOp::kAdd:
      return binary<ComplexAdd, T>();
    case ScalarOp::kSubtract:
      return binary<ComplexSubtract, T>();
    case ScalarOp::kMultiply:
      return binary<ComplexMultiply, T>();
    case ScalarOp::kDivide:
      return call_kernel<ComplexDivide<T>, Pair, Pair, Pair>();
    case ScalarOp::kPower:
      return call_kernel<ComplexPower<T>, Pair, Pair, Pair>();
    case ScalarOp::kCompareEq:
      return compare<ComplexEq, T>();
    case ScalarOp::kCompareNe:
      return compare<ComplexNe, T>();
    default:
      return find_function<T>(op);
  }
}

}  // namespace

ScalarKernel find_complex_kernel(ScalarOp op, tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::kFloat32:
      return op == ScalarOp::kComplex ? vector_kernel<MakeComplex<float>, ComplexPair<float>, float, float>() : nullptr;
    case tensor::DType::kFloat64:
      return op == ScalarOp::kComplex ? vector_kernel<MakeComplex<double>, ComplexPair<double>, double, double>()
                                      : nullptr;
    case tensor::DType::kComplex64:
      return find_complex<float>(op);
    case tensor::DType::kComplex128:
      return find_complex<double>(op);
    default:
      return nullptr;
  }
}

}  // namespace meshd::kernels
