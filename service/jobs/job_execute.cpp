// Running a job and committing what it gave. Steps:
//  1. bind arguments: buffers in plan order; donated arrays give theirs up for the time being
//  2. run on the engine; effects are recorded, not shown, but for those that clients see while it runs (job_serve.cpp)
//  3. wait for the session's turn when there are ordered effects
//  4. write result bytes (temp, sync, rename, sync folder)
//  5. one transaction: array rows, effects, donation, the job's end
//  6. only now: results visible, readers of the log told, the answer given
#include <algorithm>
#include <future>
#include <map>

#include "service/core/error.h"
#include "service/jobs/binding.h"
#include "service/jobs/job.h"
#include "service/mesh/mesh_document.h"

namespace meshd::jobs {
namespace {

using storage::Durability;
using storage::JobState;

double milliseconds_since(core::SteadyTime start, core::SteadyTime now) {
  return std::chrono::duration<double, std::milli>(now - start).count();
}

sharding::Layout whole_layout(const tensor::Dims& dims) {
  static const auto one = std::make_shared<const mesh::Mesh>(mesh::Mesh{{}, {0}, {}});
  return sharding::make_layout(dims, sharding::fully_replicated("", one, static_cast<int64_t>(dims.size())));
}

std::string place_text(const sharding::TensorSharding& sharding) {
  return mesh::to_text(*sharding.mesh) + " " + sharding::to_sdy(sharding);
}

// What nothing cuts has no mesh.
std::string wanted_text(const sharding::TensorSharding& sharding) {
  return sharding.mesh == nullptr ? "it whole" : sharding::to_sdy(sharding);
}

// The answer to a key stands in the job's row from now on.
void close_key(storage::IdempotencyRow& key, storage::Transaction& transaction) {
  if (key.key.empty()) return;
  key.state = storage::IdempotencyState::kDone;
  transaction.update_idempotency(key);
}

// How often a job that waits looks whether it is to end.
constexpr std::chrono::milliseconds kLook{200};

// A slice of an array as one dense value.
tensor::BufferRef gather_slice(const ArrayArgument& argument, const arrays::ShardBuffers& shards,
                               tensor::BufferPool& pool) {
  const arrays::Array& array = *argument.array;
  arrays::GatherReader reader({argument.array, &array.layout()}, tensor::size_bytes(array.info().type.dtype), shards,
                              *argument.slices);
  tensor::BufferRef buffer = pool.allocate(reader.total_bytes());
  reader.read(buffer->bytes());
  return buffer;
}

// Like Catalog::write; `then` runs on the writer's thread, when it is durable.
void write_then(storage::Catalog& catalog, const std::function<void(storage::Transaction&)>& write,
                const std::function<void()>& then) {
  if (then == nullptr) return catalog.write(write);
  std::promise<void> durable;
  std::future<void> told = durable.get_future();
  catalog.write_async(write, [&](std::exception_ptr error) {
    if (error != nullptr) return durable.set_exception(std::move(error));
    then();
    durable.set_value();
  });
  told.get();  // so that what the two use outlives them
}

// Shards of a result as the array has its own: shared where both are cut alike, else copied.
arrays::ShardBuffers in_layout_of(const arrays::ArrayRef& array, const sharding::Layout& layout,
                                  arrays::ShardBuffers shards, arrays::ArrayStore& store) {
  if (layout.part_counts == array->layout().part_counts) return shards;
  const int64_t element_bytes = tensor::size_bytes(array->info().type.dtype);
  arrays::GatherReader reader(std::make_shared<const sharding::Layout>(layout), element_bytes, std::move(shards),
                              arrays::whole_slices(array->info().type.dims));
  arrays::ShardBuffers out = store.allocate(*array);
  arrays::ScatterWriter writer(array->layout(), element_bytes, out);
  while (writer.remaining() > 0) {
    const std::span<std::byte> space = writer.destination();
    writer.advance(reader.read(space));
  }
  return out;
}

}  // namespace

// Waits as the line says, unless the job is to end.
void JobRunner::wait_in_line(Job& job, LineWait how) {
  if (job.line == nullptr) return;
  while (!(job.line.get()->*how)(job.row.number, kLook)) {
    const std::lock_guard held(job.mutex);
    if (job.cancelled) throw core::Error("cancelled", "the job was cancelled");
    if (job.stopped) throw core::Error("draining", "the server is shutting down");
  }
}

JobResult JobRunner::execute(const JobRef& job, const std::function<bool()>& gone) {
  const JobRequest& request = job->request;
  const compile::Plan& plan = *job->lowered->plan;
  tensor::BufferPool& pool = *engine_.pool();
  {
    const std::lock_guard held(job->mutex);
    if (job->cancelled) throw core::Error("cancelled", "the job was cancelled");
  }

  // Arrays are read in the order of the session: as the jobs before this one leave them.
  wait_in_line(*job, &sessions::Line::wait_for_arrays);
  device::RunRequest run;
  run.plan = job->lowered->plan;
  run.devices = job->placement.devices;
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const compile::PlanParameter& wanted = plan.arguments[i];
    device::RunArgument bound;
    if (const auto* value = std::get_if<InlineArgument>(&request.arguments[i])) {
      const sharding::Layout layout = whole_layout(value->type.dims);
      const arrays::ShardBuffers shards{value->bytes};
      bound.shards = bind_argument({&layout, &shards}, wanted, pool, Stretches::kYes);
      bound.may_overwrite = true;  // came with this request, nobody else has it
    } else {
      const auto& argument = std::get<ArrayArgument>(request.arguments[i]);
      if (argument.slices) {
        tensor::Dims dims = arrays::slice_dims(*argument.slices);
        const sharding::Layout layout = whole_layout(dims);
        const arrays::ShardBuffers shards{gather_slice(argument, arrays_.shards(argument.array), pool)};
        bound.shards = bind_argument({&layout, &shards}, wanted, pool, Stretches::kYes);
        bound.may_overwrite = true;
      } else {
        const bool is_donated =
            std::find(job->donated.begin(), job->donated.end(), argument.array) != job->donated.end();
        const auto [shards, version] = is_donated
                                           ? arrays::ArrayStore::Snapshot{arrays_.take(argument.array, job->row.id), 0}
                                           : arrays_.snapshot(argument.array);
        for (const ArrayUpdate& update : request.updates) {
          if (update.argument != i) continue;
          job->read_versions[i] = version;
          if (update.version && *update.version != version) {
            throw core::Error("precondition_failed", "array '" + argument.array->info().id + "' has version " +
                                                         std::to_string(version) + ", the update is for version " +
                                                         std::to_string(*update.version));
          }
        }
        const arrays::ArrayInfo& info = argument.array->info();
        if (!same_cut(argument.array->layout(), wanted) && info.committed && !request.reshard) {
          if (is_donated) arrays_.give_back(argument.array, shards);
          throw core::Error("sharding_mismatch", "argument " + std::to_string(i) + ": array '" + info.id +
                                                     "' lies as " + place_text(info.sharding) + ", the program wants " +
                                                     wanted_text(job->lowered->argument_shardings[i]) +
                                                     "; send \"reshard\": true to have it moved");
        }
        if (is_donated) job->taken.emplace_back(argument.array, shards);
        bound.shards = bind_argument({&argument.array->layout(), &shards}, wanted, pool,
                                     is_donated ? Stretches::kNo : Stretches::kYes);
      }
    }
    run.arguments.push_back(std::move(bound));
  }
  // Buffers of donated arrays may be written when only this job holds them: in `taken` and, where cuts agree, in the
  // argument.
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
    const bool is_taken = argument != nullptr && !argument->slices &&
                          std::any_of(job->taken.begin(), job->taken.end(),
                                      [&](const auto& entry) { return entry.first == argument->array; });
    if (!is_taken) continue;
    run.arguments[i].may_overwrite =
        std::all_of(run.arguments[i].shards.begin(), run.arguments[i].shards.end(),
                    [](const tensor::BufferRef& buffer) { return buffer.use_count() <= 2; });
  }

  auto desk = std::make_shared<Desk>();
  auto recorder = std::make_shared<effects::Recorder>(job->bindings, std::move(job->request.feeds),
                                                      !request.session.empty(), [weak = std::weak_ptr(desk)] {
                                                        if (const auto there = weak.lock()) there->ring();
                                                      });
  run.effects = recorder.get();
  run.step_budget = options_.step_budget;
  run.deadline = job->accepted + request.deadline.value_or(options_.longest);
  run.profile = request.profile;
  run.on_callers_thread = true;

  auto handle = engine_.submit(std::move(run), [desk, recorder](device::RunOutcome outcome) {
    {
      const std::lock_guard held(desk->mutex);
      desk->outcome = std::move(outcome);
    }
    desk->there.notify_all();
  });
  {
    const std::lock_guard held(job->mutex);
    job->run = handle;
    job->recorder = recorder;
    if (job->cancelled) handle->cancel(core::Error("cancelled", "the job was cancelled"));
    if (job->stopped) handle->cancel(core::Error("draining", "the server is shutting down"));
  }
  device::RunOutcome outcome = serve(*job, *desk, *handle, *recorder, gone);
  job->timings.queue_ms = std::chrono::duration<double, std::milli>(outcome.stats.queue_time).count();
  job->timings.run_ms = std::chrono::duration<double, std::milli>(outcome.stats.run_time).count();

  // What a failed run did not touch goes back to its arrays; what it overwrote is spoilt.
  if (!outcome.ok()) {
    std::vector<arrays::ArrayRef> spoilt;
    for (auto& [array, shards] : job->taken) {
      const bool overwritten =
          std::any_of(outcome.overwritten.begin(), outcome.overwritten.end(), [&, a = array](int64_t position) {
            const auto* argument = std::get_if<ArrayArgument>(&request.arguments[static_cast<size_t>(position)]);
            return argument != nullptr && !argument->slices && argument->array == a;
          });
      if (overwritten) {
        spoilt.push_back(array);
      } else {
        arrays_.give_back(array, std::move(shards));
      }
    }
    job->taken.clear();
    arrays_.spoil(spoilt, job->row.id);
    throw *outcome.error;
  }

  JobResult result;
  result.stats = outcome.stats;
  result.planned_peak_bytes = plan.peak_bytes;
  result.warnings = job->lowered->warnings;
  result.partitions = job->placement.partitions;
  int64_t number = 0;
  std::map<std::string, int64_t> places;  // of what went to outgoing queues, as a request without session counts them
  for (effects::RecordedEffect& effect : recorder->take()) {
    const int64_t place = effect.kind->name == "outfeed" ? ++places[effect.name] : 0;
    result.effects.push_back({++number, place, std::move(effect)});
  }
  for (const auto& [queue, count] : recorder->left()) {
    result.warnings.push_back(std::to_string(count) + " entries of the request's infeed for queue '" + queue +
                              "' were not taken");
  }
  for (const sharding::TensorSharding& sharding : job->lowered->argument_shardings) {
    result.argument_ranks.push_back(sharding.rank());
    result.argument_shardings.push_back(sharding.mesh == nullptr ? std::nullopt : std::optional(sharding));
  }
  commit(*job, outcome, result);
  return result;
}

