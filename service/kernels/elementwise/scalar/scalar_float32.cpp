#include "service/kernels/elementwise/scalar/scalar_table.h"

namespace meshd::kernels {

ScalarKernel find_float32_kernel(ScalarOp op) { return find_in_family<FloatFamily, float>(op); }

}  // namespace meshd::kernels
