// Executes a job. Steps of execute():
//   1. Wait until earlier jobs of the session no longer update the arrays that this one reads.
//   2. Choose the devices, if the request leaves that to the start.
//   3. Wait in the engine for the devices and for the bytes of the plan. A job that waits there has no argument loaded.
//   4. Bind arguments, on the thread that begins the run: buffers in plan order; donated arrays lend theirs. Durable
//   arrays leave the memory that the plan needs. Run; serve() supplies infeeds, callback replies and early commits
//   (job_serve.cpp).
//   5. Commit (job_commit.cpp). After a failed run, donated arrays get back those buffers that it did not overwrite.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "service/core/error.h"
#include "service/core/planted_bugs.h"
#include "service/device/local_arena.h"
#include "service/jobs/admission/job_layouts.h"
#include "service/jobs/execution/binding.h"
#include "service/jobs/job.h"
#include "service/mesh/mesh_document.h"

namespace meshd::jobs {
namespace {

// Results of so many bytes are stored on the disks of the processes that have them; smaller ones are sent as fast.
constexpr int64_t kLeftBytes = int64_t{64} << 10;

// A plan of so many bytes may bind for a millisecond and more.
constexpr int64_t kLongBinding = int64_t{4} << 20;

std::string place_text(const sharding::TensorSharding& sharding) {
  return mesh::to_text(*sharding.mesh) + " " + sharding::to_sdy(sharding);
}

// A replicated value has no mesh.
std::string wanted_text(const sharding::TensorSharding& sharding) {
  return sharding.mesh == nullptr ? "it replicated" : sharding::to_sdy(sharding);
}

// No loop whose length depends on data, nothing to wait for, little to load should an array have left memory.
bool is_brief(const compile::Plan& plan, const JobRequest& request) {
  constexpr double kBriefNs = 20'000;
  constexpr int64_t kBriefBytes = int64_t{256} << 10;
  return !plan.has_loops && plan.effects.empty() && plan.estimated_ns <= kBriefNs && plan.peak_bytes <= kBriefBytes &&
         request.updates.empty() && request.results != ResultMode::kArray;
}

// A slice of an array as one dense value.
tensor::BufferRef gather_slice(const ArrayArgument& argument, arrays::ReadableShards shards, tensor::BufferPool& pool) {
  const arrays::Array& array = *argument.array;
  arrays::GatherReader reader({argument.array, &array.layout()}, tensor::size_bytes(array.info().type.dtype),
                              std::move(shards), *argument.slices);
  tensor::BufferRef buffer = pool.allocate(reader.total_bytes());
  reader.read(buffer->bytes());
  return buffer;
}

}  // namespace

// Where the shards are that are not in memory, and what reads one.
void JobRunner::give_files(device::RunArgument& bound, const arrays::ArrayRef& array,
                           const arrays::ArrayStore::Referred& referred, const compile::PlanParameter& wanted) {
  if (std::none_of(bound.shards.begin(), bound.shards.end(), [](const auto& shard) { return shard == nullptr; }))
    return;
  const auto of_plan =
      std::make_shared<const std::vector<std::optional<int64_t>>>(shards_of_plan(array->layout(), wanted));
  const auto blobs = std::make_shared<const std::vector<storage::BlobRef>>(referred.blobs);
  for (const std::optional<int64_t>& shard : *of_plan) {
    device::ShardFile& file = bound.files.emplace_back();
    if (!shard) continue;
    const storage::BlobRef& blob = blobs->at(static_cast<size_t>(*shard));
    file = {blob.name, blob.length, blob.checksum};
  }
  bound.load = [this, array, of_plan, blobs, version = referred.version, kept = referred.kept](int64_t shard) {
    const int64_t own = of_plan->at(static_cast<size_t>(shard)).value();
    return arrays_.load_shard(array, version, blobs->at(static_cast<size_t>(own)), own);
  };
}

// What this process need not have of a run of several: shards of stored arrays that others have or read, and of results
// that are large enough to be stored where they are made.
device::ApartShards JobRunner::find_apart(const Job& job) const {
  device::ApartShards out;
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  if (!engine_.keeps_devices(job.assignment.devices)) return out;
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
    out.arguments.push_back(
        argument != nullptr && !argument->slices && has_shards_of(argument->array->layout(), plan.arguments[i]) ? 1
                                                                                                                : 0);
  }
  const bool stores = request.results == ResultMode::kArray || !request.updates.empty();
  if (!stores || plan.has_bounded_results()) return out;
  for (size_t i = 0; i < plan.results.size(); ++i) {
    const auto update = std::find_if(request.updates.begin(), request.updates.end(),
                                     [&](const ArrayUpdate& one) { return one.result == i; });
    const bool is_update = update != request.updates.end();
    const bool is_stored = is_update || request.results == ResultMode::kArray;
    const int64_t bytes = plan.results[i].shard_bytes * plan.results[i].shard_count();
    bool is_left = is_stored && bytes >= kLeftBytes && request.durability == storage::Durability::kDurable;
    if (is_update) {
      const auto& argument = std::get<ArrayArgument>(request.arguments[update->argument]);
      const arrays::Array& array = *argument.array;
      const auto sharding = result_sharding(job, i);
      is_left = bytes >= kLeftBytes && array.info().durability == storage::Durability::kDurable && sharding &&
                sharding::make_layout(array.info().type.dims, *sharding).part_counts == array.layout().part_counts;
    }
    out.results.push_back(is_left     ? device::ResultPlace::kThere
                          : is_stored ? device::ResultPlace::kBoth
                                      : device::ResultPlace::kHere);
  }
  return out;
}

