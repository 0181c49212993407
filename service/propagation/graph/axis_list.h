// Operations on lists of axes, major first, as in Shardy: prefixes and the common axes of two lists.
#pragma once

#include <optional>
#include <vector>

#include "service/sharding/tensor_sharding.h"

namespace meshd::propagation {

using sharding::AxisRef;
using AxisList = std::vector<AxisRef>;

/// `outer` covers all of `inner`: "x" contains "x":(2)2, "x":(1)4 contains "x":(1)2.
bool contains(const AxisRef& outer, const AxisRef& inner, const mesh::Mesh& mesh);
/// Both begin at the same place and `shorter` is no longer: "x":(2)2 is a prefix of "x":(2)4, and every axis of itself.
bool is_prefix(const AxisRef& shorter, const AxisRef& longer, const mesh::Mesh& mesh);
/// The longest prefix of `axis` that shares nothing with any of `others`: "x" against "x":(2)2 leaves "x":(1)2.
std::optional<AxisRef> prefix_beside(const AxisRef& axis, const AxisList& others, const mesh::Mesh& mesh);

/// Appends an axis, merged with the last where they are adjacent parts of one.
void append(AxisList& list, const AxisRef& axis, const mesh::Mesh& mesh);
/// Product of sizes.
int64_t size_of(const AxisList& list, const mesh::Mesh& mesh);

enum class PrefixStatus : uint8_t { kNone, kEqual, kStrict };
/// Is `first` a prefix of `second`? Only its last axis may be a part of its counterpart.
PrefixStatus prefix_status(const AxisList& first, const AxisList& second, const mesh::Mesh& mesh);

enum class Growth : bool { kForbidden, kAllowed };
/// The common prefix of two lists, or the longer list where one is a prefix of the other. {"a"} and {"a","b"} give
/// {"a","b"}, and may grow on; {"a","b"} and {"a","c"} give {"a"}, and may not. Without growth `known` is the most.
/// `growth` is set to whether a third list may still extend it.
AxisList agree(const AxisList& known, const AxisList& next, Growth& growth, const mesh::Mesh& mesh);

/// The longest prefix of axes, the last perhaps in part, whose parts divide `size` evenly.
AxisList dividing_prefix(const AxisList& axes, int64_t size, const mesh::Mesh& mesh);

}  // namespace meshd::propagation
