// An executor whose runs do what a test says: when they begin, which effects they have, how they end.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "service/core/error.h"
#include "service/device/engine.h"

namespace meshd::testing {

/// Of the test for the server: far beyond what it may take on a slow machine.
inline constexpr std::chrono::seconds kLongestWait{60};

/// A submitted run. The test's side is one thread's; a run that is cancelled ends at once, as one that waits does.
class FakeRun final : public device::Run {
 public:
  FakeRun(device::RunRequest request, std::function<void(device::RunOutcome)> done,
          std::shared_ptr<tensor::BufferPool> pool)
      : plan_(request.plan), request_(std::move(request)), done_(std::move(done)), pool_(std::move(pool)) {}

  /// The run has its devices: binds its arguments, which ends it where that throws. False: it has ended.
  bool begin() {
    std::optional<core::Error> wrong;
    {
      const std::lock_guard held(mutex_);
      if (is_over_) return false;
      try {
        arguments_ = request_.bind(checkpoint_, 0);
      } catch (const core::Error& error) {
        wrong = error;
      }
    }
    if (wrong) fail(*wrong);
    return !wrong;
  }
  /// Effect `number` of the plan happens with this value, a scalar of float32. False: the run has to wait, or has
  /// ended. Throws what the sink does.
  bool emit(float value, size_t number = 0) {
    const std::lock_guard held(mutex_);
    if (is_over_) return false;
    const compile::PlanEffect& effect = plan_->effects.at(number);
    const device::EffectValue operand{{tensor::DType::kFloat32, {}}, std::as_bytes(std::span(&value, 1))};
    const device::EffectKey key{{emitted_}, 0};
    device::EffectCall call;
    call.callback = effect.point.callback;
    call.ordered = effect.point.ordered;
    call.key = &key;
    call.name = effect.name;
    call.effect = &effect;
    call.devices = request_.devices;
    if (!effect.operands.empty()) call.operands = std::span(&operand, 1);
    call.results = effect.results;
    const device::EffectResult result = request_.effects->emit(call);
    if (result.is_done) ++emitted_;
    return result.is_done;
  }
  /// The program is over: every element of every result is `value`, of results of float32.
  void finish(float value = 0) {
    device::RunOutcome outcome;
    for (const compile::PlanParameter& result : plan_->results) {
      auto& shards = outcome.outputs.emplace_back();
      for (int64_t i = 0; i < result.shard_count(); ++i) {
        tensor::BufferRef shard = pool_->allocate(result.shard_bytes);
        for (int64_t at = 0; at < result.shard_bytes; at += 4) std::memcpy(shard->data() + at, &value, 4);
        shards.push_back(std::move(shard));
      }
    }
    end(std::move(outcome));
  }
  void fail(const core::Error& error) {
    device::RunOutcome outcome;
    outcome.error = error;
    end(std::move(outcome));
  }
  /// Waits until the job has resumed the run once more than this was called.
  void wait_until_resumed() {
    std::unique_lock held(mutex_);
    if (!changed_.wait_for(held, kLongestWait, [&] { return resumed_ > seen_; }))
      throw std::runtime_error("the run was not resumed");
    ++seen_;
  }
  [[nodiscard]] const std::vector<device::RunArgument>& arguments() const { return arguments_; }
  [[nodiscard]] bool is_over() const {
    const std::lock_guard held(mutex_);
    return is_over_;
  }

  // The job's side.
  void resume() override {
    {
      const std::lock_guard held(mutex_);
      ++resumed_;
    }
    changed_.notify_all();
  }
  void cancel(core::Error reason) override { fail(reason); }
  [[nodiscard]] device::RunProgress progress() const override { return {}; }

 private:
  /// Nothing ever asks it to do something.
  class QuietCheckpoint final : public core::Checkpoint {
   public:
    QuietCheckpoint() : Checkpoint(attention_, waiting_) {}

   private:
    void attend() override {}
    void leave() override {}
    void come_back() override {}
    void abandon() noexcept override {}
    std::atomic<uint32_t> attention_{0};
    std::atomic<int64_t> waiting_{0};
  };

  void end(device::RunOutcome outcome) {
    {
      const std::lock_guard held(mutex_);
      if (std::exchange(is_over_, true)) return;
      arguments_.clear();
    }
    done_(std::move(outcome));
  }

  const compile::PlanRef plan_;
  device::RunRequest request_;                          ///< its callables refer to the job: until the run is over
  const std::function<void(device::RunOutcome)> done_;  ///< keeps the sink alive
  const std::shared_ptr<tensor::BufferPool> pool_;
  QuietCheckpoint checkpoint_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<device::RunArgument> arguments_;
  int64_t emitted_ = 0;
  int resumed_ = 0, seen_ = 0;
  bool is_over_ = false;
};

/// Any thread.
class FakeExecutor final : public device::Executor {
 public:
  std::shared_ptr<device::Run> submit(device::RunRequest request,
                                      std::function<void(device::RunOutcome)> done) override {
    const auto on_submit = std::move(request.on_submit);
    const auto run = std::make_shared<FakeRun>(std::move(request), std::move(done), pool_);
    if (on_submit) on_submit(run);
    {
      const std::lock_guard held(mutex_);
      submitted_.push_back(run);
    }
    changed_.notify_all();
    return run;
  }
  /// The next run in the order of submission; waits for it.
  std::shared_ptr<FakeRun> next() {
    std::unique_lock held(mutex_);
    if (!changed_.wait_for(held, kLongestWait, [&] { return !submitted_.empty(); }))
      throw std::runtime_error("no run was submitted");
    auto run = std::move(submitted_.front());
    submitted_.pop_front();
    return run;
  }
  /// Runs that next() has not given.
  [[nodiscard]] size_t waiting() const {
    const std::lock_guard held(mutex_);
    return submitted_.size();
  }

  [[nodiscard]] const device::EngineOptions& options() const override { return options_; }
  [[nodiscard]] int threads() const override { return 1; }
  [[nodiscard]] device::EngineStats stats() const override { return {}; }
  [[nodiscard]] std::vector<int64_t> least_loaded(int64_t count) const override {
    std::vector<int64_t> devices;
    for (int64_t i = 0; i < count; ++i) devices.push_back(i);
    return devices;
  }
  [[nodiscard]] const std::shared_ptr<tensor::BufferPool>& pool() const override { return pool_; }
  [[nodiscard]] bool try_lend(int64_t) override { return true; }
  void take_back(int64_t) override {}
  [[nodiscard]] bool keeps_devices(std::span<const int64_t>) const override { return false; }

 private:
  const device::EngineOptions options_;
  const std::shared_ptr<tensor::BufferPool> pool_ = tensor::BufferPool::create(0);
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<FakeRun>> submitted_;
};

}  // namespace meshd::testing