// A whole stored array.
device::RunArgument JobRunner::bind_array(Job& job, size_t i) {
  const JobRequest& request = job.request;
  const compile::PlanParameter& wanted = job.lowered->plan->arguments[i];
  const arrays::ArrayRef& array = std::get<ArrayArgument>(request.arguments[i]).array;
  const bool is_donated = std::find(job.donated.begin(), job.donated.end(), array) != job.donated.end();
  arrays::ArrayStore::Referred referred;
  if (job.is_apart(i)) {
    // Other processes have shards of it, or get them; the rest need not be read here.
    referred = arrays_.refer(array, is_donated ? job.row.id : "");
  } else if (is_donated) {
    referred.shards = arrays_.take(array, job.row.id);
    referred.version = array->version();  // it does not change any more
  } else {
    arrays::ArrayStore::Snapshot now = arrays_.snapshot(array);
    referred.shards = std::move(now.shards);
    referred.version = now.version;
  }
  if (is_donated) job.taken.emplace_back(array, referred.shards);
  for (const ArrayUpdate& update : request.updates) {
    if (update.argument != i) continue;
    job.read_versions[i] = referred.version;
    if (update.version && *update.version != referred.version) {
      throw core::Error("precondition_failed", fmt::format("array '{}' has version {}, the update is for version {}",
                                                           array->info().id, referred.version, *update.version));
    }
  }
  const arrays::ArrayInfo& info = array->info();
  if (!has_shards_of(array->layout(), wanted) && info.committed && !request.reshard) {
    throw core::Error(
        "sharding_mismatch",
        fmt::format("argument {}: array '{}' is sharded as {}, the program wants {}; send \"reshard\": "
                    "true to have it moved",
                    i, info.id, place_text(info.sharding), wanted_text(job.lowered->argument_shardings[i])));
  }
  device::RunArgument bound;
  bound.shards = bind_argument({&array->layout(), &referred.shards}, wanted, *engine_.pool(),
                               is_donated ? BufferSlices::kRefused : BufferSlices::kAllowed);
  if (!job.apart.arguments.empty()) bound.version = version_name(*array, referred.version);
  if (job.is_apart(i)) give_files(bound, array, referred, wanted);
  return bound;
}

