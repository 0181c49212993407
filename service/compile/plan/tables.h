// Shard tables and the maps between them, each built once. A map has, for every shard of one table, the shard of
// another that its first device holds: {0, 0, 1, 1} from four shards over (x, y) to two over x.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "service/compile/plan/plan.h"
#include "service/sharding/mesh_view.h"

namespace meshd::compile {

/// Builds tables while a plan is made. One thread.
class TableSet {
 public:
  TableSet(std::vector<sharding::MeshView> views, int64_t device_count);

  /// The table of values of `view` that vary over `mask`.
  TableId table(int view, sharding::SubAxisSet mask);
  /// The map from shards of `from` to the shards of `to` that the same device holds; kIdentity where they are the same.
  /// `is_collective`: the step reads shards of other devices by itself, and the entry of a device that has none is 0.
  MapId projection(TableId from, TableId to, bool is_collective = false);
  /// second after first; either may be kIdentity.
  MapId compose(MapId first, MapId second, TableId from);
  /// Keeps a map; kIdentity when entry i is i and there are `to_count` of them.
  MapId intern(std::vector<int32_t> map, int64_t to_count);

  [[nodiscard]] const ShardTable& operator[](TableId id) const { return tables_[static_cast<size_t>(id)]; }
  [[nodiscard]] const std::vector<int32_t>& map(MapId id) const { return maps_[static_cast<size_t>(id)]; }
  [[nodiscard]] int64_t at(MapId id, int64_t shard) const {
    return id == kIdentity ? shard : maps_[static_cast<size_t>(id)][static_cast<size_t>(shard)];
  }
  [[nodiscard]] const sharding::MeshView& view(int id) const { return views_[static_cast<size_t>(id)]; }
  [[nodiscard]] int64_t device_count() const { return device_count_; }
  /// True when a projection is for a device that does not hold what it reads: a replicated value of other devices.
  [[nodiscard]] bool reads_elsewhere() const { return reads_elsewhere_; }
  /// Coordinates of shard `shard` of table `id`: 0 for sub-axes outside of its mask.
  [[nodiscard]] tensor::Dims coordinates(TableId id, int64_t shard) const;

  void move_into(Plan& plan);

 private:
  std::vector<sharding::MeshView> views_;
  int64_t device_count_;
  bool reads_elsewhere_ = false;
  std::vector<ShardTable> tables_;
  std::map<std::pair<int, sharding::SubAxisSet>, TableId> table_ids_;
  std::vector<std::vector<int32_t>> maps_;
  std::map<std::vector<int32_t>, MapId> map_ids_;
  std::map<std::pair<TableId, TableId>, MapId> projections_;
};

}  // namespace meshd::compile
