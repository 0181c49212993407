// Reductions and windows as few pointwise ops over whole tensors, so that bodies of every kind have derivatives.
// Private to reduction.
#pragma once

#include <optional>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// A reduction whose body has no rule of its own (reduction_vjp.h): halves of the operands are combined until one
/// element is left, in the order of the elements. Nothing for others.
std::optional<std::vector<ir::ValueId>> reduce_in_steps(const OpView& view, Writer& writer);
/// The same of windows: those of 2, 4, 8, ... elements at all places, of which windows of any size are put together.
std::optional<std::vector<ir::ValueId>> reduce_window_in_steps(const OpView& view, Writer& writer);

}  // namespace meshd::ops
