// Jobs that a restart finds: they go back into the queues, in the order of their sessions.
#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {

void JobRunner::recover(const Decoder& decode) {
  // Queued when all of them keep what they read: none may be replaced by another that starts before.
  std::vector<JobRef> recovered;
  storage::PageRequest page{storage::kMaxPageSize, ""};
  do {
    const auto queued = store_.catalog().read([&](storage::Reader& reader) { return reader.queued_jobs(page); });
    for (const storage::JobRow& listed : queued.items) {
      const auto row =
          store_.catalog().read([&](storage::Reader& reader) { return reader.job(listed.id, listed.principal); });
      if (!row) continue;
      JobRef job;
      const auto queue = row->session.empty() ? nullptr : sessions_.queue(row->session);
      try {
        auto [request, encode] = decode(*row);
        job = prepare(std::move(request));
        job->encode = std::move(encode);
        job->row = *row;
        job->has_row = true;
        job->accepted = clock_.steady();
        job->deadline = job->accepted + options_.longest;
        if (row->deadline) {
          const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*row->deadline - clock_.wall());
          job->deadline = job->accepted + std::max(left, std::chrono::milliseconds(0));
        }
        promise_results(*job);
        arrays_.release(job->donated, row->id);
        arrays_.reserve(job->donated, row->id);
        keep_arguments(*job);
        job->queue = queue;
        if (queue != nullptr) queue->enter(row->number, job->is_ordered, job->uses);
        {
          const std::lock_guard held(mutex_);
          places_.add(row->principal, row->session);
        }
        recovered.push_back(job);
      } catch (const core::Error& error) {
        if (job != nullptr) withdraw_results(*job, "failed: " + error.detail());
        arrays_.release_all(row->principal, row->id);
        storage::JobRow failed = *row;
        failed.state = storage::JobState::kFailed;
        failed.error_code = std::string(error.code().word());
        failed.error_detail = error.detail();
        failed.finished = clock_.wall();
        bool halts = false;
        store_.catalog().write_then(
            [&](storage::Transaction& transaction) {
              transaction.release_arrays(failed.id, failed.principal);
              transaction.update_job(failed);
              halts = !failed.session.empty() && transaction.halt_session(failed.session, failed.number);
            },
            [&] {
              if (halts) queue->halt(failed.number);
            });
        Job ended;
        ended.row = std::move(failed);
        ended.in_background = true;
        ended.accepted = clock_.steady();
        note_end(ended, &error, 0);
      }
    }
    page.cursor = queued.next;
  } while (!page.cursor.empty());
  for (const JobRef& job : recovered) enqueue(job);
}

}  // namespace meshd::jobs
