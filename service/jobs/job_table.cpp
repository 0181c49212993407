// Jobs as clients see and end them.
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
  const core::Error reason("cancelled", "the job was cancelled");
  job->end(&Job::cancelled, reason);
  end_waiting(job, reason);
}

}  // namespace meshd::jobs
