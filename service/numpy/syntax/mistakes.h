// Errors of a NumPy program: line, column, what is wrong and what was expected.
#pragma once

#include <string>

#include "service/core/error.h"
#include "service/numpy/syntax/syntax.h"

namespace meshd::numpy {

/// Throws an Error whose detail begins with "line L, column C: " and whose diagnostic has both numbers and the pointer
/// /program/text.
[[noreturn]] void fail(core::ErrorCode code, Place place, const std::string& message);

}  // namespace meshd::numpy
