#include "service/kernels/elementwise/scalar/scalar_table.h"

namespace meshd::kernels {

ScalarKernel find_integer_kernel(ScalarOp op, tensor::DType dtype) {
  if (dtype == tensor::DType::kBool) return find_in_family<BoolFamily, uint8_t>(op);
  return tensor::with_integer(
      dtype, [op]<typename T>(T) { return find_in_family<IntegerFamily, T>(op); }, [] { return ScalarKernel{}; });
}

}  // namespace meshd::kernels
