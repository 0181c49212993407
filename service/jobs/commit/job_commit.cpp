// The commit of a job, or its failure. Steps of commit():
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
#include "service/jobs/admission/job_layouts.h"
#include "service/jobs/commit/bounded_results.h"
#include "service/jobs/dependency.h"
#include "service/jobs/execution/binding.h"
#include "service/jobs/job.h"
#include "service/mesh/mesh_document.h"

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

bool has_null(const arrays::ShardBuffers& shards) {
  return std::any_of(shards.begin(), shards.end(), [](const auto& shard) { return shard == nullptr; });
}

// Shards of a result in the array's layout: shared where the layouts agree, else copied.
arrays::ShardBuffers in_layout_of(const arrays::ArrayRef& array, const sharding::Layout& layout,
                                  arrays::ShardBuffers shards, arrays::ArrayStore& store) {
  if (layout.part_counts == array->layout().part_counts) return shards;
  arrays::ShardBuffers out = store.allocate(*array);
  arrays::copy_between(layout, shards, array->layout(), out, tensor::size_bytes(array->info().type.dtype));
  return out;
}

}  // namespace

// What a run leaves to be stored.
struct JobRunner::Outputs {
  std::vector<std::pair<arrays::ArrayRef, arrays::NewShards>> stored;  ///< new arrays
  std::vector<arrays::ArrayStore::Update> updates;
  /// Shards that other processes hold.
  struct Left {
    bool is_update = false;
    size_t place = 0;  ///< in `stored` or `updates`
    size_t result = 0;
    std::vector<int64_t> plan_shards;  ///< by shard of the array
  };
  std::vector<Left> left;
  std::optional<storage::PendingBlobs> left_of_updates;  ///< until they are committed
};

// Lays the results out as shards of arrays.
JobRunner::Outputs JobRunner::lay_out(const Job& job, device::RunOutcome& outcome, JobResult& result) {
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  Outputs outputs;
  std::vector<tensor::Dims> real;  // empty: those of the plan
  if (plan.has_bounded_results()) real = real_dims(plan, outcome.outputs);
  for (size_t i = 0; i < plan.result_count(); ++i) {
    const compile::PlanParameter& given = plan.results[i];
    JobValue value;
    value.type = given.parameter.global_type;
    value.result_info = given.parameter.result_info;
    value.sharding = result_sharding(job, i);
    const auto layout_of = [&](const tensor::Dims& dims) {
      return value.sharding ? sharding::make_layout(dims, *value.sharding) : one_device_layout(dims);
    };
    sharding::Layout layout = layout_of(value.type.dims);
    const auto update = std::find_if(request.updates.begin(), request.updates.end(),
                                     [&](const ArrayUpdate& one) { return one.result == i; });
    if (update != request.updates.end()) {
      value.array = std::get<ArrayArgument>(request.arguments[update->argument]).array;
      const int64_t version = job.read_versions.at(update->argument);
      value.version = version + 1;
      arrays::ShardBuffers shards = unbind_result(outcome.outputs[i], given, layout);
      if (has_null(shards)) {
        outputs.left.push_back({true, outputs.updates.size(), i, plan_shards_of(given, layout)});
      } else {
        shards = in_layout_of(value.array, layout, std::move(shards), arrays_);
      }
      outputs.updates.push_back({value.array, version, std::move(shards)});
    } else if (request.results != ResultMode::kNone) {
      value.shards = unbind_result(outcome.outputs[i], given, layout);
    }
    if (!real.empty() && value.type.dims != real[i]) {
      sharding::Layout wanted = layout_of(real[i]);
      if (!value.shards.empty()) {
        value.shards =
            without_padding(value.shards, layout, wanted, tensor::size_bytes(value.type.dtype), *engine_.pool());
      }
      layout = std::move(wanted);
      value.type.dims = real[i];
    }
    if (request.results == ResultMode::kArray && value.array == nullptr) {
      value.array = job.promised.empty() ? arrays_.begin(result_array(job, i, value.type)) : job.promised[i];
      outputs.stored.emplace_back(value.array, value.shards);
      if (has_null(value.shards)) {
        outputs.left.push_back({false, outputs.stored.size() - 1, i, plan_shards_of(given, layout)});
        value.shards.clear();
      }
    }
    value.layout = std::make_shared<const sharding::Layout>(std::move(layout));
    result.results.push_back(std::move(value));
  }
  outcome.outputs.clear();
  return outputs;
}

