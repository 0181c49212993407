// Calls of LAPACK as JAX 0.4 printed them: targets without "_ffi", where sizes and flags are leading operands and work
// arrays are results (to 0.4.33), and triangular systems with a factor as their third operand (0.4.38).
//
// Example (the sizes' operands are constants):
//   %r:4 = custom_call @lapack_sgeqrf(%batch, %rows, %columns, %work_size, %x)   x, tau, info, work
//   %r:2 = custom_call @lapack_sgeqrf_ffi(%x)                                    x, tau; info and work become zeros
#pragma once

#include <optional>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// The same as calls of today's targets; nothing for other custom calls. Throws invalid_program where a flag is not
/// known before the program runs, and where operands or results are not as many as the target has.
std::optional<std::vector<ir::ValueId>> expand_older_lapack(const OpView& view, Writer& writer);

}  // namespace meshd::ops
