// Jobs as clients see and end them, and those that a restart finds.
#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {

JobView JobRunner::view(const std::string& id, std::string_view principal) {
  JobRef job;
  {
    const std::lock_guard held(mutex_);
    const auto found = live_.find(id);
    if (found != live_.end()) job = found->second;
  }
  JobView view;
  auto row = store_.catalog().read([&](storage::Reader& reader) { return reader.job(id, principal); });
  if (!row) throw core::Error("not_found", "there is no job '" + id + "'");
  view.row = std::move(*row);
  if (job == nullptr) return view;
  const std::lock_guard held(job->mutex);
  if (job->run != nullptr && !job->over) {
    view.progress = job->run->progress();
    view.row.state = storage::JobState::kRunning;  // its row may not have been told yet
  }
  view.waits = job->waits;
  if (job->recorder != nullptr) view.effect_count = job->recorder->count();
  return view;
}

JobView JobRunner::wait(const std::string& id, std::string_view principal, std::chrono::milliseconds time) {
  static_cast<void>(view(id, principal));
  {
    std::unique_lock held(mutex_);
    changed_.wait_for(held, time, [&] { return stopping_ || !live_.contains(id); });
  }
  return view(id, principal);
}

void JobRunner::cancel(const std::string& id, std::string_view principal) {
  const JobView current = view(id, principal);
  JobRef job;
  {
    const std::lock_guard held(mutex_);
    const auto found = live_.find(id);
    if (found != live_.end()) job = found->second;
  }
  if (job == nullptr) {
    throw core::Error("job_finished",
                      "job '" + id + "' is over: " + std::string(storage::to_string(current.row.state)));
  }
  const std::lock_guard held(job->mutex);
  job->cancelled = true;
  if (job->run != nullptr) job->run->cancel(core::Error("cancelled", "the job was cancelled"));
}

void JobRunner::recover(const Decoder& decode) {
  storage::PageRequest page{storage::kMaxPageSize, ""};
  do {
    const auto queued = store_.catalog().read([&](storage::Reader& reader) { return reader.queued_jobs(page); });
    for (const storage::JobRow& listed : queued.items) {
      const auto row = store_.catalog().read([&](storage::Reader& reader) { return reader.job(listed.id); });
      if (!row) continue;
      JobRef job;
      try {
        auto [request, encode] = decode(*row);
        job = prepare(std::move(request));
        job->encode = std::move(encode);
        job->row = *row;
        job->has_row = true;
        job->accepted = clock_.steady();
        if (row->deadline) {
          const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*row->deadline - clock_.wall());
          job->request.deadline = std::max(left, std::chrono::milliseconds(0));
        }
        arrays_.release(job->donated, row->id);
        arrays_.reserve(job->donated, row->id);
        keep_arguments(*job);
        if (!row->session.empty()) {
          job->line = sessions_.line(row->session);
          const auto session =
              store_.catalog().read([&](storage::Reader& reader) { return reader.session(row->session); });
          if (session && session->state == storage::SessionState::kClosed) job->line->close();
          job->line->enter(row->number, job->is_ordered, job->uses);
        }
        enqueue(job);
      } catch (const core::Error& error) {
        storage::JobRow failed = *row;
        failed.state = storage::JobState::kFailed;
        failed.error_code = std::string(error.code().word());
        failed.error_detail = error.detail();
        failed.finished = clock_.wall();
        store_.catalog().write([&](storage::Transaction& transaction) {
          transaction.release_arrays(failed.id);
          transaction.update_job(failed);
        });
      }
    }
    page.cursor = queued.next;
  } while (!page.cursor.empty());
}

}  // namespace meshd::jobs
