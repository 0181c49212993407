#include "service/sharding/layout_cache.h"

#include <algorithm>

namespace meshd::sharding {

std::shared_ptr<const Layout> LayoutCache::get(std::span<const int64_t> global_dims, const TensorSharding& sharding) {
  const std::string key = tensor::to_string(global_dims) + "|" + mesh::to_sdy(*sharding.mesh) + "|" + to_sdy(sharding);
  auto known = state_.with([&](State& state) -> std::shared_ptr<const Layout> {
    const auto found = state.entries.find(key);
    if (found == state.entries.end()) return nullptr;
    ++state.counters.hits;
    found->second.used = ++state.clock;
    return found->second.layout;
  });
  if (known != nullptr) return known;
  auto made = std::make_shared<const Layout>(make_layout(global_dims, sharding));
  state_.with([&](State& state) {
    ++state.counters.count;
    if (state.entries.size() >= entries_) {
      state.entries.erase(std::min_element(state.entries.begin(), state.entries.end(),
                                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    }
    state.entries[key] = {made, ++state.clock};
  });
  return made;
}

LayoutCache::Counters LayoutCache::counters() const {
  return state_.with([](const State& state) { return state.counters; });
}

}  // namespace meshd::sharding
