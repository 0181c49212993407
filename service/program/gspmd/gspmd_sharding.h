// GSPMD shardings ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}"): parses them and converts them to Shardy's. Tile
// assignments name no axes, so meshes are created whose axes are fine enough for the shardings of a program: one where
// the tiles of all of them have common axes, else several. Source of the notation: XLA, hlo_parser.cc
// (ParseSingleSharding) and xla_data.proto (OpSharding).
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

enum class GspmdKind : uint8_t { kReplicated, kMaximal, kManual, kUnknown, kUnreduced, kTiled };
/// What the tile dimensions behind those of the tensor mean.
enum class GspmdSubgroup : uint8_t { kReplicated, kManual, kUnreduced };

/// One sharding as written. A tiled one assigns devices to `tile`, row-major: the devices 0..n-1 seen as `reshape` and
/// transposed by `transpose`, or, where their order is no transposition, `devices`.
/// Example: devices=[2,4]<=[4,2]T(1,0): tile {2,4}, reshape {4,2}, transpose {1,0}; dimension 0 is sharded by the minor
/// part of the devices. devices=[2,2]0,1,3,2: tile {2,2}, devices {0,1,3,2}, reshape and transpose empty.
struct GspmdSharding {
  GspmdKind kind = GspmdKind::kReplicated;
  int64_t device = 0;                    ///< kMaximal
  std::vector<int64_t> tile;             ///< kTiled
  std::vector<GspmdSubgroup> subgroups;  ///< of the last tile dimensions
  std::vector<int64_t> reshape;
  std::vector<int> transpose;
  std::vector<int64_t> devices;
  std::optional<int64_t> group;  ///< shard_as N, shard_like N

  [[nodiscard]] int64_t device_count() const;
  friend bool operator==(const GspmdSharding&, const GspmdSharding&) = default;
};

/// Reads one sharding, or several in braces ("{{replicated}, {manual}}", for ops of several results; "{}" is none). A
/// string with bytes that are not text is parsed as OpSharding's wire form, which older JAX printed; so is "", which is
/// replicated there. Metadata is skipped.
/// Throws Error invalid_spec naming what was expected and both numbers, unsupported_attribute for what is valid but has
/// no form in Shardy: lists of some of the devices, subgroups that are maximal, shardings that name axes.
std::vector<GspmdSharding> parse_gspmd(std::string_view text);

/// The text that parse_gspmd reads as this one.
std::string to_text(const GspmdSharding& sharding);

/// Meshes over `device_count` devices, at least one, with axes _axis_0, _axis_1, ..., of which each sharding fits one:
/// its tile dimensions are full axes. Lists of devices that are no transposed iota get meshes with their own device
/// ids. Throws Error unsupported_attribute when a sharding has another number of devices, or more than 16 meshes are
/// needed.
std::vector<mesh::Mesh> gspmd_meshes(std::span<const GspmdSharding> shardings, int64_t device_count);

/// Whether the tile dimensions are full axes of `mesh` (made by gspmd_meshes). True for what is not kTiled.
bool fits(const GspmdSharding& sharding, const mesh::Mesh& mesh);

/// The sharding of a tensor of `rank` over `mesh` (one that it fits). Dimensions in `open_dims` (unspecified_dims) are
/// open, others closed. Manual and replicated subgroups are left out. Not for kMaximal. Throws Error invalid_spec when
/// the tile has not `rank` dimensions.
sharding::TensorSharding to_sdy_sharding(const GspmdSharding& sharding, std::string mesh_name, mesh::MeshRef mesh,
                                         int64_t rank, std::span<const int64_t> open_dims = {});

/// Names of the axes that are manual: all for kManual, those of the manual subgroup of a tile.
std::vector<std::string> gspmd_manual_axes(const GspmdSharding& sharding, const mesh::Mesh& mesh);

}  // namespace meshd::program
