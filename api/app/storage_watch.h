// Asks storage how it is, once a second, on a thread of its own: probes show the last answer, so that a disk that hangs
// keeps no probe waiting but makes it say so.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "api/routes/routes.h"
#include "service/core/clock.h"
#include "storage/store.h"

namespace meshd::api {

/// Any thread.
class StorageWatch {
 public:
  StorageWatch(storage::Store& store, const core::Clock& clock);
  ~StorageWatch();
  StorageWatch(const StorageWatch&) = delete;
  StorageWatch& operator=(const StorageWatch&) = delete;

  /// At most about a second old, unless the disk hangs.
  [[nodiscard]] StorageSample sample() const;

 private:
  void run();

  storage::Store& store_;
  const core::Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  storage::StoreHealth last_;
  core::SteadyTime looked_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace meshd::api
