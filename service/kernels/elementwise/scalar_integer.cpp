#include "service/kernels/elementwise/float_functors.h"
#include "service/kernels/elementwise/integer_functors.h"
#include "service/kernels/elementwise/lane_loop.h"
#include "service/kernels/elementwise/scalar_tables.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

template <template <class> class F, class T>
ScalarKernel unary() {
  return vector_kernel<F<T>, T, T>();
}
template <template <class> class F, class T>
ScalarKernel binary() {
  return vector_kernel<F<T>, T, T, T>();
}
template <template <class> class F, class T>
ScalarKernel compare() {
  return vector_kernel<F<T>, uint8_t, T, T>();
}

template <class T>
ScalarKernel find_compare(ScalarOp op) {
  switch (op) {
    case ScalarOp::kCompareEq:
    case ScalarOp::kTotalEq:
      return compare<CompareEq, T>();
    case ScalarOp::kCompareNe:
    case ScalarOp::kTotalNe:
      return compare<CompareNe, T>();
    case ScalarOp::kCompareLt:
    case ScalarOp::kTotalLt:
      return compare<CompareLt, T>();
    case ScalarOp::kCompareLe:
    case ScalarOp::kTotalLe:
      return compare<CompareLe, T>();
    case ScalarOp::kCompareGt:
    case ScalarOp::kTotalGt:
      return compare<CompareGt, T>();
    case ScalarOp::kCompareGe:
    case ScalarOp::kTotalGe:
      return compare<CompareGe, T>();
    default:
      return nullptr;
  }
}

template <class T>
ScalarKernel find_integer(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAbs:
      return unary<IntAbsolute, T>();
    case ScalarOp::kNegate:
      return unary<IntNegate, T>();
    case ScalarOp::kSign:
      return unary<IntSign, T>();
    case ScalarOp::kNot:
      return unary<IntNot, T>();
    case ScalarOp::kPopcnt:
      return unary<PopulationCount, T>();
    case ScalarOp::kClz:
      return unary<CountLeadingZeros, T>();
    case ScalarOp::kSquare:
      return unary<IntSquare, T>();
    case ScalarOp::kAdd:
      return binary<IntAdd, T>();
    case ScalarOp::kSubtract:
      return binary<IntSubtract, T>();
    case ScalarOp::kMultiply:
      return binary<IntMultiply, T>();
    case ScalarOp::kDivide:
      return call_kernel<IntDivide<T>, T, T, T>();
    case ScalarOp::kRemainder:
      return call_kernel<IntRemainder<T>, T, T, T>();
    case ScalarOp::kPower:
      return call_kernel<IntPower<T>, T, T, T>();
    case ScalarOp::kMaximum:
      return binary<IntMaximum, T>();
    case ScalarOp::kMinimum:
      return binary<IntMinimum, T>();
    case ScalarOp::kAnd:
      return binary<IntAnd, T>();
    case ScalarOp::kOr:
      return binary<IntOr, T>();
    case ScalarOp::kXor:
      return binary<IntXor, T>();
    case ScalarOp::kShiftLeft:
      return binary<ShiftLeft, T>();
    case ScalarOp::kShiftRightArithmetic:
      return binary<ShiftRightArithmetic, T>();
    case ScalarOp::kShiftRightLogical:
      return binary<ShiftRightLogical, T>();
    case ScalarOp::kClamp:
      return vector_kernel<IntClamp<T>, T, T, T, T>();
    default:
      return find_compare<T>(op);
  }
}

ScalarKernel find_bool(ScalarOp op) {
  switch (op) {
    case ScalarOp::kNot:
      return vector_kernel<BoolNot, uint8_t, uint8_t>();
    case ScalarOp::kAdd:
    case ScalarOp::kMaximum:
    case ScalarOp::kOr:
      return binary<IntOr, uint8_t>();
    case ScalarOp::kMultiply:
    case ScalarOp::kMinimum:
    case ScalarOp::kAnd:
      return binary<IntAnd, uint8_t>();
    case ScalarOp::kXor:
      return binary<IntXor, uint8_t>();
    case ScalarOp::kClamp:
      return vector_kernel<IntClamp<uint8_t>, uint8_t, uint8_t, uint8_t, uint8_t>();
    default:
      return find_compare<uint8_t>(op);
  }
}

}  // namespace

ScalarKernel find_integer_kernel(ScalarOp op, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return find_bool(op);
    case DType::kInt8:
      return find_integer<int8_t>(op);
    case DType::kInt16:
      return find_integer<int16_t>(op);
    case DType::kInt32:
      return find_integer<int32_t>(op);
    case DType::kInt64:
      return find_integer<int64_t>(op);
    case DType::kUint8:
      return find_integer<uint8_t>(op);
    case DType::kUint16:
      return find_integer<uint16_t>(op);
    case DType::kUint32:
      return find_integer<uint32_t>(op);
    case DType::kUint64:
      return find_integer<uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace meshd::kernels
