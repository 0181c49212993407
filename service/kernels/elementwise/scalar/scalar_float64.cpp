#include "service/kernels/elementwise/scalar/scalar_table.h"

namespace meshd::kernels {

ScalarKernel find_float64_kernel(ScalarOp op) { return find_in_family<FloatFamily, double>(op); }

}  // namespace meshd::kernels