void JobRunner::commit(Job& job, device::RunOutcome& outcome, JobResult& result) {
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  const core::SteadyTime start = clock_.steady();

  std::vector<std::pair<arrays::ArrayRef, arrays::ShardBuffers>> stored;
  std::vector<arrays::ArrayStore::Update> updates;
  for (size_t i = 0; i < plan.results.size(); ++i) {
    const compile::PlanParameter& given = plan.results[i];
    const sharding::TensorSharding& sharding = job.lowered->result_shardings[i];
    JobValue value;
    value.type = given.parameter.global_type;
    value.result_info = given.parameter.result_info;
    sharding::Layout layout;
    const bool has_mesh = sharding.mesh != nullptr && !sharding.mesh->axes.empty();
    if (has_mesh) {
      sharding::TensorSharding concrete = sharding;
      concrete.mesh = std::make_shared<const mesh::Mesh>(concrete_mesh(*sharding.mesh, job.placement.devices));
      value.sharding = std::move(concrete);
      layout = sharding::make_layout(value.type.dims, *value.sharding);
    } else {
      layout = whole_layout(value.type.dims);
    }
    const auto update = std::find_if(request.updates.begin(), request.updates.end(),
                                     [&](const ArrayUpdate& one) { return one.result == i; });
    if (update != request.updates.end()) {
      value.array = std::get<ArrayArgument>(request.arguments[update->argument]).array;
      const int64_t version = job.read_versions.at(update->argument);
      value.version = version + 1;
      updates.push_back({value.array, version,
                         in_layout_of(value.array, layout, unbind_result(outcome.outputs[i], given, layout), arrays_)});
    } else if (request.results != ResultMode::kNone) {
      value.shards = unbind_result(outcome.outputs[i], given, layout);
    }
    if (request.results == ResultMode::kArray && value.array == nullptr) {
      arrays::NewArray wanted;
      wanted.principal = request.principal;
      wanted.session = request.session;
      wanted.type = value.type;
      if (value.sharding) {
        wanted.mesh_id = mesh::mesh_id(*value.sharding->mesh);
        wanted.sharding = value.sharding;
      }
      wanted.durability = request.durability;
      value.array = arrays_.begin(wanted);
      stored.emplace_back(value.array, value.shards);
    }
    value.layout = std::make_shared<const sharding::Layout>(std::move(layout));
    result.results.push_back(std::move(value));
  }
  // Donated memory that no result took is free from here on.
  outcome.outputs.clear();
  job.taken.clear();

  arrays::ArrayStore::Prepared prepared;
  const bool stores_durable = !stored.empty() && request.durability == Durability::kDurable;
  if (!stored.empty()) prepared = arrays_.prepare(std::move(stored));

  const bool has_updates = !updates.empty();
  if (has_updates) wait_in_line(job, &sessions::Line::wait_for_readers);

  std::vector<arrays::ArrayRef> durable_donated;
  std::vector<arrays::ArrayRef> memory_donated;
  for (const arrays::ArrayRef& array : job.donated) {
    (array->info().durability == Durability::kDurable ? durable_donated : memory_donated).push_back(array);
  }
  if (job.is_ordered && job.line != nullptr) job.line->wait_turn(job.row.number);

  result.timings = job.timings;
  const bool must_wait = job.has_row || stores_durable || !durable_donated.empty() || has_updates;
  if (must_wait) {
    std::vector<storage::EffectRow> rows;
    if (!request.session.empty()) {
      for (size_t i = job.committed.size(); i < result.effects.size(); ++i)
        rows.push_back(effects::to_row(result.effects[i].effect, job.row.id, static_cast<int64_t>(i)));
    }
    job.row.state = JobState::kDone;
    job.row.finished = clock_.wall();
    if (job.has_row) result.job = job.row.id;
    const auto consume = arrays_.consume_rows(durable_donated, job.row.id);
    for (size_t i = 0; i < job.committed.size(); ++i) {
      result.effects[i].sequence = job.committed[i].first;
      result.effects[i].number = job.committed[i].second;
    }
    const auto used = job.recorder->used();
    arrays::ArrayStore::PreparedUpdates updated;
    if (has_updates) updated = arrays_.prepare_updates(std::move(updates), job.to_read, request.session);
    const auto write = [&](storage::Transaction& transaction) {
      if (prepared.rows != nullptr) prepared.rows(transaction);
      if (updated.rows != nullptr) updated.rows(transaction);
      consume(transaction);
      if (!rows.empty()) transaction.append_effects(request.session, rows);
      for (size_t i = 0; i < rows.size(); ++i) {
        result.effects[job.committed.size() + i].sequence = rows[i].sequence;
        result.effects[job.committed.size() + i].number = rows[i].number;
      }
      for (const auto& [queue, last] : used) transaction.use_feeds(request.session, queue, last);
      if (job.has_row) {
        if (job.encode != nullptr) job.row.answer = job.encode(result);
        transaction.update_job(job.row);
      }
      close_key(job.key, transaction);
      free_arguments(job);  // whoever replaces one of them now commits after this job
    };
    try {
      // Updated arrays take their new shards in the order of commits.
      write_then(store_.catalog(), write, updated.visible);
    } catch (...) {
      if (updated.abandon != nullptr) updated.abandon();
      throw;
    }
  } else if (prepared.rows != nullptr) {
    store_.catalog().write_async(prepared.rows, [](const std::exception_ptr&) {});
  }
  if (prepared.visible != nullptr) prepared.visible();
  arrays_.consume(job.donated, job.row.id);
  if (!memory_donated.empty()) {
    store_.catalog().write_async(arrays_.consume_rows(memory_donated, job.row.id), [](const std::exception_ptr&) {});
  }
  leave(job);
  if (!request.session.empty() && !result.effects.empty()) log_.notify(request.session);
  job.timings.commit_ms = milliseconds_since(start, clock_.steady());
  result.timings = job.timings;
}

