// Values of arrays as text for a terminal, in NumPy's way: rows in brackets, long dimensions with "..." in their
// middle.
//
//   [[0 1.5 2]
//    [3 4 5]]
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/client/text/json.h"

namespace meshd::client {

/// Nested lists, or a scalar. The text "..." is written as it is.
std::string value_text(const Json& data);

/// Lists of more than 1,000 elements in all with "..." in the middle of each of more than six.
Json shortened(const Json& data);

/// The data of an array of this shape, read by slices ("0:3,-3:"): whole where it has at most 1,000 elements, else the
/// first and last three of each dimension of more than six, with "..." between them. An array of any size costs 64
/// slices of at most some hundred elements; with more dimensions than that allows their first three alone are read.
Json summarised_data(const std::vector<int64_t>& shape, const std::function<Json(const std::string& slice)>& read);

}  // namespace meshd::client
