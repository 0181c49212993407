// Jobs as clients see and end them.
#include <fmt/core.h>

#include <algorithm>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/jobs/commit/idempotency_keys.h"
#include "service/jobs/dependency.h"
#include "service/jobs/parts.h"

namespace meshd::jobs {
namespace {

// What a response takes beside its text: the row's answer, and the text while it grows.
constexpr int64_t kCopiesOfAnswer = 3;

core::Error no_job(const std::string& id) { return {"not_found", "there is no job '" + id + "'"}; }

// What a client sees of a run that goes on. The caller holds the job's mutex.
void show_run(const Job& job, JobView& view) {
  if (job.run != nullptr && !job.over) view.progress = job.run->progress();
  view.waits = job.waits;
  if (job.recorder != nullptr) view.effect_count = job.recorder->count();
}

}  // namespace

JobView JobRunner::view(const std::string& id, std::string_view principal, core::MemoryReservation& memory) {
  const JobRef job = parts_->live.find(id, principal);
  JobView view;
  auto row = store_.catalog().read([&](storage::Reader& reader) {
    memory.grow(core::checked_mul(reader.job_bytes(id, principal), kCopiesOfAnswer));
    auto found = reader.job(id, principal);
    if (found && found->environment) view.environment = reader.environment(*found->environment);
    return found;
  });
  if (!row) throw no_job(id);
  view.row = std::move(*row);
  if (job == nullptr) return view;
  const std::lock_guard held(job->mutex);
  show_run(*job, view);
  if (view.progress) view.row.state = storage::JobState::kRunning;  // its row may not be updated yet
  return view;
}

std::string JobRunner::result_array(const std::string& id, int64_t result, std::string_view principal) {
  const auto job = store_.catalog().read([&](storage::Reader& reader) { return reader.job_head(id, principal); });
  if (!job) throw no_job(id);
  const std::vector<std::string>& arrays = job->result_arrays;
  const auto count = static_cast<int64_t>(arrays.size());
  if (result < count) {
    const std::string& array = arrays[static_cast<size_t>(result)];
    const JobRef live = parts_->live.find(id, principal);
    const bool cannot_run = live != nullptr && live->cannot_run.has_value();
    const bool has_failed = storage::is_over(job->state) && job->state != storage::JobState::kDone;
    if (cannot_run || has_failed) throw dependency_failed(array, *job);
    return array;
  }
  if (count > 0) {
    throw core::Error("invalid_request", fmt::format("job '{}' has no result {}, only {}", id, result, count));
  }
  throw core::Error("invalid_request",
                    fmt::format("job '{}' stores no results that are known before it has run: those are of background "
                                "jobs in a session, with results as arrays",
                                id));
}

std::vector<JobView> JobRunner::running(const std::string& session) const {
  std::vector<JobRef> jobs = parts_->live.of_session(session);
  std::sort(jobs.begin(), jobs.end(), [](const JobRef& a, const JobRef& b) { return a->row.number < b->row.number; });
  std::vector<JobView> out;
  for (const JobRef& job : jobs) {
    const std::lock_guard held(job->mutex);
    if (job->run == nullptr || job->over) continue;
    JobView& view = out.emplace_back();
    view.row.id = job->row.id;
    show_run(*job, view);
  }
  return out;
}

storage::Page<storage::JobRow> JobRunner::list(std::string_view principal, const storage::JobFilter& filter,
                                               const storage::PageRequest& page) {
  return store_.catalog().read([&](storage::Reader& reader) { return reader.jobs(principal, filter, page); });
}

std::optional<JobView> JobRunner::find_repeated(std::string_view principal, std::string_view route,
                                                std::string_view key, std::string_view fingerprint,
                                                core::MemoryReservation& memory) {
  const auto known = IdempotencyKeys(store_.catalog()).find(principal, route, key, fingerprint);
  if (!known) return std::nullopt;
  const auto state =
      store_.catalog().read([&](storage::Reader& reader) { return reader.job_state(known->made, principal); });
  if (!state) {
    throw core::Error("not_found", "the job of this Idempotency-Key, '" + known->made +
                                       "', was deleted; use a new key for a new request");
  }
  return view(known->made, principal, memory);
}

JobRunner::Removal JobRunner::cancel_or_delete(const std::string& id, std::string_view principal) {
  Removal removal = Removal::kCancelled;
  store_.catalog().write(
      [&](storage::Transaction& transaction) {
        const auto state = transaction.job_state(id, principal);
        if (!state) throw no_job(id);
        if (!is_over(*state)) {
          transaction.request_cancel(id, principal);
        } else if (parts_->live.find(id, principal) == nullptr) {
          transaction.delete_job(id, principal);
          removal = Removal::kDeleted;
        }  // else it has committed a moment ago, and whoever sees it as running means to cancel it
      },
      storage::Space::kFrees);
  if (removal == Removal::kDeleted) return removal;
  // From here on it cannot commit. One that is not live was put back by the end of the server: the next start ends it.
  if (const JobRef job = parts_->live.find(id, principal)) {
    job->end(&Job::cancelled, was_cancelled());
    parts_->queue.end_waiting(job, was_cancelled());
  }
  return removal;
}

}  // namespace meshd::jobs