// Shards that other processes hold are durable on their disks before rows name them.
void JobRunner::store_left(Outputs& outputs, device::HeldResults& held) {
  std::vector<device::HeldResults::ToStore> wanted;
  storage::PendingBlobs unfinished(store_);
  for (const Outputs::Left& left : outputs.left) {
    const arrays::ArrayRef& array =
        left.is_update ? outputs.updates[left.place].array : outputs.stored[left.place].first;
    const arrays::ShardBuffers& shards =
        left.is_update ? outputs.updates[left.place].shards : outputs.stored[left.place].second.memory;
    for (size_t s = 0; s < shards.size(); ++s) {
      if (shards[s] != nullptr) continue;
      const int64_t shard = left.plan_shards[s];
      wanted.push_back({left.result, shard,
                        arrays_.new_blob_name(*array, static_cast<int64_t>(s), held.rank_of(left.result, shard))});
      unfinished.adopt({wanted.back().name, 0, 0});
    }
  }
  const std::vector<device::ShardFile> files = held.store(wanted);
  auto file = files.begin();
  outputs.left_of_updates.emplace(store_);
  for (const Outputs::Left& left : outputs.left) {
    if (left.is_update) {
      arrays::ArrayStore::Update& update = outputs.updates[left.place];
      for (const tensor::BufferRef& shard : update.shards) {
        storage::BlobRef& blob = update.left.emplace_back();
        if (shard != nullptr) continue;
        blob = {file->name, file->length, file->checksum};
        outputs.left_of_updates->adopt(blob);
        ++file;
      }
      continue;
    }
    arrays::NewShards& shards = outputs.stored[left.place].second;
    shards.left.emplace(store_);
    for (const tensor::BufferRef& shard : shards.memory) {
      if (shard != nullptr) continue;
      shards.left->adopt({file->name, file->length, file->checksum});
      ++file;
    }
  }
  unfinished.keep();
}

void JobRunner::commit(Job& job, device::RunOutcome& outcome, JobResult& result, core::Waiter& waiter) {
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
      wait_to_commit(job, waiter);
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
  std::vector<arrays::ArrayRef> memory_donated;
  std::remove_copy_if(job.donated.begin(), job.donated.end(), std::back_inserter(memory_donated), has_row);
  arrays_.consume(memory_donated, job.row.id);
  if (!memory_donated.empty()) {
    store_.catalog().write_async(arrays_.consume_rows(memory_donated, job.row.id), [](const std::exception_ptr&) {});
  }
  job.timings.commit_ms = core::milliseconds_between(start, clock_.steady());
  result.timings = job.timings;
  const bool is_logged = job.committed_count() > 0;
  note_end(job, nullptr, is_logged ? job.committed_count() : static_cast<int64_t>(result.effects.size()));
  leave(job, Leave::kOver);
  if (is_logged) log_.notify(job.request.session);
}

void JobRunner::wait_to_commit(Job& job, core::Waiter& waiter) {
  if (job.queue == nullptr) return;
  wait_for_session(job, waiter, [&] {
    return !job.queue->is_held(job.row.number) && (job.uses.updates.empty() || job.queue->may_update(job.row.number)) &&
           job.queue->may_log(job.row.number);
  });
}