void JobRunner::fail(Job& job, const core::Error& error) {
  for (auto& [array, shards] : job.taken) arrays_.give_back(array, std::move(shards));
  job.taken.clear();
  arrays_.release(job.donated, job.row.id);
  const bool cancelled = error.code() == core::ErrorCode("cancelled");
  // A job that a shutdown ended is not over: it is queued again, and no attempt is counted.
  const bool goes_on = error.code() == core::ErrorCode("draining");
  if (goes_on) job.to_read.clear();  // nobody may replace them before it runs again
  if (job.has_row && goes_on && job.row.state == JobState::kRunning) {
    job.row.state = JobState::kQueued;
    job.row.started.reset();
    try {
      store_.catalog().write([&](storage::Transaction& transaction) { transaction.update_job(job.row); });
    } catch (const core::Error&) {
      // Its row says that it runs: the next start takes that for a crash and runs it again, too.
    }
  }
  if (job.has_row && !goes_on) {
    job.row.state = cancelled ? JobState::kCancelled : JobState::kFailed;
    job.row.error_code = std::string(error.code().word());
    job.row.error_detail = error.detail();
    job.row.finished = clock_.wall();
    try {
      store_.catalog().write([&](storage::Transaction& transaction) {
        transaction.release_arrays(job.row.id);
        transaction.update_job(job.row);
        close_key(job.key, transaction);
        free_arguments(job);
      });
    } catch (const core::Error&) {
      // The disk took nothing: after a restart the job is queued again, which is what its row still says. Its arguments
      // stay as they are until then.
      job.to_read.clear();
    }
  }
  leave(job);
  const std::lock_guard held(mutex_);
  --counters_.running;
  ++(cancelled ? counters_.cancelled : counters_.failed);
}

}  // namespace meshd::jobs
