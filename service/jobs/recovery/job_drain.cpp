// The end of the server: jobs finish, or go back into the queue for the next start.
#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {
namespace {

// A cancelled run ends at its next work item; its job then writes its row.
constexpr std::chrono::milliseconds kCancelTime{1'000};

}  // namespace

bool JobRunner::drain(std::chrono::milliseconds time) {
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
  }
  watchers_.notify_all();
  stop_running(Stop::kWaiting);
  const auto wait_for_all = [&](std::chrono::milliseconds limit) {
    std::unique_lock held(mutex_);
    return changed_.wait_for(held, limit, [&] { return counters_.running == 0 && entered_ == 0; });
  };
  if (wait_for_all(time)) return true;
  stop_running(Stop::kAll);
  if (wait_for_all(kCancelTime)) return true;
  put_back_running();
  return false;
}

void JobRunner::put_back_running() {
  std::vector<JobName> left;
  {
    const std::lock_guard held(mutex_);
    for (const auto& [name, job] : live_) left.push_back(name);
  }
  try {
    store_.catalog().write([&](storage::Transaction& transaction) {
      for (const auto& [principal, id] : left) {
        auto row = transaction.job(id, principal);
        if (!row) continue;
        row->state = storage::JobState::kQueued;
        row->started.reset();
        static_cast<void>(transaction.update_job(*row));  // false: it is over by now, or still queued
      }
    });
  } catch (const core::Error&) {
    // Their rows stay kRunning: the next start treats that as a crash and runs them again, too.
  }
}

void JobRunner::stop_running(Stop which) {
  if (which == Stop::kAll) all_end_ = true;
  std::vector<JobRef> left;
  {
    const std::lock_guard held(mutex_);
    for (const auto& [name, job] : live_) left.push_back(job);
  }
  for (const JobRef& job : left) {
    if (which == Stop::kWaiting) {
      // A job behind a failed one of its session waits for a client, too, which cannot come any more.
      const bool is_held = job->is_held();
      const std::lock_guard held(job->mutex);
      if (!job->waits && !is_held) continue;
    }
    job->end(&Job::stopped, draining());
  }
}

}  // namespace meshd::jobs
