#include "service/kernels/elementwise/scalar_table.h"

namespace meshd::kernels {
ScalarKernel find_integer_kernel(ScalarOp op, tensor::DType dtype) {
  using tensor::DType;
  switch (dtype) {
    case DType::kBool:
      return find_in_family<BoolFamily, uint8_t>(op);
    case DType::kInt8:
      return find_in_family<IntegerFamily, int8_t>(op);
    case DType::kInt16:
      return find_in_family<IntegerFamily, int16_t>(op);
    case DType::kInt32:
      return find_in_family<IntegerFamily, int32_t>(op);
    case DType::kInt64:
      return find_in_family<IntegerFamily, int64_t>(op);
    case DType::kUint8:
      return find_in_family<IntegerFamily, uint8_t>(op);
    case DType::kUint16:
      return find_in_family<IntegerFamily, uint16_t>(op);
    case DType::kUint32:
      return find_in_family<IntegerFamily, uint32_t>(op);
    case DType::kUint64:
      return find_in_family<IntegerFamily, uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace meshd::kernels
