#include "service/kernels/elementwise/scalar_float.h"

namespace meshd::kernels {

ScalarKernel find_float64_kernel(ScalarOp op) { return find_float_kernel<double>(op); }

}  // namespace meshd::kernels
