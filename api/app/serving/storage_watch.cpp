#include "api/app/serving/storage_watch.h"

#include <utility>

namespace meshd::api {

namespace {

constexpr std::chrono::seconds kEvery{1};
constexpr std::chrono::seconds kFresh{10};

}  // namespace

StorageWatch::StorageWatch(storage::Store& store, const core::Clock& clock)
    : store_(store),
      clock_(clock),
      last_(store.health()),
      looked_(clock.steady()),
      looks_(
          kEvery, [this] { look(); }, [](const std::string&) {}) {
}  // a look that fails is no look: the sample gets old

StorageSample StorageWatch::sample() const {
  const std::lock_guard held(mutex_);
  return {last_, clock_.steady() - looked_ <= kFresh};
}

void StorageWatch::look() {
  storage::StoreHealth health = store_.health();
  const std::lock_guard held(mutex_);
  last_ = std::move(health);
  looked_ = clock_.steady();
}

}  // namespace meshd::api
