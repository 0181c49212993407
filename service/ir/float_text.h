// Floats as MLIR writes them.
#pragma once

#include <string>

namespace meshd::ir {

/// The fewest decimal digits that tell a value from the next one of its type, always with a point and an exponent:
/// 5.0e-01. "inf" and "nan", which MLIR does not write so, where the value is not finite. Pure; any thread.
std::string float_text(double value);
std::string float_text(float value);

}  // namespace meshd::ir
