#include "api/app/storage_watch.h"

namespace meshd::api {

namespace {

constexpr std::chrono::seconds kEvery{1};
constexpr std::chrono::seconds kFresh{10};

}  // namespace

StorageWatch::StorageWatch(storage::Store& store, const core::Clock& clock)
    : store_(store), clock_(clock), last_(store.health()), looked_(clock.steady()), thread_([this] { run(); }) {}

StorageWatch::~StorageWatch() {
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

StorageSample StorageWatch::sample() const {
  const std::lock_guard held(mutex_);
  return {last_, clock_.steady() - looked_ <= kFresh};
}

void StorageWatch::run() {
  std::unique_lock held(mutex_);
  while (!stopping_) {
    wake_.wait_for(held, kEvery);
    if (stopping_) return;
    held.unlock();
    storage::StoreHealth health = store_.health();
    held.lock();
    last_ = std::move(health);
    looked_ = clock_.steady();
  }
}

}  // namespace meshd::api
