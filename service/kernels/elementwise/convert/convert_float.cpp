#include "service/kernels/elementwise/convert/convert_tables.h"

namespace meshd::kernels {

ScalarKernel find_convert_from_float(tensor::DType in, tensor::DType out) {
  switch (in) {
    case tensor::DType::kBfloat16:
      return find_direct_convert<Bfloat16Bits>(out);
    case tensor::DType::kFloat32:
      return find_direct_convert<float>(out);
    case tensor::DType::kFloat64:
      return find_direct_convert<double>(out);
    default:
      return nullptr;
  }
}

}  // namespace meshd::kernels
