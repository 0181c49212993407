// The commit of a job. Steps of commit():
//   1. Lay the results out; write and sync the blobs of new durable arrays.
//   2. Wait until earlier jobs have read what this one updates, until the session is not halted before it, and, when
//      it has effects, until they may enter the log. Again when the transaction finds the session halted by now.
//   3. Write and sync the blobs of updated arrays.
//   4. One transaction: array rows, donations, effects, used infeed entries, the job's end. A job without any has none.
//   5. Publish new arrays, drop donated ones, notify readers of the log.
#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/core/planted_bugs.h"
#include "service/jobs/admission/job_arrays.h"
#include "service/jobs/commit/outputs.h"
#include "service/jobs/execution/binding.h"

namespace meshd::jobs {
namespace {

using storage::Durability;
using storage::JobState;

// Its row is known to be there: rows of arrays in memory are not waited for, unless they have a name.
bool has_row(const arrays::ArrayRef& array) {
  return array->info().durability == Durability::kDurable || !array->info().name.empty();
}

// Its transaction came second: nothing of it is written.
core::Error is_over_already(const std::string& id) { return {"conflict", "job '" + id + "' is over already"}; }

// The effects that are not in the log yet.
std::vector<storage::EffectRow> rows_of(const Job& job, const JobResult& result) {
  std::vector<storage::EffectRow> rows;
  if (job.request.session.empty()) return rows;
  // Those before them are in the log; of a streaming job they are no longer here.
  const size_t first = job.streams() ? 0 : job.committed.size();
  for (size_t i = first; i < result.effects.size(); ++i)
    rows.push_back(
        effects::to_row(result.effects[i].effect, job.row.id, job.committed_count() + static_cast<int64_t>(i - first)));
  return rows;
}

// In the transaction.
void log_effects(const Job& job, std::vector<storage::EffectRow>& rows, storage::Transaction& transaction) {
  const std::string& session = job.request.session;
  if (!rows.empty()) transaction.append_effects(session, rows);
  const int64_t effect_count = job.committed_count() + static_cast<int64_t>(rows.size());
  if (job.effect_order != sessions::EffectOrder::kNone &&
      transaction.has_effects_of_job(session, job.row.id, effect_count)) {
    throw core::Error(
        "nondeterministic_job",
        fmt::format("job '{}' had {} effects this time, and its run before has logged more", job.row.id, effect_count));
  }
  if (core::is_planted(core::PlantedBug::kAppendTwiceOnRetry) && job.row.attempt > 1) {
    auto again = rows;
    for (storage::EffectRow& row : again) row.step = -1;
    transaction.append_effects(session, again);
  }
}

// In the transaction: what the answer says of effects.
void note_logged(const Job& job, const std::vector<storage::EffectRow>& rows, JobResult& result) {
  if (job.streams()) {
    result.effects.clear();
    result.streamed = job.streamed;
    result.streamed->add(rows);
    return;
  }
  if (job.request.session.empty()) return;
  for (size_t i = 0; i < result.effects.size(); ++i) {
    const bool is_early = i < job.committed.size();
    result.effects[i].sequence = is_early ? job.committed[i].first : rows[i - job.committed.size()].sequence;
    result.effects[i].number = is_early ? job.committed[i].second : rows[i - job.committed.size()].number;
  }
}

}  // namespace

void Commit::commit(Job& job, device::RunOutcome& outcome, JobResult& result, core::Waiter& waiter) {
  const core::SteadyTime start = clock_.steady();
  Outputs outputs = lay_out(job, outcome, result);
  if (!outputs.left.empty()) store_left(outputs, *outcome.held);
  const bool stores_durable =
      !outputs.stored.empty() && (job.request.durability == Durability::kDurable || !job.request.result_names.empty());
  const bool donates_durable = std::any_of(job.donated.begin(), job.donated.end(), has_row);
  arrays::ArrayStore::Prepared prepared;
  if (!outputs.stored.empty()) prepared = arrays_.prepare(std::move(outputs.stored));

  result.timings = job.timings;
  if (job.has_row || stores_durable || donates_durable || !outputs.updates.empty()) {
    do {
      waits_.wait_to_commit(job, waiter);
    } while (!write_commit(job, prepared, outputs.updates, result));
  } else if (prepared.rows != nullptr) {
    store_.catalog().write_async(prepared.rows, [](const std::exception_ptr&) {});
  }
  if (outputs.left_of_updates) outputs.left_of_updates->keep();
  job.promised.clear();
  // Donated memory that no result took is free from here on.
  job.taken.clear();
  if (prepared.rows != nullptr) prepared.committed();
  for (size_t i = 0; i < result.results.size() && outcome.held != nullptr; ++i) {
    const JobValue& value = result.results[i];
    if (value.array != nullptr)
      outcome.held->became(i, version_name(*value.array, std::max<int64_t>(value.version, 1)));
  }
  outcome.held = nullptr;
  consume_memory(job);
  job.timings.commit_ms = core::milliseconds_between(start, clock_.steady());
  result.timings = job.timings;
  const bool is_logged = job.committed_count() > 0;
  statistics_.note_end(job, nullptr, is_logged ? job.committed_count() : static_cast<int64_t>(result.effects.size()));
  leave(job, Leave::kOver);
  if (is_logged) log_.notify(job.request.session);
}

void Commit::consume_memory(Job& job) {
  std::vector<arrays::ArrayRef> memory_donated;
  std::remove_copy_if(job.donated.begin(), job.donated.end(), std::back_inserter(memory_donated), has_row);
  arrays_.consume(memory_donated, job.row.id);
  if (!memory_donated.empty()) {
    store_.catalog().write_async(arrays_.consume_rows(memory_donated, job.row.id), [](const std::exception_ptr&) {});
  }
}

void Commit::write_done(Job& job, const JobResult& result, storage::Transaction& transaction) {
  job.row.state = JobState::kDone;
  job.row.finished = clock_.wall();
  job.row.environment = environment_;
  if (job.encode != nullptr) job.row.answer = job.encode(result);
  if (!transaction.update_job(job.row)) throw is_over_already(job.row.id);
}

bool Commit::write_commit(Job& job, const arrays::ArrayStore::Prepared& prepared,
                          const std::vector<arrays::ArrayStore::Update>& updates, JobResult& result) {
  const JobRequest& request = job.request;
  std::vector<storage::EffectRow> rows = rows_of(job, result);
  if (job.has_row) result.job = job.row.id;
  std::vector<arrays::ArrayRef> durable_donated;
  std::copy_if(job.donated.begin(), job.donated.end(), std::back_inserter(durable_donated), has_row);
  const auto consume = arrays_.consume_rows(durable_donated, job.row.id);
  if (core::is_planted(core::PlantedBug::kStreamBeforeCommit) && !rows.empty()) {
    store_.catalog().write([&](storage::Transaction& early) { early.append_effects(request.session, rows); });
    log_.notify(request.session);
  }
  const auto used = job.recorder->used();
  // Has the arrays' write turns until it is destroyed: not while the job waits for its session.
  arrays::ArrayStore::PreparedUpdates updated;
  if (!updates.empty()) updated = arrays_.prepare_updates(updates, job.to_read, request.session);
  bool is_held = false;
  store_.catalog().write_then(
      [&](storage::Transaction& transaction) {
        // A job before it may have failed since it looked at the queue.
        if (job.has_row && transaction.is_cancel_requested(job.row.id, job.row.principal)) throw was_cancelled();
        is_held = job.queue != nullptr && transaction.is_halted_before(request.session, job.row.number);
        if (is_held) return;
        consume(transaction);  // their names are free for the results
        if (prepared.rows != nullptr) prepared.rows(transaction);
        if (updated.rows != nullptr) updated.rows(transaction);
        log_effects(job, rows, transaction);
        note_logged(job, rows, result);
        for (const auto& [queue, last] : used) transaction.use_infeeds(request.session, queue, last);
        if (job.has_row) write_done(job, result, transaction);
        free_arguments(job, arrays_);  // whoever replaces one of them now commits after this job
      },
      [&] {
        if (is_held) return;
        // Updated arrays take their new shards in the order of commits.
        if (updated.rows != nullptr) updated.committed();
        // Whoever still reads a donated one is told so when its files are gone.
        arrays_.consume(durable_donated, job.row.id);
      });
  if (!is_held) job.note_committed(rows);
  return !is_held;
}

}  // namespace meshd::jobs
