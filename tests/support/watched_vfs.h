// A sqlite3_vfs that asks a SystemWatcher before it lets the system's own work, and tells it what was done.
#pragma once

#include <memory>
#include <string>

#include "tests/support/system_watcher.h"

namespace meshd::testing {

/// Registered as long as it lives; every database opened through `name()` must be closed before. `watcher` must outlive
/// it. Operations: sql_open, sql_delete, sql_read, sql_write, sql_truncate, sql_sync, sql_size, sql_shm.
class WatchedVfs {
 public:
  explicit WatchedVfs(SystemWatcher& watcher);
  WatchedVfs(const WatchedVfs&) = delete;
  WatchedVfs& operator=(const WatchedVfs&) = delete;
  ~WatchedVfs();
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Impl;
  std::string name_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::testing
