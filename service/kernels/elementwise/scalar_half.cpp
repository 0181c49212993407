// 16-bit floats: the ops that are worth loops of their own because they need no more than a conversion around one
// instruction.
#include "service/kernels/elementwise/float_functors.h"
#include "service/kernels/elementwise/lane_loop.h"
#include "service/kernels/elementwise/scalar_tables.h"
#include "service/tensor/half.h"

namespace meshd::kernels {
namespace {

/// An op of float on bfloat16 operands, its result rounded once.
template <class Op>
struct InBfloat16 {
  template <class... A>
  static uint16_t apply(A... a) {
    return tensor::float_to_bfloat16(Op::apply(tensor::bfloat16_to_float(a)...));
  }
};
template <class Op>
struct CompareBfloat16 {
  static uint8_t apply(uint16_t a, uint16_t b) {
    return Op::apply(tensor::bfloat16_to_float(a), tensor::bfloat16_to_float(b));
  }
};

template <template <class> class F>
ScalarKernel unary() {
  return vector_kernel<InBfloat16<F<float>>, uint16_t, uint16_t>();
}
template <template <class> class F>
ScalarKernel binary() {
  return vector_kernel<InBfloat16<F<float>>, uint16_t, uint16_t, uint16_t>();
}
template <template <class> class F>
ScalarKernel compare() {
  return vector_kernel<CompareBfloat16<F<float>>, uint8_t, uint16_t, uint16_t>();
}

/// The neighbour among 16-bit floats, whose codes are in the order of their magnitudes; `kInfinity` is the code of
/// infinity.
template <uint32_t kInfinity>
struct NextAfter16 {
  static uint16_t apply(uint16_t from, uint16_t to) {
    const uint32_t from_magnitude = from & 0x7FFFU;
    const uint32_t to_magnitude = to & 0x7FFFU;
    if (from_magnitude > kInfinity || to_magnitude > kInfinity) {
      return static_cast<uint16_t>(kInfinity | 0x40U | 0x200U);
    }
    if (from == to || (from_magnitude | to_magnitude) == 0) return to;
    if (from_magnitude == 0) return static_cast<uint16_t>((to & 0x8000U) | 1U);
    const bool shrinks = from_magnitude > to_magnitude || ((from ^ to) & 0x8000U) != 0;
    return static_cast<uint16_t>(shrinks ? from - 1U : from + 1U);
  }
};

}  // namespace

ScalarKernel find_bfloat16_kernel(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAbs:
      return unary<Absolute>();
    case ScalarOp::kNegate:
      return unary<Negate>();
    case ScalarOp::kSqrt:
      return unary<Sqrt>();
    case ScalarOp::kSquare:
      return unary<Square>();
    case ScalarOp::kAdd:
      return binary<Add>();
    case ScalarOp::kSubtract:
      return binary<Subtract>();
    case ScalarOp::kMultiply:
      return binary<Multiply>();
    case ScalarOp::kDivide:
      return binary<Divide>();
    case ScalarOp::kMaximum:
      return binary<Maximum>();
    case ScalarOp::kMinimum:
      return binary<Minimum>();
    case ScalarOp::kCompareEq:
      return compare<CompareEq>();
    case ScalarOp::kCompareNe:
      return compare<CompareNe>();
    case ScalarOp::kCompareLt:
      return compare<CompareLt>();
    case ScalarOp::kCompareLe:
      return compare<CompareLe>();
    case ScalarOp::kCompareGt:
      return compare<CompareGt>();
    case ScalarOp::kCompareGe:
      return compare<CompareGe>();
    default:
      return nullptr;
  }
}

ScalarKernel find_half_next_after_kernel(tensor::DType dtype) {
  if (dtype == tensor::DType::kBfloat16) return call_kernel<NextAfter16<0x7F80>, uint16_t, uint16_t, uint16_t>();
  return call_kernel<NextAfter16<0x7C00>, uint16_t, uint16_t, uint16_t>();
}

}  // namespace meshd::kernels
