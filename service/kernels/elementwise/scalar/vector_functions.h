// The functions that the loops of scalar operations compute (float_functors.h), on one vector, for generated code that
// calls them on its own registers.
#pragma once

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::kernels {

/// The function that float32 loops of `op` compute at this level: one or two vectors (32 bytes at kV3, 64 at kV4) in
/// vector registers, the result in the first one, other registers lost as in any call. Null where there is none, and in
/// builds whose loops call the library's scalar functions: the bits would differ. Any thread.
const void* vector_function(ScalarOp op, CpuLevel level);

}  // namespace meshd::kernels
