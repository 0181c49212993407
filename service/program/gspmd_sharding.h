// Shardings in the older notation of GSPMD ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}"): read, and said as Shardy
// says them. Tile assignments name no axes, so one mesh is made up whose axes are fine enough for all shardings of a
// program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/mesh/mesh.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::program {

enum class GspmdKind : uint8_t { kReplicated, kMaximal, kManual, kUnknown, kTiled };
/// What the tile dimensions behind those of the tensor mean.
enum class GspmdSubgroup : uint8_t { kReplicated, kManual };

/// One sharding as written. A tiled one lays the devices 0..n-1, seen as `reshape`, transposed by `transpose`, over
/// `tile`. Example: devices=[2,4]<=[4,2]T(1,0): tile {2,4}, reshape {4,2}, transpose {1,0}; dimension 0 is cut by the
/// minor part of the devices.
struct GspmdSharding {
  GspmdKind kind = GspmdKind::kReplicated;
  int64_t device = 0;                    ///< kMaximal
  std::vector<int64_t> tile;             ///< kTiled
  std::vector<GspmdSubgroup> subgroups;  ///< of the last tile dimensions
  std::vector<int64_t> reshape;
  std::vector<int> transpose;
  std::optional<int64_t> group;  ///< shard_as N, shard_like N

  [[nodiscard]] int64_t device_count() const;
};

/// Reads one sharding, or several in braces ("{{replicated}, {manual}}", for ops of several results).
/// Throws Error invalid_spec saying what was expected, unsupported_attribute for lists of devices that are no
/// transposed iota.
std::vector<GspmdSharding> parse_gspmd(std::string_view text);

/// A mesh over `device_count` devices, axes _axis_0, _axis_1, ..., of which every sharding's tile dimensions are whole
/// axes. Throws Error unsupported_attribute when the shardings cut the devices in ways that have no common axes.
mesh::Mesh gspmd_mesh(std::span<const GspmdSharding> shardings, int64_t device_count);

/// The sharding of a tensor of `rank` over `mesh` (made by gspmd_mesh for this sharding among others). Dimensions in
/// `open_dims` (unspecified_dims) are open, others closed. Manual and replicated subgroups are left out. Not for
/// kMaximal. Throws Error invalid_spec when the tile has not `rank` dimensions.
sharding::TensorSharding to_sdy_sharding(const GspmdSharding& sharding, std::string mesh_name, mesh::MeshRef mesh,
                                         int64_t rank, std::span<const int64_t> open_dims = {});

/// Names of the axes that are manual: all for kManual, those of the manual subgroup of a tile.
std::vector<std::string> gspmd_manual_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh);

}  // namespace meshd::program
