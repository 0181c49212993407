// Meshes for GSPMD's tiles, and tiles as axes of them.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "service/core/error.h"
#include "service/program/gspmd/device_order.h"
#include "service/program/gspmd/gspmd_sharding.h"
#include "service/program/gspmd/gspmd_text.h"

namespace meshd::program {
namespace {

/// The sharding's devices as an iota over the positions of a mesh whose devices have the order `order` (empty: 0..n-1);
/// nothing where it is no transposition.
std::optional<Iota> over(const GspmdSharding& sharding, const std::vector<int64_t>& order) {
  if (sharding.devices.empty() != order.empty()) return std::nullopt;
  if (order.empty()) return Iota{sharding.reshape, sharding.transpose};
  if (order.size() != sharding.devices.size()) return std::nullopt;
  std::vector<int64_t> position(order.size());
  for (size_t i = 0; i < order.size(); ++i) position[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  std::vector<int64_t> positions;
  positions.reserve(order.size());
  for (const int64_t device : sharding.devices) positions.push_back(position[static_cast<size_t>(device)]);
  return as_iota(std::move(positions));
}

/// Axes of each tile dimension; nothing where they are not full axes of the mesh.
std::optional<std::vector<std::vector<int>>> tile_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  const std::optional<Iota> iota = over(sharding, mesh.device_ids);
  if (!iota) return std::nullopt;
  // Axes of each dimension of `reshape`, then in transposed order, then dealt out to the tile dimensions.
  std::vector<std::vector<int>> by_reshape;
  size_t axis = 0;
  for (const int64_t size : iota->reshape) {
    std::vector<int>& axes = by_reshape.emplace_back();
    for (int64_t left = size; left > 1; ++axis) {
      const int64_t axis_size = axis < mesh.axes.size() ? mesh.axes[axis].size : 0;
      if (axis_size == 0 || left % axis_size != 0) return std::nullopt;
      left /= axis_size;
      axes.push_back(static_cast<int>(axis));
    }
  }
  std::vector<int> order;
  for (const int dim : iota->transpose) {
    const std::vector<int>& axes = by_reshape[static_cast<size_t>(dim)];
    order.insert(order.end(), axes.begin(), axes.end());
  }
  std::vector<std::vector<int>> out;
  size_t next = 0;
  for (const int64_t size : sharding.tile) {
    std::vector<int>& axes = out.emplace_back();
    for (int64_t left = size; left > 1; ++next) {
      const int64_t axis_size = next < order.size() ? mesh.axes[static_cast<size_t>(order[next])].size : 0;
      if (axis_size == 0 || left % axis_size != 0) return std::nullopt;
      left /= axis_size;
      axes.push_back(order[next]);
    }
  }
  return out;
}

/// tile_axes of a sharding that fits.
std::vector<std::vector<int>> fitting_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  auto axes = tile_axes(sharding, mesh);
  if (!axes) {
    throw core::Error("unsupported_attribute", fmt::format("tiles {} are not full axes of the mesh {}",
                                                           in_brackets(sharding.tile), mesh::to_text(mesh)));
  }
  return std::move(*axes);
}

/// A mesh in the making.
struct MeshCandidate {
  std::vector<int64_t> order;  ///< of its devices; empty is 0..n-1
  std::set<int64_t> splits;

  /// Takes the sharding in where it fits.
  bool take(const GspmdSharding& sharding) {
    const std::optional<Iota> iota = over(sharding, order);
    std::set<int64_t> more = splits;
    if (!iota || !add_splits(*iota, sharding.tile, more) || !can_hold_axes(more)) return false;
    splits = std::move(more);
    return true;
  }

  [[nodiscard]] mesh::Mesh finish() const {
    mesh::Mesh out;
    int64_t before = 1;
    for (const int64_t split : splits) {
      if (split == 1) continue;
      out.axes.push_back({fmt::format("_axis_{}", out.axes.size()), split / before});
      before = split;
    }
    out.device_ids = order;
    return out;
  }
};

}  // namespace

