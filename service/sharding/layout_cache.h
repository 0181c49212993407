// A cache of layouts: a layout depends on shape, mesh and sharding alone (behaviour G39).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "service/core/locked.h"
#include "service/core/lru_cache.h"
#include "service/sharding/layout.h"

namespace meshd::sharding {

/// Any thread. Keeps the layouts used last. A layout has an entry for each position of its mesh, so their bytes are
/// bounded, too: a larger one is made anew each time.
class LayoutCache {
 public:
  explicit LayoutCache(size_t entries = 256, int64_t most_bytes = int64_t{4} << 20)
      : state_(State{core::LruCache<LayoutRef>(entries, most_bytes), {}}) {}
  /// As make_layout. Shardings that are written differently have entries of their own.
  std::shared_ptr<const Layout> get(std::span<const int64_t> global_dims, const TensorSharding& sharding);

  struct Counters {
    int64_t count = 0;  ///< layouts made
    int64_t hits = 0;
  };
  [[nodiscard]] Counters counters() const;

 private:
  using LayoutRef = std::shared_ptr<const Layout>;
  struct State {
    core::LruCache<LayoutRef> layouts;
    Counters counters;
  };
  core::Locked<State> state_;
};

}  // namespace meshd::sharding
