// Binds the arguments of a job to its plan, when its run begins: buffers in the order of the plan, from the request,
// from arrays, or left to the processes that need them.
#pragma once

#include <cstddef>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/core/checkpoint.h"
#include "service/device/engine.h"
#include "service/jobs/job.h"

namespace meshd::jobs {

/// Any thread; for one job one at a time.
class ArgumentBinder {
 public:
  ArgumentBinder(arrays::ArrayStore& arrays, device::Executor& engine) : arrays_(arrays), engine_(engine) {}

  /// What this process need not have of a run of several: shards of stored arrays that others have or read, and of
  /// results that are large enough to be stored where they are made.
  [[nodiscard]] device::ApartShards find_apart(const Job& job) const;
  /// Buffers in the order of the plan; donated arrays give theirs up for the time being. Throws precondition_failed,
  /// sharding_mismatch, and what the arrays throw.
  std::vector<device::RunArgument> bind(Job& job, core::Checkpoint& checkpoint);

 private:
  device::RunArgument bind_one(Job& job, size_t i);
  device::RunArgument bind_array(Job& job, size_t i);
  void give_files(device::RunArgument& bound, const arrays::ArrayRef& array,
                  const arrays::ArrayStore::Referred& referred, const compile::PlanParameter& wanted);

  arrays::ArrayStore& arrays_;
  device::Executor& engine_;
};

}  // namespace meshd::jobs
