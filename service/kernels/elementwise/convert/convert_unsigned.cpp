#include "service/kernels/elementwise/convert/convert_tables.h"

namespace meshd::kernels {

ScalarKernel find_convert_from_unsigned(tensor::DType in, tensor::DType out) {
  switch (in) {
    case tensor::DType::kBool:
      return find_direct_convert<BoolByte>(out);
    case tensor::DType::kUint8:
      return find_direct_convert<uint8_t>(out);
    case tensor::DType::kUint16:
      return find_direct_convert<uint16_t>(out);
    case tensor::DType::kUint32:
      return find_direct_convert<uint32_t>(out);
    case tensor::DType::kUint64:
      return find_direct_convert<uint64_t>(out);
    default:
      return nullptr;
  }
}

}  // namespace meshd::kernels
