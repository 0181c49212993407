// The conversions that are loops of their own, one source file for each kind of operand. Private to this folder.
#pragma once

#include "service/kernels/elementwise/convert/convert_functors.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// In -> `out`, or null when there is no single loop for it.
template <class In>
ScalarKernel find_direct_convert(tensor::DType out) {
  using tensor::DType;
  switch (out) {
    case DType::kBool:
      return vector_kernel<ConvertTo<BoolByte, In>, BoolByte, In>();
    case DType::kInt8:
      return vector_kernel<ConvertTo<int8_t, In>, int8_t, In>();
    case DType::kInt16:
      return vector_kernel<ConvertTo<int16_t, In>, int16_t, In>();
    case DType::kInt32:
      return vector_kernel<ConvertTo<int32_t, In>, int32_t, In>();
    case DType::kInt64:
      return vector_kernel<ConvertTo<int64_t, In>, int64_t, In>();
    case DType::kUint8:
      return vector_kernel<ConvertTo<uint8_t, In>, uint8_t, In>();
    case DType::kUint16:
      return vector_kernel<ConvertTo<uint16_t, In>, uint16_t, In>();
    case DType::kUint32:
      return vector_kernel<ConvertTo<uint32_t, In>, uint32_t, In>();
    case DType::kUint64:
      return vector_kernel<ConvertTo<uint64_t, In>, uint64_t, In>();
    case DType::kBfloat16:
      return vector_kernel<ConvertTo<Bfloat16Bits, In>, Bfloat16Bits, In>();
    case DType::kFloat32:
      return vector_kernel<ConvertTo<float, In>, float, In>();
    case DType::kFloat64:
      return vector_kernel<ConvertTo<double, In>, double, In>();
    default:
      return nullptr;
  }
}

ScalarKernel find_convert_from_float(tensor::DType in, tensor::DType out);
ScalarKernel find_convert_from_signed(tensor::DType in, tensor::DType out);
ScalarKernel find_convert_from_unsigned(tensor::DType in, tensor::DType out);

}  // namespace meshd::kernels
