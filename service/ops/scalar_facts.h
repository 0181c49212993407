// What pointwise ops compute, for stages that look for a few of them and include no kernels.
#pragma once

#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Whether an op adds or subtracts its two operands, element by element.
enum class Sum : uint8_t { kNone, kOfBoth, kDifference };
Sum sum_of(const OpDef& def, const OpView& view);

/// The element that leaves a result of a reduction unchanged, wherever it is combined in.
enum class Neutral : uint8_t { kOther, kZero, kOne };
/// By result of a reduction of `count` inputs, whose region combines each by itself; empty: it does not.
std::vector<Neutral> neutral_elements(const OpView& reduction, size_t count);

}  // namespace meshd::ops
