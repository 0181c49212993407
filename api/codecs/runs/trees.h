// Trees of arguments and results: nested lists and objects whose leaves are values. Objects have their keys in sorted
// order; lists and objects are different kinds of node; null is a node without leaves. "-" is a place of an argument
// that the program does not take, because its function does not use it: what is there is ignored. JAX: tree_util and
// flatten_axes in jax/_src/api_util.py; behaviours P1 to P7.
#pragma once

#include <string>
#include <vector>

#include "api/json/json.h"

namespace meshd::api {

/// What the leaves of a tree are.
enum class Leaves : uint8_t {
  kStars,   ///< "*": a tree of places, as programs are registered with
  kValues,  ///< anything but lists, objects and null
  kSpecs,   ///< shardings ({"spec": ..}, {"parts": ..}, {"sdy": ..}), numbers, texts, booleans, and null
};

/// [*, {'a': *, 'b': [*, *]}]
std::string tree_text(const Json& tree, Leaves leaves);
/// Number of leaves.
int64_t leaf_count(const Json& tree, Leaves leaves);

/// A leaf and its path.
struct TreeLeaf {
  Json value;
  std::string pointer;
};

/// The leaves of `value` in order, by the shape of `places` (Leaves::kStars): the value at a star is a leaf, whatever
/// it is. Where there are places whose values are not taken, `value` may also be the list of all values, or of those
/// that are taken. Throws invalid_argument "Expected ..., got ..." with both trees when they differ.
std::vector<TreeLeaf> flatten(const Json& places, const Json& value, const std::string& pointer);

/// The spec of each leaf of `tree`: `specs` is a tree prefix, and its leaf holds for all leaves below. Throws
/// invalid_spec "must be a tree prefix" with every mismatch that is found.
std::vector<TreeLeaf> flatten_specs(const Json& specs, const Json& tree, Leaves leaves, const std::string& pointer);

/// A tree of stars as JSON, keys sorted. Throws invalid_request at what is neither list, object, null, "*" nor "-".
std::string tree_json(const Json& places, const std::string& pointer);
/// The tree with the number of each leaf at its star.
std::string numbered_tree(const Json& places);

}  // namespace meshd::api
