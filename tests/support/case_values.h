// Values and comparisons of conformance cases (tests/conformance/README.md): decoded, and held to what was computed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/interpreter.h"

namespace meshd::test {

/// {"dtype", "shape", "base64"} or {"dtype", "shape", "data"} with numbers, "NaN", "Infinity", "-Infinity" and [re,
/// im].
Value value_of(const nlohmann::json& json);

/// What is wrong with `got` by {"exact"}, {"ulp"}, {"rtol", "atol"} or {"any"}; empty when it is right. Says the first
/// element that is off, what was expected and what came.
std::string difference(const Value& got, const Value& expected, const nlohmann::json& compare);

}  // namespace meshd::test
