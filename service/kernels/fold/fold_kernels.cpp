#include "service/kernels/fold/fold_kernels.h"

#include "service/kernels/elementwise/lanes/narrow_lanes.h"
#include "service/kernels/fold/fold_loops.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

DType value_type(DType element) {
  if (is_narrow_float(element)) return DType::kFloat32;
  if (is_narrow_integer(element)) return tensor::is_signed_integer(element) ? DType::kInt8 : DType::kUint8;
  return element;
}

DType accumulator_type(ScalarOp op, DType value) {
  if (op != ScalarOp::kAdd && op != ScalarOp::kMultiply) return value;
  if (value == DType::kFloat32) return DType::kFloat64;
  if (value == DType::kComplex64) return DType::kComplex128;
  return value;
}

ScalarKernel conversion(DType in, DType out) {
  return in == out ? nullptr : find_scalar_kernel(ScalarOp::kConvert, in, out);
}

}  // namespace

std::optional<FoldKernels> find_fold(ScalarOp op, DType element) {
  const DType value = value_type(element);
  const bool inexact = tensor::is_float(value) || tensor::is_complex(value);
  FoldKernels kernels = inexact ? find_float_fold(op, value) : find_integer_fold(op, value);
  if (kernels.start == nullptr) return std::nullopt;
  kernels.value = value;
  kernels.accumulator = accumulator_type(op, value);
  kernels.rounds = inexact && kernels.accumulator == value && (op == ScalarOp::kAdd || op == ScalarOp::kMultiply);
  kernels.widen = conversion(element, value);
  kernels.finish = find_scalar_kernel(ScalarOp::kConvert, kernels.accumulator, element);
  kernels.start_init = find_scalar_kernel(ScalarOp::kConvert, element, kernels.accumulator);
  return kernels;
}

}  // namespace meshd::kernels
