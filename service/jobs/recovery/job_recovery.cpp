// Jobs that a restart finds: they go back into the queues, in the order of their sessions.
#include "service/core/error.h"
#include "service/jobs/recovery/recovery.h"

namespace meshd::jobs {

// Rows become jobs in three steps:
//   1. Read its stored form and prepare it, as when it was accepted; its promised results, reservations and arguments
//   are as they were.
//   2. One that cannot run any more (an array that it reads is lost) keeps why: it waits like any other, holds what it
//      reserved, and fails in the session's order.
//   3. All are queued when all keep what they read: none may be replaced by another that starts before.
void Recovery::recover(const RowReading& reading) {
  std::vector<JobRef> recovered;
  storage::PageRequest page{storage::kMaxPageSize, ""};
  do {
    const auto queued = catalog_.read([&](storage::Reader& reader) { return reader.queued_jobs(page); });
    for (const storage::JobRow& listed : queued.items) {
      const auto row = catalog_.read([&](storage::Reader& reader) { return reader.job(listed.id, listed.principal); });
      if (!row) continue;
      const JobRef job = recover_job(*row, reading);
      live_.add(job);
      if (job->queue != nullptr) job->queue->enter(row->number, job->effect_order, job->uses);
      queue_.add_place(row->principal, row->session);
      recovered.push_back(job);
    }
    page.cursor = queued.next;
  } while (!page.cursor.empty());
  for (const JobRef& job : recovered) queue_.enqueue(job);
}

JobRef Recovery::recover_job(const storage::JobRow& row, const RowReading& reading) {
  try {
    JobRequest request = row.request_version == 0 ? reading.read_old_row(row) : read_stored_job(row, reading.sources);
    ResultEncoder encode = reading.encoder(request.form);
    return admission_.restore(row, std::move(request), std::move(encode));
  } catch (const core::Error& error) {
    return keep_failure(row, error);
  }
}

JobRef Recovery::keep_failure(const storage::JobRow& row, const core::Error& error) {
  auto job = std::make_shared<Job>();
  admission_.begin_again(*job, row);
  job->request.principal = row.principal;
  job->request.session = row.session;
  job->cannot_run = error;
  job->effect_order = sessions::EffectOrder::kStreaming;  // whichever it was
  return job;
}

}  // namespace meshd::jobs
