#include "service/kernels/elementwise/convert/convert_tables.h"

namespace meshd::kernels {

ScalarKernel find_convert_from_signed(tensor::DType in, tensor::DType out) {
  switch (in) {
    case tensor::DType::kInt8:
      return find_direct_convert<int8_t>(out);
    case tensor::DType::kInt16:
      return find_direct_convert<int16_t>(out);
    case tensor::DType::kInt32:
      return find_direct_convert<int32_t>(out);
    case tensor::DType::kInt64:
      return find_direct_convert<int64_t>(out);
    default:
      return nullptr;
  }
}

}  // namespace meshd::kernels
