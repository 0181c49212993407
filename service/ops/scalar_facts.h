// What pointwise ops compute, for stages that look for a few of them and include no kernels.
#pragma once

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Whether an op adds or subtracts its two operands, element by element.
enum class Sum : uint8_t { kNone, kOfBoth, kDifference };
Sum sum_of(const OpDef& def, const OpView& view);

}  // namespace meshd::ops