std::vector<mesh::Mesh> gspmd_meshes(std::span<const GspmdSharding> shardings, int64_t device_count) {
  constexpr size_t kMaxTileMeshes = 16;
  std::vector<MeshCandidate> candidates;
  for (const GspmdSharding& sharding : shardings) {
    if (sharding.kind != GspmdKind::kTiled) continue;
    if (sharding.device_count() != device_count) {
      throw core::Error("unsupported_attribute", fmt::format("one sharding is over {} devices, another over {}",
                                                             sharding.device_count(), device_count));
    }
    if (std::any_of(candidates.begin(), candidates.end(),
                    [&](MeshCandidate& candidate) { return candidate.take(sharding); }))
      continue;
    if (candidates.size() == kMaxTileMeshes) {
      throw core::Error("unsupported_attribute", fmt::format("the program's shardings need more than {} meshes: they "
                                                             "divide the devices in ways that have no common axes",
                                                             kMaxTileMeshes));
    }
    // A mesh of its own always fits: parse_gspmd returns axes or a list.
    candidates.push_back({sharding.devices, {device_count}});
    candidates.back().take(sharding);
  }
  if (candidates.empty()) candidates.push_back({{}, {device_count}});
  std::vector<mesh::Mesh> out;
  for (const MeshCandidate& candidate : candidates) out.push_back(candidate.finish());
  return out;
}

bool fits(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  return sharding.kind != GspmdKind::kTiled || tile_axes(sharding, mesh).has_value();
}

sharding::TensorSharding to_sdy_sharding(const GspmdSharding& sharding, std::string mesh_name, mesh::MeshRef mesh,
                                         int64_t rank, std::span<const int64_t> open_dims) {
  sharding::TensorSharding out = sharding.kind == GspmdKind::kUnknown
                                     ? sharding::fully_open(std::move(mesh_name), std::move(mesh), rank)
                                     : sharding::fully_replicated(std::move(mesh_name), std::move(mesh), rank);
  for (const int64_t dim : open_dims) {
    if (dim >= 0 && dim < rank) out.dims[static_cast<size_t>(dim)].open = true;
  }
  if (sharding.kind == GspmdKind::kUnreduced) {
    for (size_t axis = 0; axis < out.mesh->axes.size(); ++axis) out.unreduced.push_back({static_cast<int>(axis), 1, 0});
  }
  if (sharding.kind != GspmdKind::kTiled) return out;
  const size_t tensor_dims = sharding.tile.size() - sharding.subgroups.size();
  if (static_cast<int64_t>(tensor_dims) != rank) {
    throw core::Error("invalid_spec",
                      fmt::format("the sharding has {} dimensions, but the rank is {}", tensor_dims, rank));
  }
  const std::vector<std::vector<int>> axes = fitting_axes(sharding, *out.mesh);
  for (size_t dim = 0; dim < out.dims.size(); ++dim) {
    for (const int axis : axes[dim]) out.dims[dim].axes.push_back({axis, 1, 0});
  }
  for (size_t i = 0; i < sharding.subgroups.size(); ++i) {
    if (sharding.subgroups[i] != GspmdSubgroup::kUnreduced) continue;
    for (const int axis : axes[tensor_dims + i]) out.unreduced.push_back({axis, 1, 0});
  }
  std::sort(out.unreduced.begin(), out.unreduced.end());
  return out;
}

std::vector<std::string> gspmd_manual_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh) {
  std::vector<int> numbers;
  if (sharding.kind == GspmdKind::kManual) {
    numbers.resize(mesh.axes.size());
    std::iota(numbers.begin(), numbers.end(), 0);
  } else if (sharding.kind == GspmdKind::kTiled) {
    const std::vector<std::vector<int>> axes = fitting_axes(sharding, mesh);
    const size_t first = axes.size() - sharding.subgroups.size();
    for (size_t i = 0; i < sharding.subgroups.size(); ++i) {
      if (sharding.subgroups[i] != GspmdSubgroup::kManual) continue;
      numbers.insert(numbers.end(), axes[first + i].begin(), axes[first + i].end());
    }
    std::sort(numbers.begin(), numbers.end());
  }
  std::vector<std::string> out;
  for (const int number : numbers) out.push_back(mesh.axes[static_cast<size_t>(number)].name);
  return out;
}

}  // namespace meshd::program
