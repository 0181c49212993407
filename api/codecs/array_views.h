// An array as text.
#pragma once

#include <string>

#include "service/arrays/array.h"

namespace meshd::api {

/// float32[8,2]
std::string array_text(const arrays::Array& array);
/// Array(shape=(8, 2), dtype=float32, mesh=Mesh('x': 4, 'y': 2), spec=[["x"],[]])
std::string array_repr(const arrays::Array& array);

}  // namespace meshd::api
