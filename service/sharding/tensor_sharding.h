// The sharding of a tensor over a mesh: the data model of Shardy (sdy.sharding) with axis names resolved to indices.
// Plain values. Beside what a partition spec has: open dimensions, priorities, sub-axes, replicated and unreduced axes.
//
// Invariant (verify() checks it): an axis or a part of one shards at most one dimension, and is then neither replicated
// nor unreduced.
//
// Example: mesh x=4, y=2; tensor 8x6 with [{"x"}, {"y"}]. In: dims[0].axes = {x}, dims[1].axes = {y}. Out: part_count 4
// and 2, so each position holds a shard of 2x3.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "service/mesh/mesh.h"

namespace meshd::sharding {

/// An axis of a mesh or a sub-axis of it. The sub-axis "x":(pre)size of an axis of size n is the middle factor of [pre,
/// size, n / (pre * size)]; size 0 means the full axis. Example: "x"=8, (2)2 -> the middle factor of [2, 2, 2].
struct AxisRef {
  int axis = 0;
  int64_t pre = 1;
  int64_t size = 0;

  [[nodiscard]] bool is_whole() const { return size == 0; }
  friend auto operator<=>(const AxisRef&, const AxisRef&) = default;
};

/// Into how many parts the axis (or the sub-axis) shards a dimension.
int64_t axis_size(const AxisRef& axis, const mesh::Mesh& mesh);
/// True when the two have a common part of one axis.
bool overlaps(const AxisRef& a, const AxisRef& b, const mesh::Mesh& mesh);

/// One dimension: axes major first. Open means that propagation may add axes behind.
struct DimSharding {
  std::vector<AxisRef> axes;
  bool open = false;
  std::optional<int> priority;
  friend bool operator==(const DimSharding&, const DimSharding&) = default;
};

enum class ReductionKind : uint8_t { kSum, kMax, kMin };

/// A tensor's sharding over `mesh`, which is never null. `mesh_name` is the symbol in the program, for printing and
/// grouping.
struct TensorSharding {
  std::string mesh_name;
  mesh::MeshRef mesh;
  std::vector<DimSharding> dims;
  std::vector<AxisRef> replicated;  ///< axes that must not be used
  std::vector<AxisRef> unreduced;   ///< the tensor is partial over these: the value is the reduction over them
  ReductionKind unreduced_kind = ReductionKind::kSum;

  [[nodiscard]] int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  /// Into how many parts dimension `dim` is sharded: the product of its axes' sizes.
  [[nodiscard]] int64_t part_count(int64_t dim) const;
  /// No dimension is sharded and nothing is unreduced.
  [[nodiscard]] bool is_fully_replicated() const;
};

/// Same mesh content, same axes in each dimension, same unreduced axes: what "equal" means in conformance/propagation.
bool is_equivalent(const TensorSharding& a, const TensorSharding& b);
/// Equal in everything, open flags and priorities too.
bool operator==(const TensorSharding& a, const TensorSharding& b);

/// All dimensions closed and empty.
TensorSharding fully_replicated(std::string mesh_name, mesh::MeshRef mesh, int64_t rank);
/// All dimensions open and empty: what "no annotation" means.
TensorSharding fully_open(std::string mesh_name, mesh::MeshRef mesh, int64_t rank);

/// Inside of #sdy.sharding<...> as MLIR prints it: @mesh, [{"x"}, {"y":(1)2, ?}p1], replicated={"z"}, unreduced={"w"}.
std::string to_sdy(const TensorSharding& sharding);

/// Canonicalises a list of axes: drops axes of size one, merges neighbours that are adjacent parts of one axis.
std::vector<AxisRef> canonical_axes(std::vector<AxisRef> axes, const mesh::Mesh& mesh);

/// Throws Error invalid_spec with the axis, dimension and numbers when
///   - the rank differs from `rank`,
///   - an axis is unknown,
///   - an axis is used twice (`at most one positional dimension`, with a list of the duplicates),
///   - a part of an axis does not divide the axis, is all of it, or continues the part before it,
///   - axes overlap with replicated or unreduced ones,
///   - replicated or unreduced axes are not in the order of the mesh,
///   - a priority is negative, or on a dimension that is empty and closed.
void verify(const TensorSharding& sharding, int64_t rank);

}  // namespace meshd::sharding
