// @shape_assertion: the shape constraints of a shape-polymorphic program, checked when its shapes are known.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// A boolean and the integers of its message, which are scalars; no results.
void check_shape_assertion(const OpView& view);
/// A kernel without results: throws invalid_argument with the op's error_message when operand 0 is false.
PreparedKernel prepare_shape_assertion(const OpView& local);

/// `message` with {0}, {1}, ... replaced by the values; other braces stay. Example: "is {0}", {3} -> "is 3".
std::string with_values(std::string_view message, std::span<const int64_t> values);

}  // namespace meshd::ops
