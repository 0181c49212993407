// What a job holds in memory while it waits, as the account `waiting` of the memory ledger has room:
//   queued      its request and its program. Without room they leave memory, and are read again from its row in time
//   not next    its results, until the jobs before it in the session are over. Without room it does not begin before
#pragma once

#include <cstdint>
#include <optional>

#include "service/core/clock.h"
#include "service/core/memory_ledger.h"
#include "service/core/waits/waiter.h"
#include "service/jobs/job.h"
#include "service/jobs/queue/job_waits.h"
#include "service/jobs/stored/stored_job.h"

namespace meshd::jobs {

/// Any thread; a job is held by one at a time.
class WaitingMemory {
 public:
  WaitingMemory(core::MemoryLedgerRef ledger, storage::Catalog& catalog, compile::Compiler& compiler,
                const core::Clock& clock, JobWaits& waits)
      : ledger_(std::move(ledger)), catalog_(catalog), compiler_(compiler), clock_(clock), waits_(waits) {}

  /// What rows are read with from here on; before, no request leaves memory. Once, before jobs are accepted.
  void read_rows_with(const StoredJobSources& sources) { sources_.emplace(sources); }

  /// Counts what a background job holds while it waits; where there is no room, its request will leave memory. False:
  /// it cannot.
  bool hold_request(Job& job, int64_t stored_bytes);
  /// What is in the job's row leaves memory, if it has to.
  static void unload_request(Job& job);
  /// It comes back.
  void load_request(Job& job, const core::WaiterRef& waiter);
  /// Waits until the job is next in its session, unless there is room for its results until then.
  void wait_for_room(Job& job, core::Waiter& waiter);

 private:
  bool try_hold_results(Job& job) const;
  /// Until some may have been given back.
  void wait_for_memory(Job& job, const core::WaiterRef& waiter) const;

  const core::MemoryLedgerRef ledger_;  ///< null: nothing is counted
  storage::Catalog& catalog_;
  compile::Compiler& compiler_;
  const core::Clock& clock_;
  JobWaits& waits_;
  std::optional<StoredJobSources> sources_;
};

}  // namespace meshd::jobs