std::vector<device::RunArgument> JobRunner::bind_arguments(Job& job, core::Checkpoint& checkpoint) {
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  tensor::BufferPool& pool = *engine_.pool();
  // Reads files, or copies much: others need not wait for it.
  const bool takes_long = plan.peak_bytes >= kLongBinding ||
                          std::any_of(request.arguments.begin(), request.arguments.end(), [&](const Argument& given) {
                            const auto* stored = std::get_if<ArrayArgument>(&given);
                            const auto i = static_cast<size_t>(&given - request.arguments.data());
                            return stored != nullptr && !job.is_apart(i) && !arrays_.is_loaded(stored->array);
                          });
  core::UncheckedCall aside(takes_long ? &checkpoint : nullptr);
  std::vector<device::RunArgument> arguments;
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const compile::PlanParameter& wanted = plan.arguments[i];
    device::RunArgument bound;
    if (const auto* value = std::get_if<tensor::DenseValue>(&request.arguments[i])) {
      const sharding::Layout layout = one_device_layout(value->type.dims);
      const arrays::ShardBuffers shards{value->buffer};
      bound.shards = bind_argument({&layout, &shards}, wanted, pool, BufferSlices::kAllowed);
      bound.may_overwrite = true;  // from the request's body: no other owner
    } else {
      const auto& argument = std::get<ArrayArgument>(request.arguments[i]);
      if (argument.slices) {
        tensor::Dims dims = arrays::slice_dims(*argument.slices);
        const sharding::Layout layout = one_device_layout(dims);
        const arrays::ShardBuffers shards{gather_slice(argument, arrays_.open(argument.array).shards, pool)};
        bound.shards = bind_argument({&layout, &shards}, wanted, pool, BufferSlices::kAllowed);
        bound.may_overwrite = true;
      } else {
        bound = bind_array(job, i);
      }
    }
    arguments.push_back(std::move(bound));
  }
  // Buffers of donated arrays may be written when only this job holds them: in `taken` and, where layouts agree, in the
  // argument.
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
    const bool is_taken = argument != nullptr && !argument->slices &&
                          std::any_of(job.taken.begin(), job.taken.end(),
                                      [&](const auto& entry) { return entry.first == argument->array; });
    if (!is_taken) continue;
    arguments[i].may_overwrite =
        std::all_of(arguments[i].shards.begin(), arguments[i].shards.end(),
                    [](const tensor::BufferRef& buffer) { return buffer == nullptr || buffer.use_count() <= 2; });
  }
  aside.end();
  return arguments;
}

device::RunOutcome JobRunner::run_on_engine(Job& job, device::RunRequest run, const core::WaiterRef& waiter) {
  const auto end = std::make_shared<RunEnd>();
  const auto notify = [weak = std::weak_ptr(waiter)] {
    if (const auto there = weak.lock()) there->notify();
  };
  const effects::EarlyCommits early = job.streams()                 ? effects::EarlyCommits::kAll
                                      : job.request.session.empty() ? effects::EarlyCommits::kNone
                                                                    : effects::EarlyCommits::kOutgoing;
  const auto recorder = std::make_shared<effects::EffectRecorder>(
      job.bindings, std::move(job.request.infeeds), early, notify, clock_,
      core::MemoryReservation(options_.memory, core::MemoryAccount::kEffects));
  run.effects = recorder.get();
  run.step_budget = options_.step_budget;
  run.operation_budget = static_cast<double>(options_.operation_budget);
  run.byte_budget = static_cast<double>(options_.byte_budget);
  run.principal = job.request.principal;
  run.session = job.request.session;
  if (job.request.deadline) run.deadline = job.deadline;  // the others: end_of()
  run.profile = job.request.profile;
  run.nonfinite = job.request.nonfinite;
  run.on_callers_thread = !job.in_background;  // the background has few threads
  // The run may go on within submit() for long: it can be cancelled from before.
  run.on_submit = [&job, &recorder, &waiter](const std::shared_ptr<device::Run>& handle) {
    if (!job.has_row) {
      waiter->on_abandon([weak = std::weak_ptr(handle)] {
        if (const auto alive = weak.lock()) alive->cancel(core::Error("cancelled", "the client went away"));
      });
    }
    const std::lock_guard held(job.mutex);
    job.run = handle;
    job.recorder = recorder;
    if (job.cancelled) handle->cancel(was_cancelled());
    if (job.stopped) handle->cancel(draining());
  };
  // Keeps the recorder alive with the run, which may outlive this call.
  engine_.submit(std::move(run), [end, recorder, notify](device::RunOutcome outcome) {
    {
      const std::lock_guard held(end->mutex);
      end->outcome = std::move(outcome);
    }
    notify();
  });
  return serve(job, waiter, *end);
}

