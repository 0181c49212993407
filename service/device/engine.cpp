#include "service/device/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "service/device/run_impl.h"

namespace meshd::device {
namespace {

int thread_count(const EngineOptions& options) {
  return options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Fills in the devices and refuses what cannot run.
void check(const EngineOptions& options, RunRequest& request) {
  if (request.plan == nullptr) throw core::Error("internal", "a run without a plan");
  const compile::Plan& plan = *request.plan;
  if (request.devices.empty()) {
    for (int64_t i = 0; i < plan.device_count; ++i) request.devices.push_back(i);
  }
  if (static_cast<int64_t>(request.devices.size()) != plan.device_count) {
    throw core::Error("invalid_argument", fmt::format("the program runs on {} devices, {} are given", plan.device_count,
                                                      request.devices.size()));
  }
  for (const int64_t device : request.devices) {
    if (device < 0 || device >= options.device_count) {
      throw core::Error("too_few_devices",
                        fmt::format("device {} is asked for, the server has {} devices", device, options.device_count));
    }
  }
  if (options.transport == nullptr || options.process_of_device.empty() || !plan.shares_between_devices) return;
  const auto process_of = [&](int64_t device) { return options.process_of_device[static_cast<size_t>(device)]; };
  const bool is_alone = std::all_of(request.devices.begin(), request.devices.end(), [&](int64_t device) {
    return process_of(device) == process_of(request.devices[0]);
  });
  if (!is_alone) {
    throw core::Error("unsupported_partition",
                      "the program reads a value on devices outside of its mesh, which processes do not exchange yet");
  }
}

}  // namespace

void check_arguments(const EngineOptions& options, const RunRequest& request) {
  const compile::Plan& plan = *request.plan;
  if (request.arguments.size() != plan.arguments.size()) {
    throw core::Error("invalid_argument", fmt::format("the program takes {} arguments, got {}", plan.arguments.size(),
                                                      request.arguments.size()));
  }
  for (size_t i = 0; i < plan.arguments.size(); ++i) {
    const compile::PlanParameter& wanted = plan.arguments[i];
    const auto& shards = request.arguments[i].shards;
    const int64_t count = plan.table(wanted.table).count();
    if (static_cast<int64_t>(shards.size()) != count) {
      throw core::Error("invalid_argument", fmt::format("argument {} has {} shards, got {}", i, count, shards.size()));
    }
    for (const tensor::BufferRef& shard : shards) {
      if (shard == nullptr && options.transport == nullptr) {
        throw core::Error("invalid_argument", fmt::format("argument {} lacks a shard", i));
      }
      if (shard != nullptr && shard->size() < wanted.shard_bytes) {
        throw core::Error("invalid_argument", fmt::format("shards of argument {} have {} bytes, got {}", i,
                                                          wanted.shard_bytes, shard->size()));
      }
    }
  }
}

struct Engine::Impl {
  Impl(EngineOptions options, std::shared_ptr<tensor::BufferPool> buffers, int threads)
      : shared(std::move(options), std::move(buffers), threads) {
    shared.counters.with([&](EngineShared::Counters& counters) {
      counters.device_busy.resize(static_cast<size_t>(shared.options.device_count));
    });
  }
  EngineShared shared;
};

Engine::Engine(EngineOptions options, std::shared_ptr<tensor::BufferPool> pool) {
  const int threads = thread_count(options);
  impl_ = std::make_unique<Impl>(std::move(options), std::move(pool), threads);
}

Engine::~Engine() {
  EngineShared& shared = impl_->shared;
  for (const QueueEntryRef& entry : shared.scheduler.entries()) {
    std::static_pointer_cast<RunImpl>(entry)->cancel(core::Error("draining", "the server is shutting down"));
  }
  std::unique_lock held(shared.live_mutex);
  shared.is_quiet.wait(held, [&] { return shared.live.load(std::memory_order_acquire) == 0; });
}

std::shared_ptr<Run> Engine::submit(RunRequest request, std::function<void(RunOutcome)> done) {
  EngineShared& shared = impl_->shared;
  check(shared.options, request);
  if (!request.bind) check_arguments(shared.options, request);
  const auto deadline = request.deadline;
  const bool is_lent = request.on_callers_thread;
  QueueRequest wanted{.ticket = request.ticket,
                      .devices = request.devices,
                      .principal = request.principal,
                      .session = request.session,
                      .keeps_devices = keeps_devices(request.devices)};
  const auto on_submit = std::move(request.on_submit);
  auto run = std::make_shared<RunImpl>(shared, std::move(request), std::move(done));
  const int64_t limit = shared.options.memory_limit_bytes;
  if (limit > 0 && run->planned_bytes() > limit) {
    throw core::Error("memory_exceeded",
                      fmt::format("the run needs {} bytes at its peak, the server gives {} bytes to all runs together",
                                  run->planned_bytes(), limit));
  }
  if (deadline) {
    run->set_timer(shared.workers.at(*deadline, [weak = std::weak_ptr<RunImpl>(run)] {
      if (const auto self = weak.lock()) self->cancel(core::Error("deadline_exceeded", "the run's time was up"));
    }));
  }
  if (on_submit) on_submit(run);
  wanted.bytes = run->planned_bytes();
  shared.live.fetch_add(1, std::memory_order_relaxed);
  std::vector<QueueEntryRef> starting;
  try {
    starting = shared.scheduler.add(run, std::move(wanted));
  } catch (...) {
    shared.leave();
    throw;
  }
  const bool starts_here = is_lent && std::erase(starting, QueueEntryRef(run)) > 0;
  start_all(starting);
  if (starts_here) {
    run->lend();
  } else {
    run->withdraw_if_cancelled();
  }
  return run;
}

const EngineOptions& Engine::options() const { return impl_->shared.options; }
int Engine::threads() const { return impl_->shared.workers.threads(); }
void Engine::expect_run() { impl_->shared.workers.expect_work(); }
const std::shared_ptr<tensor::BufferPool>& Engine::pool() const { return impl_->shared.buffers; }

std::vector<int64_t> Engine::least_loaded(int64_t count) const {
  const std::vector<int64_t> queue = impl_->shared.scheduler.stats().device_queue;
  if (count < 0 || count > static_cast<int64_t>(queue.size())) {
    throw core::Error("too_few_devices",
                      fmt::format("{} devices are asked for, the server has {} devices", count, queue.size()));
  }
  std::vector<int64_t> devices(queue.size());
  std::iota(devices.begin(), devices.end(), int64_t{0});
  std::stable_sort(devices.begin(), devices.end(),
                   [&](int64_t a, int64_t b) { return queue[static_cast<size_t>(a)] < queue[static_cast<size_t>(b)]; });
  devices.resize(static_cast<size_t>(count));
  return devices;
}

bool Engine::keeps_devices(std::span<const int64_t> devices) const {
  const EngineOptions& options = impl_->shared.options;
  return options.transport != nullptr && !options.process_of_device.empty() &&
         std::any_of(devices.begin(), devices.end(), [&](int64_t device) {
           return options.process_of_device.at(static_cast<size_t>(device)) != options.rank;
         });
}

bool Engine::try_lend(int64_t bytes) { return impl_->shared.scheduler.try_take(bytes); }
void Engine::take_back(int64_t bytes) { start_all(impl_->shared.scheduler.give_back(bytes)); }

EngineStats Engine::stats() const {
  EngineStats out;
  Scheduler::Stats scheduled = impl_->shared.scheduler.stats();
  out.queued = scheduled.queued;
  out.running = scheduled.running;
  out.planned_bytes = scheduled.planned_bytes;
  out.device_queue = std::move(scheduled.device_queue);
  impl_->shared.counters.with([&](const EngineShared::Counters& counters) {
    out.runs_done = counters.runs_done;
    out.runs_failed = counters.runs_failed;
    out.device_busy = counters.device_busy;
  });
  return out;
}

}  // namespace meshd::device