// In the transaction: what the answer says of effects.
void JobRunner::note_logged(const Job& job, const std::vector<storage::EffectRow>& rows, JobResult& result) {
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

bool JobRunner::write_commit(Job& job, const arrays::ArrayStore::Prepared& prepared,
                             const std::vector<arrays::ArrayStore::Update>& updates, JobResult& result) {
  const JobRequest& request = job.request;
  std::vector<storage::EffectRow> rows;
  if (!request.session.empty()) {
    // Those before them are in the log; of a streaming job they are no longer here.
    const size_t first = job.streams() ? 0 : job.committed.size();
    for (size_t i = first; i < result.effects.size(); ++i)
      rows.push_back(effects::to_row(result.effects[i].effect, job.row.id,
                                     job.committed_count() + static_cast<int64_t>(i - first)));
  }
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
        if (!rows.empty()) transaction.append_effects(request.session, rows);
        const int64_t effect_count = job.committed_count() + static_cast<int64_t>(rows.size());
        if (job.effect_order != sessions::EffectOrder::kNone &&
            transaction.has_effects_of_job(request.session, job.row.id, effect_count)) {
          throw core::Error("nondeterministic_job",
                            fmt::format("job '{}' had {} effects this time, and its run before has logged more",
                                        job.row.id, effect_count));
        }
        if (core::is_planted(core::PlantedBug::kAppendTwiceOnRetry) && job.row.attempt > 1) {
          auto again = rows;
          for (storage::EffectRow& row : again) row.step = -1;
          transaction.append_effects(request.session, again);
        }
        note_logged(job, rows, result);
        for (const auto& [queue, last] : used) transaction.use_infeeds(request.session, queue, last);
        if (job.has_row) {
          job.row.state = JobState::kDone;
          job.row.finished = clock_.wall();
          job.row.environment = environment_;
          if (job.encode != nullptr) job.row.answer = job.encode(result);
          if (!transaction.update_job(job.row)) throw is_over_already(job.row.id);
        }
        free_arguments(job);  // whoever replaces one of them now commits after this job
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

// A run that another build or processor began may differ in the last bits of what it logs.
std::string JobRunner::why_it_differs(const Job& job, const core::Error& error) const try {
  const auto before = job.row.environment;
  if (error.code() != core::ErrorCode("nondeterministic_job") || !before || *before == environment_) return {};
  return store_.catalog().read([&](storage::Reader& reader) {
    return "; it was accepted by '" + reader.environment(*before) + "', and ran again with '" +
           reader.environment(environment_) + "'";
  });
} catch (const core::Error&) {
  return {};  // storage fails: the job ends all the same
}

void JobRunner::fail(Job& job, const core::Error& error) {
  return_taken(job);
  if (job.cannot_run) {
    arrays_.release_all(job.row.principal, job.row.id);
  } else {
    arrays_.release(job.donated, job.row.id);
  }
  const bool cancelled = error.code() == core::ErrorCode("cancelled");
  // A job that a shutdown ended is not over: it is queued again, and no attempt is counted.
  const bool goes_on = error.code() == core::ErrorCode("draining");
  if (goes_on) job.to_read.clear();  // they must not be replaced before it runs again
  if (job.has_row && goes_on && job.row.state == JobState::kRunning) {
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
  if (job.has_row && !goes_on) {
    job.row.state = cancelled ? JobState::kCancelled : JobState::kFailed;
    job.row.error_code = std::string(error.code().word());
    job.row.error_detail = error.detail() + why_it_differs(job, error);
    job.row.finished = clock_.wall();
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
            free_arguments(job);
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
        left.clear();  // they differ from those that a run before has logged, or there is no space: it ends all the
                       // same
        write();
      }
      job.note_committed(left);
    } catch (const core::Error&) {
      // The row is unchanged: after a restart the job is queued again. Its arguments stay reserved until then.
      job.to_read.clear();
    }
  }
  if (!goes_on) {
    withdraw_results(job, how_it_ended(job.row));
    note_end(job, &error, job.committed_count());
  }
  leave(job, goes_on ? Leave::kQueued : Leave::kOver);
  // The entry that says how it ended.
  if (!goes_on && job.effect_order != sessions::EffectOrder::kNone) log_.notify(job.row.session);
}

std::vector<storage::EffectRow> JobRunner::effects_to_leave(Job& job, const core::Error& error) {
  if (!job.streams() || job.recorder == nullptr || is_from_outside(error)) return {};
  if (error.code() == core::ErrorCode("nondeterministic_job")) return {};
  if (!job.queue->is_next_in_order(job.row.number)) return {};
  return job.recorder->open_rows(job.row.id);
}

void JobRunner::leave(Job& job, Leave how) {
  free_arguments(job);
  job.charge.release();
  if (job.queue != nullptr && how == Leave::kOver) job.queue->leave(job.row.number);
  if (job.queue != nullptr && how == Leave::kQueued) job.queue->put_back(job.row.number);
  {
    const std::lock_guard held(mutex_);
    live_.erase({job.row.principal, job.row.id});
  }
  {
    const std::lock_guard held(job.mutex);
    job.over = true;
    job.waiter = nullptr;
  }
  job.watchers.notify_all();
  changed_.notify_all();
  start_ready();
}

}  // namespace meshd::jobs
