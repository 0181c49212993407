// The end of a job that does not commit. Steps of fail():
//   1. Donated arrays get back what the run did not overwrite, and are free again.
//   2. A job that the stop of the server ends goes back into the queue, in its row and in its session's queue.
//   3. Any other writes one transaction: its row, effects that it leaves, the entry of its end, released arrays, the
//      session that it halts. What it has promised is lost. Where the disk is full, and the storage's reserve used, it
//      waits for room: its client is not told of an end that a restart would not know.
//   4. The job leaves; whoever waits for it is notified.
#include <algorithm>
#include <chrono>

#include "service/core/error.h"
#include "service/core/planted_bugs.h"
#include "service/jobs/admission/job_arrays.h"
#include "service/jobs/commit/commit.h"
#include "service/jobs/dependency.h"

namespace meshd::jobs {
namespace {

using storage::JobState;

constexpr std::chrono::seconds kLongestFull{10};
constexpr std::chrono::milliseconds kFullAgain{50};  // nobody notifies of room on a disk

// Of a streaming job that has failed: what it did since its last commit, if it may enter the log.
std::vector<storage::EffectRow> effects_to_leave(Job& job, const core::Error& error) {
  if (!job.streams() || job.recorder == nullptr || is_from_outside(error)) return {};
  if (error.code() == core::ErrorCode("nondeterministic_job")) return {};
  if (!job.queue->is_next_in_order(job.row.number)) return {};
  return job.recorder->open_rows(job.row.id);
}

}  // namespace

void Commit::fail(Job& job, const core::Error& error, core::Waiter& waiter) {
  return_taken(job);
  if (job.cannot_run) {
    arrays_.release_all(job.row.principal, job.row.id);
  } else {
    arrays_.release(job.donated, job.row.id);
  }
  // A job that a shutdown ended is not over: it is queued again, and no attempt is counted.
  if (error.code() == core::ErrorCode("draining")) {
    job.to_read.clear();  // they must not be replaced before it runs again
    put_back(job);
    return leave(job, Leave::kQueued);
  }
  if (job.has_row) write_failure(job, error, waiter);
  withdraw_results(job, arrays_, how_it_ended(job.row));
  statistics_.note_end(job, &error, job.committed_count());
  leave(job, Leave::kOver);
  // The entry that says how it ended.
  if (job.effect_order != sessions::EffectOrder::kNone) log_.notify(job.row.session);
}

void Commit::return_taken(Job& job) {
  std::vector<arrays::ArrayRef> spoilt;
  for (auto& [array, shards] : job.taken) {
    const bool is_spoilt =
        std::any_of(job.overwritten.begin(), job.overwritten.end(), [&, a = array](int64_t position) {
          const auto* argument = std::get_if<ArrayArgument>(&job.request.arguments[static_cast<size_t>(position)]);
          return argument != nullptr && !argument->slices && argument->array == a;
        });
    if (is_spoilt && !core::is_planted(core::PlantedBug::kReuseDonatedStoreEarly)) {
      spoilt.push_back(array);
    } else {
      arrays_.give_back(array, std::move(shards));
    }
  }
  job.taken.clear();
  arrays_.spoil(spoilt, job.row.id);
}

void Commit::put_back(Job& job) {
  if (!job.has_row || job.row.state != JobState::kRunning) return;
  job.row.state = JobState::kQueued;
  job.row.started.reset();
  try {
    // False: the end of the server has put it back already.
    store_.catalog().write(
        [&](storage::Transaction& transaction) { static_cast<void>(transaction.update_job(job.row)); });
  } catch (const core::Error&) {
    // Its row stays kRunning: the next start treats that as a crash and runs it again, too.
  }
}

void Commit::write_failure(Job& job, const core::Error& error, core::Waiter& waiter) {
  const core::SteadyTime end = clock_.steady() + kLongestFull;
  while (!try_to_write_failure(job, error)) {
    const core::SteadyTime now = clock_.steady();
    if (now >= end || job.is_stopped()) {
      // The row is unchanged: after a restart the job is queued again. Its arguments stay reserved until then.
      return job.to_read.clear();
    }
    waiter.wait(std::min(end, now + kFullAgain));
  }
}

bool Commit::try_to_write_failure(Job& job, const core::Error& error) {
  const bool cancelled = error.code() == core::ErrorCode("cancelled");
  job.row.state = cancelled ? JobState::kCancelled : JobState::kFailed;
  job.row.error_code = std::string(error.code().word());
  job.row.error_detail = error.detail() + why_it_differs(job, error);
  job.row.finished = clock_.wall();
  job.row.answer.clear();  // of a commit that was refused
  // One that ended because the session is halted already does not halt it again: it may be resumed by now.
  const bool may_halt = !cancelled && error.code() != core::ErrorCode("session_halted") && job.queue != nullptr;
  bool halts = false;
  std::vector<storage::EffectRow> left = effects_to_leave(job, error);
  const auto write = [&] {
    store_.catalog().write_then(
        [&](storage::Transaction& transaction) {
          // False: whoever has ended it before has written how.
          if (!transaction.update_job(job.row)) return left.clear();
          if (!left.empty()) transaction.append_effects(job.row.session, left);
          transaction.mark_end(job.row.session, job.row.id, job.row.state, job.row.error_code);
          transaction.release_arrays(job.row.id, job.row.principal);
          halts = may_halt && transaction.halt_session(job.row.session, job.row.number);
          free_arguments(job, arrays_);
        },
        // Before the job leaves the queue, so that nobody behind it is next.
        [&] {
          if (halts) job.queue->halt(job.row.number);
        },
        // On a full disk the end of a job still finds room: without it the job would run again after a restart,
        // behind later ones, and its client was told that it has failed.
        left.empty() ? storage::Space::kFrees : storage::Space::kTakes);
  };
  try {
    try {
      write();
    } catch (const core::Error&) {
      if (left.empty()) throw;
      // They differ from those that a run before has logged, or there is no space: it ends all the same.
      left.clear();
      write();
    }
    job.note_committed(left);
  } catch (const core::Error& failure) {
    if (failure.code() == core::ErrorCode("disk_full")) return false;
    // The row is unchanged: after a restart the job is queued again. Its arguments stay reserved until then.
    job.to_read.clear();
  }
  return true;
}

// A run that another build or processor began may differ in the last bits of what it logs.
std::string Commit::why_it_differs(const Job& job, const core::Error& error) const try {
  const auto before = job.row.environment;
  if (error.code() != core::ErrorCode("nondeterministic_job") || !before || *before == environment_) return {};
  return store_.catalog().read([&](storage::Reader& reader) {
    return "; it was accepted by '" + reader.environment(*before) + "', and ran again with '" +
           reader.environment(environment_) + "'";
  });
} catch (const core::Error&) {
  return {};  // storage fails: the job ends all the same
}

void Commit::leave(Job& job, Leave how) {
  free_arguments(job, arrays_);
  job.charge.release();
  if (job.queue != nullptr && how == Leave::kOver) job.queue->leave(job.row.number);
  if (job.queue != nullptr && how == Leave::kQueued) job.queue->put_back(job.row.number);
  live_.remove(job);
  {
    const std::lock_guard held(job.mutex);
    job.over = true;
    job.waiter = nullptr;
  }
  job.watchers.notify_all();
  queue_.start_ready();
}

}  // namespace meshd::jobs
