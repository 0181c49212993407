// A sqlite3_vfs that asks a FaultPlan before it lets the system's own work.
#pragma once

#include <memory>
#include <string>

#include "tests/support/fault_plan.h"

namespace meshd::testing {

/// Registered as long as it lives; every database opened through `name()` must be closed before. `plan` must outlive
/// it. Operations: sql_open, sql_delete, sql_read, sql_write, sql_truncate, sql_sync, sql_size, sql_shm.
class FailingVfs {
 public:
  explicit FailingVfs(FaultPlan& plan);
  FailingVfs(const FailingVfs&) = delete;
  FailingVfs& operator=(const FailingVfs&) = delete;
  ~FailingVfs();
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Impl;
  std::string name_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::testing
