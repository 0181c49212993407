// How a tensor is cut over a mesh: the data model of Shardy (sdy.sharding) with names resolved to axis indices.
// Plain values. What a partition spec says, and more: open dimensions, priorities, parts of axes, replicated,
// unreduced.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "service/mesh/mesh.h"

namespace meshd::sharding {

/// An axis of a mesh or a part of it. An axis of size n seen as [pre, size, n / (pre * size)], the middle taken, is the
/// part "x":(pre)size; size 0 means the whole axis. Example: "x"=8, (2)2 -> the middle factor of [2, 2, 2].
struct AxisRef {
  int axis = 0;
  int64_t pre = 1;
  int64_t size = 0;

  [[nodiscard]] bool is_whole() const { return size == 0; }
  friend auto operator<=>(const AxisRef&, const AxisRef&) = default;
};

/// How many ways the axis (or the part) cuts.
int64_t axis_size(const AxisRef& axis, const mesh::Mesh& mesh);
/// True when the two name a common part of one axis.
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
  /// Ways dimension `dim` is cut: the product of its axes.
  [[nodiscard]] int64_t part_count(int64_t dim) const;
  /// No dimension is cut and nothing is unreduced.
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

/// Sorts out a list of axes: drops axes of size one, merges neighbours that are adjacent parts of one axis.
std::vector<AxisRef> canonical_axes(std::vector<AxisRef> axes, const mesh::Mesh& mesh);

/// Throws Error invalid_spec naming the axis, dimension and numbers when: rank differs from `rank`, an axis is unknown
/// or used twice
/// (`at most one positional dimension`, duplicates listed), a part of an axis does not divide, axes overlap with
/// replicated or unreduced.
void verify(const TensorSharding& sharding, int64_t rank);

}  // namespace meshd::sharding
