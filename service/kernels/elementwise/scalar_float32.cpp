#include "service/kernels/elementwise/scalar_float.h"

namespace meshd::kernels {

ScalarKernel find_float32_kernel(ScalarOp op) { return find_float_kernel<float>(op); }

}  // namespace meshd::kernels