void JobRunner::return_taken(Job& job) {
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

JobResult JobRunner::execute(const JobRef& job, const core::WaiterRef& waiter) {
  {
    const std::lock_guard held(job->mutex);
    job->waiter = waiter;
  }
  // A job that was held for long has its time from here.
  const core::SteadyTime now = clock_.steady();
  if (!job->request.deadline && now >= job->deadline) job->deadline = now + options_.longest;
  if (auto end = end_of(*job, *waiter)) throw std::move(*end);
  // Arrays are read in the order of the session: as the jobs before this one leave them.
  if (job->queue != nullptr) {
    job->queue->watch(waiter);
    wait_for_session(*job, *waiter, [&] { return job->queue->may_read(job->row.number); });
  }
  if (job->cannot_run) {
    if (job->queue != nullptr) wait_to_commit(*job, *waiter);
    throw core::Error(*job->cannot_run);
  }
  require_dependencies(*job);
  wait_for_room(*job, *waiter);
  load_request(*job, *waiter);
  if (job->request.least_loaded) {
    std::vector<int64_t>& devices = job->assignment.devices;
    devices = engine_.least_loaded(static_cast<int64_t>(devices.size()));
    std::sort(devices.begin(), devices.end());  // positions of the mesh in the order of ids, as without the choice
    compiler_.count_binding(job->lowered, devices);
  }
  // On several processes a run cannot step aside while it waits for the jobs before it: it begins after them.
  if (job->queue != nullptr && !job->lowered->plan->effects.empty() && engine_.keeps_devices(job->assignment.devices)) {
    wait_for_session(*job, *waiter, [&] {
      return job->queue->is_next_in_order(job->row.number) && job->queue->may_log(job->row.number);
    });
  }
  device::RunRequest run;
  run.plan = job->lowered->plan;
  run.lowered = job->lowered;
  run.devices = job->assignment.devices;
  job->apart = find_apart(*job);
  run.apart = job->apart;
  // Results that may wait for the jobs before it have memory of the account `waiting`: those jobs need that of the run.
  run.results_wait = job->waiting.bytes() > 0;
  std::shared_ptr<arrays::LentMemory> lent;
  run.bind = [&](core::Checkpoint& checkpoint, int64_t planned_bytes) {
    std::vector<device::RunArgument> bound = bind_arguments(*job, checkpoint);
    lent = std::make_shared<arrays::LentMemory>(arrays_, planned_bytes);
    return bound;
  };
  device::RunOutcome outcome = run_on_engine(*job, std::move(run), waiter);
  job->timings.queue_ms = std::chrono::duration<double, std::milli>(outcome.stats.queue_time).count();
  job->timings.run_ms = std::chrono::duration<double, std::milli>(outcome.stats.run_time).count();

  // If it waits from here on, it waits without the values that came with its request.
  for (Argument& argument : job->request.arguments) {
    if (auto* value = std::get_if<tensor::DenseValue>(&argument)) value->buffer = nullptr;
  }
  if (lent) lent->shrink_to(outcome.memory.bytes());
  job->overwritten = outcome.overwritten;
  if (!outcome.ok()) {
    if (job->streams()) wait_to_leave_effects(*job, *outcome.error, *waiter);
    throw std::move(*outcome.error);
  }

  JobResult result;
  result.stats = outcome.stats;
  result.plan = job->lowered->plan;
  if (result.stats.profile) {
    result.machine = machine_limits_.get();
    if (engine_.keeps_devices(job->assignment.devices)) {
      const device::Ownership owners = device::ownership_of(engine_.options(), job->assignment.devices);
      result.traffic = compile::find_traffic(*result.plan, owners.rank_of_device);
    }
  }
  result.is_brief = !job->has_row && job->donated.empty() && is_brief(*job->lowered->plan, job->request);
  result.planned_peak_bytes = job->lowered->plan->peak_bytes;
  result.warnings = job->lowered->warnings;
  result.partitions = job->assignment.partitions;
  int64_t number = job->streamed.count;
  std::map<std::string, int64_t> places;  // of outfeed entries, numbered by queue in a request without session
  for (effects::RecordedEffect& effect : job->recorder->take()) {
    const int64_t place = effect.kind->name == "outfeed" ? ++places[effect.name] : 0;
    result.effects.push_back({++number, place, std::move(effect)});
  }
  for (const auto& [queue, count] : job->recorder->left()) {
    result.warnings.push_back(
        fmt::format("{} entries of the request's infeed for queue '{}' were not taken", count, queue));
  }
  for (const sharding::TensorSharding& sharding : job->lowered->argument_shardings) {
    result.argument_ranks.push_back(sharding.rank());
    result.argument_shardings.push_back(sharding.mesh == nullptr ? std::nullopt : std::optional(sharding));
  }
  hold_answer(*job, result, *waiter);
  if (outcome.memory.bytes() > 0) {
    struct Held {
      device::ResultMemory of_engine;
      std::shared_ptr<arrays::LentMemory> of_arrays;
    };
    result.result_memory = std::make_shared<const Held>(Held{std::move(outcome.memory), lent});
  }
  commit(*job, outcome, result, *waiter);
  hold_results(job->request, result);
  return result;
}

}  // namespace meshd::jobs
