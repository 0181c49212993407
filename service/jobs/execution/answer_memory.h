// Memory for the answer of a job, which it takes before the answer is made: for its text in the account `answers` of
// the memory ledger, for results that are sent as they are in an account apart. Without room a job of a request is
// refused, one in the background waits.
#pragma once

#include <cstdint>
#include <memory>

#include "service/core/clock.h"
#include "service/core/memory_ledger.h"
#include "service/core/waits/waiter.h"
#include "service/jobs/job.h"
#include "service/jobs/queue/job_waits.h"

namespace meshd::jobs {

/// Any thread; a job's answer is its executor's.
class AnswerMemory {
 public:
  AnswerMemory(core::MemoryLedgerRef ledger, const core::Clock& clock, const JobWaits& waits);

  /// Holds what the answer takes, in the result. Throws memory_exceeded; memory_full for a job of a request, while one
  /// in the background waits.
  void hold(Job& job, JobResult& result, const core::WaiterRef& waiter);
  /// Memory of results that are sent as they are, as the ledger shows its accounts; named "files".
  [[nodiscard]] core::MemoryLedger::Stats files() const;

 private:
  /// Null: so few that they are not worth a reservation.
  std::shared_ptr<core::MemoryReservation> reserve(const core::MemoryLedgerRef& ledger, int64_t bytes, Job& job,
                                                   const core::WaiterRef& waiter) const;

  const core::MemoryLedgerRef ledger_;  ///< null: nothing is counted
  const core::MemoryLedgerRef unsent_;  ///< of results that are sent as they are, apart from all other answers
  const core::Clock& clock_;
  const JobWaits& waits_;
};

/// Of a result that is sent as it is: whoever has a shard of it holds the memory of the answer.
void hold_results(const JobRequest& request, JobResult& result);

}  // namespace meshd::jobs
