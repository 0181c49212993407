#include <type_traits>

#include "service/kernels/elementwise/functors/integer_functors.h"
#include "service/kernels/fold/fold_loops.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

/// Sums, products and bits of two's complement numbers do not depend on their sign: one loop for each width.
template <class Unsigned>
FoldKernels find_unsigned(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
      return fold_loops<IntAdd<Unsigned>, Unsigned, Unsigned>();
    case ScalarOp::kMultiply:
      return fold_loops<IntMultiply<Unsigned>, Unsigned, Unsigned>();
    case ScalarOp::kAnd:
      return fold_loops<IntAnd<Unsigned>, Unsigned, Unsigned>();
    case ScalarOp::kOr:
      return fold_loops<IntOr<Unsigned>, Unsigned, Unsigned>();
    case ScalarOp::kXor:
      return fold_loops<IntXor<Unsigned>, Unsigned, Unsigned>();
    default:
      return {};
  }
}

template <class T>
FoldKernels find_integer(ScalarOp op) {
  switch (op) {
    case ScalarOp::kMaximum:
      return fold_loops<IntMaximum<T>, T, T>();
    case ScalarOp::kMinimum:
      return fold_loops<IntMinimum<T>, T, T>();
    default:
      return find_unsigned<std::make_unsigned_t<T>>(op);
  }
}

/// Bytes that are 0 or 1: sums are or, products are and.
FoldKernels find_bool(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
    case ScalarOp::kMaximum:
      return find_unsigned<uint8_t>(ScalarOp::kOr);
    case ScalarOp::kMultiply:
    case ScalarOp::kMinimum:
      return find_unsigned<uint8_t>(ScalarOp::kAnd);
    default:
      return find_unsigned<uint8_t>(op);
  }
}

}  // namespace

FoldKernels find_integer_fold(ScalarOp op, DType value) {
  if (value == DType::kBool) return find_bool(op);
  if (tensor::row(value).bits < 8) return {};  // sums wrap around at fewer bits than the byte has
  return tensor::with_integer(
      value, [op]<typename T>(T) { return find_integer<T>(op); }, [] { return FoldKernels{}; });
}

}  // namespace meshd::kernels
