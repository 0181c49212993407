#include "service/compile/plan/tables.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"

namespace meshd::compile {

TableSet::TableSet(std::vector<sharding::MeshView> views, int64_t device_count)
    : views_(std::move(views)), device_count_(device_count) {
  if (views_.empty()) views_.emplace_back();
}

TableId TableSet::table(int view_id, sharding::SubAxisSet mask) {
  const sharding::MeshView& mesh_view = view(view_id);
  mask &= mesh_view.all();
  const auto key = std::pair(view_id, mask);
  if (const auto found = table_ids_.find(key); found != table_ids_.end()) return found->second;
  ShardTable out;
  out.view = view_id;
  out.mask = mask;
  out.shard_of_device.assign(static_cast<size_t>(device_count_), -1);
  out.device_of_shard.assign(static_cast<size_t>(mesh_view.distinct_count(mask)), -1);
  for (int64_t position = 0; position < mesh_view.position_count(); ++position) {
    const int64_t device = mesh_view.flat(position);
    if (device < 0 || device >= device_count_) {
      throw core::Error(
          "too_few_devices",
          fmt::format("a mesh of the program names device {}, but the run has {} devices", device, device_count_));
    }
    const auto coords = mesh_view.coordinates(mesh_view.all(), position);
    const auto shard = static_cast<int32_t>(mesh_view.distinct_index(mask, coords));
    out.shard_of_device[static_cast<size_t>(device)] = shard;
    auto& first = out.device_of_shard[static_cast<size_t>(shard)];
    if (first < 0) first = static_cast<int32_t>(device);
  }
  tables_.push_back(std::move(out));
  const auto id = static_cast<TableId>(tables_.size() - 1);
  table_ids_.emplace(key, id);
  return id;
}

MapId TableSet::projection(TableId from, TableId to, bool is_collective) {
  if (from == to) return kIdentity;
  const auto key = std::pair(from, to);
  if (const auto found = projections_.find(key); found != projections_.end()) return found->second;
  const ShardTable& source = (*this)[from];
  const ShardTable& target = (*this)[to];
  std::vector<int32_t> out;
  out.reserve(source.device_of_shard.size());
  for (const int32_t device : source.device_of_shard) {
    int32_t shard = target.shard_of_device[static_cast<size_t>(device)];
    if (shard < 0) {
      if (target.count() != 1 && !is_collective) {
        throw core::Error(
            "unsupported_partition",
            fmt::format("a value is read on device {}, which is not in the mesh that the value is sharded over",
                        device));
      }
      shard = 0;
      reads_elsewhere_ = reads_elsewhere_ || !is_collective;
    }
    out.push_back(shard);
  }
  const MapId id = intern(std::move(out), target.count());
  if (!is_collective) projections_.emplace(key, id);
  return id;
}

MapId TableSet::compose(MapId first, MapId second, TableId from) {
  if (second == kIdentity) return first;
  if (first == kIdentity) return second;
  std::vector<int32_t> out;
  const int64_t count = (*this)[from].count();
  for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(at(second, at(first, i))));
  return intern(std::move(out), -1);
}

MapId TableSet::intern(std::vector<int32_t> entries, int64_t to_count) {
  bool identity = to_count == static_cast<int64_t>(entries.size());
  for (size_t i = 0; identity && i < entries.size(); ++i) identity = entries[i] == static_cast<int32_t>(i);
  if (identity) return kIdentity;
  if (const auto found = map_ids_.find(entries); found != map_ids_.end()) return found->second;
  maps_.push_back(entries);
  const auto id = static_cast<MapId>(maps_.size() - 1);
  map_ids_.emplace(std::move(entries), id);
  return id;
}

tensor::Dims TableSet::coordinates(TableId id, int64_t shard) const {
  const ShardTable& owner = (*this)[id];
  return view(owner.view).coordinates(owner.mask, shard);
}

void TableSet::move_into(Plan& plan) {
  plan.views = std::move(views_);
  plan.tables = std::move(tables_);
  plan.maps = std::move(maps_);
}

}  // namespace meshd::compile
