#include "service/sharding/tensor_sharding.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/mesh/positions.h"

namespace meshd::sharding {
namespace {

/// First position behind the part, as a pre-size: the part "x":(2)2 ends at 4.
int64_t end_of(const AxisRef& axis, const mesh::Mesh& mesh) {
  return axis.is_whole() ? mesh.axes[static_cast<size_t>(axis.axis)].size : axis.pre * axis.size;
}

std::string axis_text(const AxisRef& axis, const mesh::Mesh& mesh) {
  std::string out = "\"" + mesh.axes[static_cast<size_t>(axis.axis)].name + "\"";
  if (!axis.is_whole()) out += fmt::format(":({}){}", axis.pre, axis.size);
  return out;
}

std::string axes_text(const std::vector<AxisRef>& axes, const mesh::Mesh& mesh) {
  std::string out;
  for (const AxisRef& axis : axes) out += (out.empty() ? "" : ", ") + axis_text(axis, mesh);
  return out;
}

/// Throws when the axis is not of this mesh or is no proper part of it.
void verify_axis(const AxisRef& axis, const mesh::Mesh& mesh) {
  if (axis.axis < 0 || axis.axis >= static_cast<int>(mesh.axes.size())) {
    throw core::Error("invalid_spec",
                      fmt::format("unknown axis number {}, the mesh is {}", axis.axis, mesh::to_text(mesh)));
  }
  if (axis.is_whole()) return;
  const int64_t full = mesh.axes[static_cast<size_t>(axis.axis)].size;
  const std::string text = axis_text(axis, mesh);
  if (axis.size <= 1 || axis.pre < 1) {
    throw core::Error("invalid_spec",
                      "sizes of parts of axes must be greater than 1 and pre-sizes at least 1, got " + text);
  }
  if (axis.size == full) throw core::Error("invalid_spec", text + " is the whole axis: write it without a part");
  if (axis.pre > full || axis.size > full || full % (axis.pre * axis.size) != 0) {
    throw core::Error("invalid_spec", fmt::format("{} ends at {}, which does not divide the size of the axis, {}", text,
                                                  axis.pre * axis.size, full));
  }
}

/// @name, quoted where it is no bare identifier.
std::string symbol_text(const std::string& name) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '.' || c == '-';
  };
  const bool plain = std::all_of(name.begin(), name.end(), bare) && !(name[0] >= '0' && name[0] <= '9') &&
                     name[0] != '.' && name[0] != '-' && name[0] != '$';
  return plain ? "@" + name : "@\"" + name + "\"";
}

bool can_merge(const AxisRef& major, const AxisRef& minor) {
  return major.axis == minor.axis && !major.is_whole() && !minor.is_whole() && major.pre * major.size == minor.pre;
}

void verify_sorted(const std::vector<AxisRef>& axes, const mesh::Mesh& mesh, const char* what) {
  if (std::is_sorted(axes.begin(), axes.end())) return;
  throw core::Error("invalid_spec",
                    std::string(what) + " axes must be in the order of the mesh, got " + axes_text(axes, mesh));
}

}  // namespace

int64_t axis_size(const AxisRef& axis, const mesh::Mesh& mesh) {
  return axis.is_whole() ? mesh.axes[static_cast<size_t>(axis.axis)].size : axis.size;
}

bool overlaps(const AxisRef& a, const AxisRef& b, const mesh::Mesh& mesh) {
  return a.axis == b.axis && a.pre < end_of(b, mesh) && b.pre < end_of(a, mesh);
}

int64_t TensorSharding::part_count(int64_t dim) const {
  int64_t count = 1;
  if (dim >= rank()) return count;  // over a maximal mesh no dimensions are written
  for (const AxisRef& axis : dims[static_cast<size_t>(dim)].axes) count *= axis_size(axis, *mesh);
  return count;
}

bool TensorSharding::is_fully_replicated() const {
  if (!unreduced.empty()) return false;
  for (int64_t dim = 0; dim < rank(); ++dim) {
    if (part_count(dim) != 1) return false;
  }
  return true;
}

bool is_equivalent(const TensorSharding& a, const TensorSharding& b) {
  const auto same_axes = [](const DimSharding& x, const DimSharding& y) { return x.axes == y.axes; };
  return *a.mesh == *b.mesh && a.unreduced == b.unreduced &&
         (a.unreduced.empty() || a.unreduced_kind == b.unreduced_kind) &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(), same_axes);
}

bool operator==(const TensorSharding& a, const TensorSharding& b) {
  return a.mesh_name == b.mesh_name && (a.mesh == b.mesh || *a.mesh == *b.mesh) && a.dims == b.dims &&
         a.replicated == b.replicated && a.unreduced == b.unreduced && a.unreduced_kind == b.unreduced_kind;
}

TensorSharding fully_replicated(std::string mesh_name, mesh::MeshRef mesh, int64_t rank) {
  TensorSharding out;
  out.mesh_name = std::move(mesh_name);
  out.mesh = std::move(mesh);
  out.dims.resize(static_cast<size_t>(rank));
  return out;
}

