#include "service/jobs/job_statistics.h"

#include "service/jobs/job.h"

namespace meshd::jobs {

void JobStatistics::note_end(const Job& job, const core::Error* error, int64_t effects) {
  const double job_ms = core::milliseconds_between(job.accepted, clock_.steady());
  {
    const std::lock_guard held(mutex_);
    counters_.effects_appended += effects;
    if (error != nullptr) {
      ++(error->code() == core::ErrorCode("cancelled") ? counters_.cancelled : counters_.failed);
    } else {
      ++counters_.done;
      counters_.queue_seconds.add(job.timings.queue_ms / 1000);
      counters_.run_seconds.add(job.timings.run_ms / 1000);
      counters_.commit_seconds.add(job.timings.commit_ms / 1000);
      counters_.job_seconds.add(job_ms / 1000);
    }
  }
  try {
    if (on_end_) on_end_({job.row, job.in_background, job.timings, job_ms, error, job.request.traceparent});
  } catch (const std::exception&) {
    // No memory for the line of a log: the job has ended as it has.
  }
}

void JobStatistics::note_streamed(double seconds) {
  const std::lock_guard held(mutex_);
  counters_.streamed_seconds.add(seconds);
}

JobCounters JobStatistics::counters() const {
  const std::lock_guard held(mutex_);
  return counters_;
}

}  // namespace meshd::jobs
