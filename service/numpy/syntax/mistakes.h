// Errors of a NumPy program: line, column, what is wrong and what was expected or is near it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "service/core/error.h"
#include "service/numpy/syntax/syntax.h"

namespace meshd::numpy {

/// Throws an Error whose detail begins with "line L, column C: " and whose diagnostic has both numbers and the pointer
/// /program/text.
[[noreturn]] void fail(core::ErrorCode code, Place place, const std::string& message);

/// "; did you mean 'sum'?" for the name nearest to `name` among `known`, or nothing where none is near: at most a third
/// of the characters may differ.
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace meshd::numpy
