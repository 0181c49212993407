// Health check of storage, once a second, on a thread of its own: probes report the last result, so that a disk that
// hangs does not block a probe but fails it.
#pragma once

#include <mutex>

#include "api/app/serving/periodic.h"
#include "api/routes/routes.h"
#include "service/core/clock.h"
#include "storage/store.h"

namespace meshd::api {

/// Any thread.
class StorageWatch {
 public:
  StorageWatch(storage::Store& store, const core::Clock& clock);

  /// At most about a second old, unless the disk hangs.
  [[nodiscard]] StorageSample sample() const;

 private:
  void look();

  storage::Store& store_;
  const core::Clock& clock_;
  mutable std::mutex mutex_;
  storage::StoreHealth last_;
  core::SteadyTime looked_;
  Periodic looks_;  // last: its thread uses the rest
};

}  // namespace meshd::api
