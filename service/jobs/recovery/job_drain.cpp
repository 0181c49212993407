// The end of the server: jobs finish, or go back into the queue for the next start.
#include "service/core/error.h"
#include "service/jobs/recovery/recovery.h"

namespace meshd::jobs {
namespace {

// A cancelled run ends at its next work item; its job then writes its row.
constexpr std::chrono::milliseconds kCancelTime{1'000};

}  // namespace

void Recovery::stop() {
  gate_.close();
  queue_.stop();
  waits_.stop();
}

void Recovery::stop_all() {
  waits_.stop_all();
  for (const JobRef& job : live_.all()) job->end(&Job::stopped, draining());
}

bool Recovery::drain(std::chrono::milliseconds time) {
  for (const JobRef& job : live_.all()) {
    // A job behind a failed one of its session waits for a client, too, which cannot come any more.
    if (job->waits_for_client() || job->is_held()) job->end(&Job::stopped, draining());
  }
  if (gate_.wait_until_empty(time)) return true;
  stop_all();
  if (gate_.wait_until_empty(kCancelTime)) return true;
  put_back_running();
  return false;
}

void Recovery::put_back_running() {
  const std::vector<JobRef> left = live_.all();
  try {
    catalog_.write([&](storage::Transaction& transaction) {
      for (const JobRef& job : left) {
        auto row = transaction.job(job->row.id, job->row.principal);
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

}  // namespace meshd::jobs
