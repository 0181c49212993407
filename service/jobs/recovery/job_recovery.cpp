// Jobs that a restart finds: they go back into the queues, in the order of their sessions.
#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"
#include "service/jobs/stored/stored_job.h"

namespace meshd::jobs {

// Rows become jobs in three steps:
//   1. Read its stored form and prepare it, as when it was accepted; its promised results, reservations and arguments
//   are as they were.
//   2. One that cannot run any more (an array that it reads is lost) keeps why: it waits like any other, holds what it
//      reserved, and fails in the session's order.
//   3. All are queued when all keep what they read: none may be replaced by another that starts before.
void JobRunner::recover(const Recovery& recovery) {
  recovery_.emplace(recovery);
  std::vector<JobRef> recovered;
  storage::PageRequest page{storage::kMaxPageSize, ""};
  do {
    const auto queued = store_.catalog().read([&](storage::Reader& reader) { return reader.queued_jobs(page); });
    for (const storage::JobRow& listed : queued.items) {
      const auto row =
          store_.catalog().read([&](storage::Reader& reader) { return reader.job(listed.id, listed.principal); });
      if (!row) continue;
      const JobRef job = recover_job(*row, recovery);
      list_live(job);
      if (job->queue != nullptr) job->queue->enter(row->number, job->effect_order, job->uses);
      {
        const std::lock_guard held(mutex_);
        places_.add(row->principal, row->session);
      }
      recovered.push_back(job);
    }
    page.cursor = queued.next;
  } while (!page.cursor.empty());
  for (const JobRef& job : recovered) enqueue(job);
}

JobRunner::JobRef JobRunner::recover_job(const storage::JobRow& row, const Recovery& recovery) {
  const auto begin = [&](const JobRef& job) {
    job->row = row;
    job->row.request = {};  // it stays in the row
    job->has_row = true;
    job->accepted = clock_.steady();
    job->deadline = job->accepted + options_.longest;
    if (row.deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*row.deadline - clock_.wall());
      job->deadline = job->accepted + std::max(left, std::chrono::milliseconds(0));
    }
    if (!row.session.empty()) job->queue = sessions_.queue(row.session);
    return job;
  };
  JobRef job;
  try {
    JobRequest request = row.request_version == 0 ? recovery.read_old_row(row)
                                                  : read_stored_job(row, {store_, arrays_, recovery.programs, compiler_,
                                                                          *engine_.pool(), recovery.processes});
    ResultEncoder encode = recovery.encoder(request.form);
    job = begin(prepare(std::move(request)));
    job->encode = std::move(encode);
    promise_results(*job);
    arrays_.release(job->donated, row.id);
    arrays_.reserve(job->donated, row.id);
    keep_arguments(*job);
    if (row.request_version != 0) {
      const auto in_row = static_cast<int64_t>(row.request.size());
      hold_request(*job, row.bytes ? row.bytes->length : in_row);
      unload_request(*job);
    }
    if (row.bytes) {
      job->charge = arrays_.ledger().charge_bytes(row.principal, row.bytes->length, kWhatIsKept,
                                                  quotas::ArrayLedger::Fit::kAnyway);
    }
    return job;
  } catch (const core::Error& error) {
    if (job != nullptr) withdraw_results(*job, "cannot run again");
    job = begin(std::make_shared<Job>());
    job->request.principal = row.principal;
    job->request.session = row.session;
    job->cannot_run = error;
    job->effect_order = sessions::EffectOrder::kStreaming;  // whichever it was
    return job;
  }
}

}  // namespace meshd::jobs
