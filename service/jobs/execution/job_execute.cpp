// Steps of execute():
//   1. Wait until earlier jobs of the session no longer update the arrays that this one reads.
//   2. Choose the devices, if the request leaves that to the start.
//   3. Wait in the engine for the devices and for the bytes of the plan. A job that waits there has no argument loaded.
//   4. Bind arguments, on the thread that begins the run (argument_binder.h): donated arrays lend theirs. Durable
//   arrays leave the memory that the plan needs. Run; the run server supplies infeeds, callback replies and early
//   commits.
//   5. Take what the run gives, but for its results, which the commit lays out. After a failed run, donated arrays get
//   back those buffers that it did not overwrite (Commit::fail).
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "service/core/error.h"
#include "service/device/local_arena.h"
#include "service/jobs/admission/job_arrays.h"
#include "service/jobs/execution/execution.h"

namespace meshd::jobs {
namespace {

// No loop whose length depends on data, nothing to wait for, little to load should an array have left memory.
bool is_brief(const compile::Plan& plan, const JobRequest& request) {
  constexpr double kBriefNs = 20'000;
  constexpr int64_t kBriefBytes = int64_t{256} << 10;
  return !plan.has_loops && plan.effects.empty() && plan.estimated_ns <= kBriefNs && plan.peak_bytes <= kBriefBytes &&
         request.updates.empty() && request.results != ResultMode::kArray;
}

// The effects of the run that are not in the log yet.
void take_effects(Job& job, JobResult& result) {
  int64_t number = job.streamed.count;
  std::map<std::string, int64_t> places;  // of outfeed entries, numbered by queue in a request without session
  for (effects::RecordedEffect& effect : job.recorder->take()) {
    const int64_t place = effect.kind->name == "outfeed" ? ++places[effect.name] : 0;
    result.effects.push_back({++number, place, std::move(effect)});
  }
  for (const auto& [queue, count] : job.recorder->left()) {
    result.warnings.push_back(
        fmt::format("{} entries of the request's infeed for queue '{}' were not taken", count, queue));
  }
}

effects::EarlyCommits early_commits(const Job& job) {
  if (job.streams()) return effects::EarlyCommits::kAll;
  return job.request.session.empty() ? effects::EarlyCommits::kNone : effects::EarlyCommits::kOutgoing;
}

}  // namespace

Executed Execution::execute(Job& job, const core::WaiterRef& waiter) {
  wait_for_turn(job, waiter);
  make_ready(job, waiter);
  Executed done;
  done.outcome = run(job, waiter, done.lent);
  describe(job, done.outcome, done.result);
  take_effects(job, done.result);
  answers_.hold(job, done.result, waiter);
  if (done.outcome.memory.bytes() > 0) {
    struct Held {
      device::ResultMemory of_engine;
      std::shared_ptr<arrays::LentMemory> of_arrays;
    };
    done.result.result_memory = std::make_shared<const Held>(Held{std::move(done.outcome.memory), done.lent});
  }
  return done;
}

// Until the jobs before it leave the arrays that it reads. A job that cannot run ends here, in its session's order.
void Execution::wait_for_turn(Job& job, const core::WaiterRef& waiter) {
  {
    const std::lock_guard held(job.mutex);
    job.waiter = waiter;
  }
  // A job that was held for long has its time from here.
  const core::SteadyTime now = clock_.steady();
  if (!job.request.deadline && now >= job.deadline) job.deadline = now + options_.longest;
  waits_.throw_if_ended(job, *waiter);
  // Arrays are read in the order of the session: as the jobs before this one leave them.
  if (job.queue != nullptr) {
    job.queue->watch(waiter);
    waits_.wait_for_session(job, *waiter, [&] { return job.queue->may_read(job.row.number); });
  }
  if (!job.cannot_run) return;
  if (job.queue != nullptr) waits_.wait_to_commit(job, *waiter);
  throw core::Error(*job.cannot_run);
}

// It has its request, its program, its devices and, where it is to wait with them, room for its results.
void Execution::make_ready(Job& job, const core::WaiterRef& waiter) {
  require_dependencies(job, catalog_);
  waiting_.wait_for_room(job, *waiter);
  waiting_.load_request(job, waiter);
  if (job.request.least_loaded) {
    std::vector<int64_t>& devices = job.assignment.devices;
    devices = engine_.least_loaded(static_cast<int64_t>(devices.size()));
    std::sort(devices.begin(), devices.end());  // positions of the mesh in the order of ids, as without the choice
    compiler_.count_binding(job.lowered, devices);
  }
  // On several processes a run cannot step aside while it waits for the jobs before it: it begins after them.
  if (job.queue != nullptr && !job.lowered->plan->effects.empty() && engine_.keeps_devices(job.assignment.devices)) {
    waits_.wait_for_session(job, *waiter, [&] {
      return job.queue->is_next_in_order(job.row.number) && job.queue->may_log(job.row.number);
    });
  }
}

device::RunOutcome Execution::run(Job& job, const core::WaiterRef& waiter, Lent& lent) {
  device::RunOutcome outcome = run_on_engine(job, run_request(job, lent), waiter);
  job.timings.queue_ms = std::chrono::duration<double, std::milli>(outcome.stats.queue_time).count();
  job.timings.run_ms = std::chrono::duration<double, std::milli>(outcome.stats.run_time).count();
  // If it waits from here on, it waits without the values that came with its request.
  for (Argument& argument : job.request.arguments) {
    if (auto* value = std::get_if<tensor::DenseValue>(&argument)) value->buffer = nullptr;
  }
  if (lent) lent->shrink_to(outcome.memory.bytes());
  job.overwritten = outcome.overwritten;
  if (!outcome.ok()) {
    if (job.streams()) server_.wait_to_leave_effects(job, *outcome.error, *waiter);
    throw std::move(*outcome.error);
  }
  return outcome;
}

device::RunRequest Execution::run_request(Job& job, Lent& lent) {
  device::RunRequest run;
  run.plan = job.lowered->plan;
  run.lowered = job.lowered;
  run.devices = job.assignment.devices;
  job.apart = binder_.find_apart(job);
  run.apart = job.apart;
  // Results that may wait for the jobs before it have memory of the account `waiting`: those jobs need that of the run.
  run.results_wait = job.waiting.bytes() > 0;
  run.bind = [this, &job, &lent](core::Checkpoint& checkpoint, int64_t planned_bytes) {
    std::vector<device::RunArgument> bound = binder_.bind(job, checkpoint);
    lent = std::make_shared<arrays::LentMemory>(arrays_, planned_bytes);
    return bound;
  };
  run.step_budget = options_.step_budget;
  run.operation_budget = static_cast<double>(options_.operation_budget);
  run.byte_budget = static_cast<double>(options_.byte_budget);
  run.principal = job.request.principal;
  run.session = job.request.session;
  if (job.request.deadline) run.deadline = job.deadline;  // the others: end_of()
  run.profile = job.request.profile;
  run.nonfinite = job.request.nonfinite;
  run.on_callers_thread = !job.in_background;  // the background has few threads
  return run;
}

device::RunOutcome Execution::run_on_engine(Job& job, device::RunRequest run, const core::WaiterRef& waiter) {
  const auto end = std::make_shared<RunEnd>();
  const auto notify = [weak = std::weak_ptr(waiter)] {
    if (const auto there = weak.lock()) there->notify();
  };
  const auto recorder = std::make_shared<effects::EffectRecorder>(
      job.bindings, std::move(job.request.infeeds), early_commits(job), notify, clock_,
      core::MemoryReservation(options_.memory, core::MemoryAccount::kEffects));
  run.effects = recorder.get();
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
    end->put(std::move(outcome));
    notify();
  });
  return server_.serve(job, waiter, *end);
}

void Execution::describe(const Job& job, const device::RunOutcome& outcome, JobResult& result) {
  result.stats = outcome.stats;
  result.plan = job.lowered->plan;
  if (result.stats.profile) {
    result.machine = machine_limits_.get();
    if (engine_.keeps_devices(job.assignment.devices)) {
      const device::Ownership owners = device::ownership_of(engine_.options(), job.assignment.devices);
      result.traffic = compile::find_traffic(*result.plan, owners.rank_of_device);
    }
  }
  result.is_brief = !job.has_row && job.donated.empty() && is_brief(*job.lowered->plan, job.request);
  result.planned_peak_bytes = job.lowered->plan->peak_bytes;
  result.warnings = job.lowered->warnings;
  result.partitions = job.assignment.partitions;
  for (const sharding::TensorSharding& sharding : job.lowered->argument_shardings) {
    result.argument_ranks.push_back(sharding.rank());
    result.argument_shardings.push_back(sharding.mesh == nullptr ? std::nullopt : std::optional(sharding));
  }
}

}  // namespace meshd::jobs
