#include "service/sharding/layout_cache.h"

#include <fmt/core.h>

namespace meshd::sharding {
namespace {

int64_t size_bytes(const Layout& layout) {
  int64_t bytes = sizeof(Layout) + sizeof(DeviceShard) * layout.device_shards.size();
  for (const DeviceShard& shard : layout.device_shards) bytes += sizeof(IndexRange) * shard.index.size();
  const size_t dims = layout.global_dims.size() + layout.part_counts.size() + layout.shard_dims.size();
  return bytes + static_cast<int64_t>(sizeof(int64_t) * dims);
}

}  // namespace

std::shared_ptr<const Layout> LayoutCache::get(std::span<const int64_t> global_dims, const TensorSharding& sharding) {
  const std::string key =
      fmt::format("{}|{}|{}", tensor::to_string(global_dims), mesh::to_sdy(*sharding.mesh), to_sdy(sharding));
  const LayoutRef known = state_.with([&](State& state) -> LayoutRef {
    const LayoutRef* found = state.layouts.find(key);
    if (found == nullptr) return nullptr;
    ++state.counters.hits;
    return *found;
  });
  if (known != nullptr) return known;
  auto made = std::make_shared<const Layout>(make_layout(global_dims, sharding));
  const int64_t bytes = size_bytes(*made) + static_cast<int64_t>(key.size());
  return state_.with([&](State& state) -> LayoutRef {
    ++state.counters.count;
    return state.layouts.insert(key, std::move(made), bytes);
  });
}

LayoutCache::Counters LayoutCache::counters() const {
  return state_.with([](const State& state) { return state.counters; });
}

}  // namespace meshd::sharding
