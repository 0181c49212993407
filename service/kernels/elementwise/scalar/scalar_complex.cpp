#include "service/kernels/elementwise/scalar/scalar_table.h"

namespace meshd::kernels {

ScalarKernel find_complex_kernel(ScalarOp op, tensor::DType dtype) {
  return dtype == tensor::DType::kComplex64 ? find_in_family<ComplexFamily, float, ComplexPair<float>>(op)
                                            : find_in_family<ComplexFamily, double, ComplexPair<double>>(op);
}

}  // namespace meshd::kernels