TensorSharding fully_open(std::string mesh_name, mesh::MeshRef mesh, int64_t rank) {
  TensorSharding out = fully_replicated(std::move(mesh_name), std::move(mesh), rank);
  for (DimSharding& dim : out.dims) dim.open = true;
  return out;
}

std::string to_sdy(const TensorSharding& sharding) {
  const mesh::Mesh& mesh = *sharding.mesh;
  std::string out = sharding.mesh_name.empty() ? "mesh" + mesh::to_sdy(mesh) : symbol_text(sharding.mesh_name);
  out += ", [";
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    const DimSharding& dim = sharding.dims[i];
    out += (i ? ", {" : "{") + axes_text(dim.axes, mesh);
    if (dim.open) out += dim.axes.empty() ? "?" : ", ?";
    out += "}";
    if (dim.priority) out += fmt::format("p{}", *dim.priority);
  }
  out += "]";
  if (!sharding.replicated.empty()) out += ", replicated={" + axes_text(sharding.replicated, mesh) + "}";
  if (!sharding.unreduced.empty()) {
    const char* kind = sharding.unreduced_kind == ReductionKind::kSum   ? ""
                       : sharding.unreduced_kind == ReductionKind::kMax ? "max"
                                                                        : "min";
    out += std::string(", unreduced=") + kind + "{" + axes_text(sharding.unreduced, mesh) + "}";
  }
  return out;
}

std::vector<AxisRef> canonical_axes(std::vector<AxisRef> axes, const mesh::Mesh& mesh) {
  std::vector<AxisRef> out;
  for (const AxisRef& axis : axes) {
    if (axis_size(axis, mesh) == 1) continue;
    if (!out.empty() && can_merge(out.back(), axis)) {
      out.back().size *= axis.size;
    } else {
      out.push_back(axis);
    }
    AxisRef& last = out.back();
    if (!last.is_whole() && last.size == mesh.axes[static_cast<size_t>(last.axis)].size) last = {last.axis, 1, 0};
  }
  return out;
}

void verify(const TensorSharding& sharding, int64_t rank) {
  const mesh::Mesh& mesh = *sharding.mesh;
  const bool any_rank = mesh.is_maximal() && sharding.dims.empty();
  if (sharding.rank() > rank) {
    throw core::Error("invalid_spec",
                      fmt::format("sharding [{}] is only valid for values of rank at least {}, but the rank is {}",
                                  to_sdy(sharding), sharding.rank(), rank));
  }
  if (sharding.rank() < rank && !any_rank) {
    throw core::Error("invalid_spec",
                      fmt::format("sharding has {} dimensions, but the rank is {}", sharding.rank(), rank));
  }
  // Each axis is compared with all before it.
  size_t axis_count = sharding.replicated.size() + sharding.unreduced.size();
  for (const DimSharding& dim : sharding.dims) axis_count += dim.axes.size();
  if (axis_count > mesh::kMaxAxes) {
    throw core::Error("invalid_spec",
                      fmt::format("a sharding names at most {} axes, got {}", mesh::kMaxAxes, axis_count));
  }
  std::vector<AxisRef> used;
  std::vector<std::string> duplicates;
  const auto visit = [&](const std::vector<AxisRef>& axes) {
    for (size_t i = 0; i < axes.size(); ++i) {
      verify_axis(axes[i], mesh);
      if (i > 0 && can_merge(axes[i - 1], axes[i])) {
        throw core::Error("invalid_spec",
                          "two consecutive parts can be merged: " + axes_text({axes[i - 1], axes[i]}, mesh));
      }
      for (const AxisRef& other : used) {
        if (!overlaps(other, axes[i], mesh)) continue;
        const std::string& name = mesh.axes[static_cast<size_t>(axes[i].axis)].name;
        if (std::find(duplicates.begin(), duplicates.end(), name) == duplicates.end()) duplicates.push_back(name);
      }
      used.push_back(axes[i]);
    }
  };
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    const DimSharding& dim = sharding.dims[i];
    visit(dim.axes);
    if (dim.priority && (*dim.priority < 0 || (dim.axes.empty() && !dim.open))) {
      throw core::Error("invalid_spec", fmt::format("dim {}{}", i,
                                                    *dim.priority < 0 ? " has a negative priority"
                                                                      : " is empty and closed but has a priority"));
    }
  }
  visit(sharding.replicated);
  visit(sharding.unreduced);
  if (!duplicates.empty()) {
    throw core::Error("invalid_spec", fmt::format("a single sharding can map every mesh axis to at most one positional "
                                                  "dimension, but [{}] has duplicate entries for {}",
                                                  to_sdy(sharding), mesh::quoted_sorted(duplicates)));
  }
  verify_sorted(sharding.replicated, mesh, "replicated");
  verify_sorted(sharding.unreduced, mesh, "unreduced");
}

}  // namespace meshd::sharding
