#include "service/hosts/coordinator.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "service/core/clock.h"
#include "service/core/keep_trying.h"
#include "service/hosts/holders.h"
#include "service/hosts/multi_rank_run.h"

namespace meshd::hosts {
namespace {

uint64_t nanoseconds_now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

Coordinator::Coordinator(Network& network, CoordinatorOptions options, std::shared_ptr<tensor::BufferPool> pool)
    : network_(network),
      options_(std::move(options)),
      rank_of_device_(ranks_of_devices(options_.engine.device_count, network.size())),
      ranks_(static_cast<size_t>(network.size())),
      busy_elsewhere_(static_cast<size_t>(options_.engine.device_count)),
      residents_(network.size()) {
  messages_ = std::make_shared<Messages>(network_, [this](int peer, Control kind, std::string_view text) {
    core::keep_trying([&] { on_control(peer, kind, text); });  // the message comes once
  });
  plans_ = std::make_unique<Plans>(*messages_);
  disks_ = std::make_unique<RankDisks>(*messages_, network_.size(), options_.patience);
  device::EngineOptions engine = options_.engine;
  engine.process_of_device = rank_of_device_;
  engine.rank = 0;
  engine.transport = messages_;
  engine_ = std::make_unique<device::Engine>(std::move(engine), std::move(pool));
  network_.start(messages_);
  const Welcome welcome{.environment = options_.environment,
                        .device_count = options_.engine.device_count,
                        .plan_threads = engine_->threads(),
                        .disabled_passes = options_.disabled_passes,
                        .memory_limit_bytes = options_.engine.memory_limit_bytes,
                        .mesh = options_.mesh};
  for (int rank = 1; rank < network_.size(); ++rank) messages_->send(rank, Control::kWelcome, encode(welcome));
  try {
    wait_until_ready();
  } catch (...) {
    messages_->detach();
    throw;
  }
  worker_ = std::thread([this] { work(); });
}

void Coordinator::wait_until_ready() {
  std::unique_lock held(mutex_);
  const auto first_with = [&](const auto& test) {
    const auto found = std::find_if(ranks_.begin() + 1, ranks_.end(), test);
    return found == ranks_.end() ? 0 : static_cast<int>(found - ranks_.begin());
  };
  const auto waits = [](const Rank& rank) { return !rank.is_ready; };
  heard_.wait_for(held, options_.patience, [&] {
    return first_with(waits) == 0 || first_with([](const Rank& rank) { return !rank.problem.empty(); }) != 0;
  });
  for (const Rank& rank : ranks_) {
    if (!rank.problem.empty()) throw core::Error("internal", rank.problem);
  }
  if (const int late = first_with(waits)) {
    throw core::Error("internal",
                      fmt::format("rank {} was not ready within {} s", late, options_.patience.count() / 1000));
  }
}

Coordinator::~Coordinator() {
  std::vector<std::shared_ptr<MultiRankRun>> left;
  {
    const std::lock_guard held(mutex_);
    for (const auto& [key, run] : runs_) left.push_back(run);
  }
  for (const auto& run : left) run->cancel(core::Error("draining", "the server is shutting down"));
  left.clear();
  {
    std::unique_lock held(mutex_);
    heard_.wait_for(held, options_.patience, [&] { return runs_.empty(); });
  }
  stop();
  messages_->detach();
  {
    const std::lock_guard held(mutex_);
    ending_ = true;
    wake_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
}

std::shared_ptr<device::Run> Coordinator::submit(device::RunRequest request,
                                                 std::function<void(device::RunOutcome)> done) {
  if (request.plan == nullptr) throw core::Error("internal", "a run without a plan");
  if (request.devices.empty()) {
    for (int64_t device = 0; device < request.plan->device_count; ++device) request.devices.push_back(device);
  }
  const bool is_known = std::all_of(request.devices.begin(), request.devices.end(), [&](int64_t device) {
    return device >= 0 && device < options_.engine.device_count;
  });
  const bool is_whole = static_cast<int64_t>(request.devices.size()) == request.plan->device_count;
  // What it cannot run the engine refuses.
  if (!is_known || !is_whole || !keeps_devices(request.devices))
    return engine_->submit(std::move(request), std::move(done));
  if (request.lowered == nullptr) throw core::Error("internal", "a run of several ranks without its program");
  if (request.plan->shares_between_devices) {
    throw core::Error("unsupported_partition",
                      "the program reads a value on devices outside of its mesh, which processes do not exchange yet");
  }
  Holders holders(*request.plan, request.devices, rank_of_device_);
  const auto on_submit = std::move(request.on_submit);
  std::shared_ptr<MultiRankRun> run;
  bool is_first = false;
  {
    const std::lock_guard held(mutex_);
    const uint64_t key = ++last_run_;
    run = std::make_shared<MultiRankRun>(*this, key, std::move(holders), std::move(request), std::move(done));
    is_first = runs_.empty();
    runs_[key] = run;
  }
  if (is_first) network_.expect_traffic(true);
  try {
    if (on_submit) on_submit(run);
    run->start();
  } catch (...) {
    over(run->key(), {}, {});  // it has not begun, and nobody would end it
    throw;
  }
  return run;
}

device::EngineStats Coordinator::stats() const {
  device::EngineStats out = engine_->stats();
  const std::lock_guard held(mutex_);
  for (size_t i = 0; i < out.device_busy.size(); ++i) out.device_busy[i] += busy_elsewhere_[i];
  return out;
}

uint64_t Coordinator::oldest_live() const {
  const std::lock_guard held(mutex_);
  return runs_.empty() ? last_run_ + 1 : runs_.begin()->first;
}

std::shared_ptr<MultiRankRun> Coordinator::find(uint64_t run) {
  const std::lock_guard held(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second;
}

void Coordinator::over(uint64_t run, const device::RunStats& stats, const std::vector<int64_t>& devices) {
  messages_->forget(run | kArgumentsAndResults);
  bool is_idle = false;
  {
    const std::lock_guard held(mutex_);
    for (size_t i = 0; i < std::min(devices.size(), stats.device_busy.size()); ++i) {
      const auto device = static_cast<size_t>(devices[i]);
      if (rank_of_device_[device] != 0) busy_elsewhere_[device] += stats.device_busy[i];
    }
    runs_.erase(run);
    is_idle = runs_.empty();
    heard_.notify_all();
  }
  if (is_idle) network_.expect_traffic(false);
}

void Coordinator::on_control(int peer, Control kind, std::string_view text) {
  const auto note = [&](const std::function<void(Rank&)>& change) {
    const std::lock_guard held(mutex_);
    change(ranks_[static_cast<size_t>(peer)]);
    heard_.notify_all();
  };
  switch (kind) {
    case Control::kReady: {
      const auto ready = decode<Ready>(text);
      {
        const std::lock_guard ordered(order_);
        residents_.set_room(peer, ready.array_bytes, ready.with_runs_bytes);
      }
      return note([&](Rank& rank) {
        rank.problem = ready.problem;
        rank.is_ready = true;
      });
    }
    case Control::kPrepared:
      return plans_->prepared(peer, decode<Prepared>(text));
    case Control::kEffect: {
      auto effect = decode<Effect>(text);
      if (const auto run = find(effect.run)) run->effect(peer, std::move(effect));
      return;
    }
    case Control::kEnded: {
      auto ended = decode<Ended>(text);
      if (const auto run = find(ended.run)) run->ended(peer, std::move(ended));
      return;
    }
    case Control::kPong: {
      const uint64_t sent = decode<Number>(text).value;
      return note([&](Rank& rank) { rank.round_trip = std::chrono::nanoseconds(nanoseconds_now() - sent); });
    }
    case Control::kLost: {
      const std::lock_guard ordered(order_);
      return residents_.lost(peer, decode<Number>(text).value);
    }
    case Control::kDiskDone:
      return disks_->answered(decode<DiskAnswer>(text));
    case Control::kStopped:
      return note([](Rank& rank) { rank.has_stopped = true; });
    default:
      throw core::Error("internal",
                        fmt::format("rank {} sent a message of kind {}", peer, static_cast<uint32_t>(kind)));
  }
}

void Coordinator::forget(std::string_view array) {
  const std::lock_guard ordered(order_);
  residents_.forget(array);
  for (int rank = 1; rank < network_.size(); ++rank) {
    const Drop drop{residents_.take_drops(rank)};
    if (!drop.entries.empty()) messages_->send_surely(rank, Control::kDrop, drop);
  }
}

std::vector<Residents::Held> Coordinator::kept_arrays() const {
  std::vector<Residents::Held> out(1);
  const std::lock_guard ordered(order_);
  for (int rank = 1; rank < network_.size(); ++rank) out.push_back(residents_.held(rank));
  return out;
}

void Coordinator::later(std::function<void()> task) {
  const std::lock_guard held(mutex_);
  tasks_.push_back(std::move(task));
  wake_.notify_one();
}

void Coordinator::work() {
  core::SteadyTime next_ping = std::chrono::steady_clock::now();
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock held(mutex_);
      wake_.wait_until(held, next_ping, [&] { return ending_ || !tasks_.empty(); });
      if (ending_ && tasks_.empty()) return;
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
    }
    if (task) task();
    if (std::chrono::steady_clock::now() < next_ping) continue;
    core::keep_trying([&] { ping(); });
    next_ping = std::chrono::steady_clock::now() + options_.ping_every;
  }
}

void Coordinator::ping() {
  for (int rank = 1; rank < network_.size(); ++rank)
    messages_->send(rank, Control::kPing, encode(Number{nanoseconds_now()}));
}

std::optional<std::string> Coordinator::problem() const {
  for (int rank = 1; rank < network_.size(); ++rank) {
    const std::chrono::nanoseconds silent = messages_->silence(rank);
    if (silent < options_.silence) continue;
    return fmt::format("rank {} has not answered for {} s", rank,
                       std::chrono::duration_cast<std::chrono::seconds>(silent).count());
  }
  return std::nullopt;
}

std::vector<std::chrono::nanoseconds> Coordinator::round_trips() const {
  std::vector<std::chrono::nanoseconds> out;
  const std::lock_guard held(mutex_);
  for (const Rank& rank : ranks_) out.push_back(rank.round_trip);
  return out;
}

void Coordinator::stop() {
  for (int rank = 1; rank < network_.size(); ++rank)
    core::keep_trying([&] { messages_->send(rank, Control::kStop, {}); });
  std::unique_lock held(mutex_);
  // A rank that hangs, or is dead, is not waited for.
  const auto is_awaited = [&] {
    for (int rank = 1; rank < network_.size(); ++rank) {
      if (!ranks_[static_cast<size_t>(rank)].has_stopped && messages_->silence(rank) <= options_.silence) return true;
    }
    return false;
  };
  while (is_awaited()) heard_.wait_for(held, options_.ping_every);
}

}  // namespace meshd::hosts
