#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "service/core/error_of.h"
#include "service/core/keep_trying.h"
#include "service/device/run_impl.h"

namespace meshd::device {
namespace {

ProcessCounts process_counts(const WorkerPool& workers) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {usage.ru_minflt + usage.ru_majflt, workers.wake_ups()};
}

// A run's first moments say little of its end.
constexpr std::chrono::seconds kLeastForEstimate{1};

constexpr int64_t kCopiedAtOnce = int64_t{16} << 20;
// Results that are smaller are not worth another look at who waits for memory.
constexpr int64_t kLeastKept = int64_t{64} << 10;

}  // namespace

core::Error error_of(const std::exception_ptr& exception) {
  return core::error_of(exception, "the server has no memory for this run", "the run failed");
}

RunImpl::RunImpl(EngineShared& engine, RunRequest request, std::function<void(RunOutcome)> done)
    : engine_(engine),
      request_(std::move(request)),
      done_(std::move(done)),
      submitted_(std::chrono::steady_clock::now()) {
  owners_ = ownership_of(engine.options, request_.devices);
  if (is_elsewhere() && !request_.is_over_elsewhere)
    throw core::Error("invalid_argument", "none of the run's devices is this process's");
  planned_bytes_ = plan().peak_bytes;
  if (!owners_.is_alone) {
    local_arena_ = local_arena(plan(), owners_, request_.apart);
    planned_bytes_ = local_arena_->planned_bytes;
  }
  for (const compile::Slot& slot : plan().slots) {
    if (slot.storage != compile::Storage::kArgument || !slot.is_writable) continue;
    if (!request_.bind && !request_.arguments[static_cast<size_t>(slot.argument)].may_overwrite)
      planned_bytes_ += slot.bytes * plan().table(slot.table).count();
  }
}

void RunImpl::work() {
  if (phase_.load(std::memory_order_acquire) == Phase::kQueued) return work_here();
  drive();
}

void RunImpl::work_here() {
  Phase expected = Phase::kQueued;
  if (!phase_.compare_exchange_strong(expected, Phase::kRunning, std::memory_order_acq_rel)) return;
  drive();
}

void RunImpl::lend() {
  is_lent_ = true;
  begin_slice_clock();
  work_here();
}

// ---- beginning

void RunImpl::begin() {
  if (request_.bind) {
    RunCheckpoint thread(*this, is_lent_);
    request_.arguments = std::exchange(request_.bind, nullptr)(thread, planned_bytes_);
    check_arguments(engine_.options, request_);
  }
  has_begun_ = true;
  started_ = std::chrono::steady_clock::now();
  begun_.store(started_.time_since_epoch().count(), std::memory_order_relaxed);
  stats_.queue_time = started_ - submitted_;
  Frame program;
  program.active = std::make_shared<ActiveSet>(plan(), owners_);
  frames_.push_back(std::move(program));
  if (!is_elsewhere()) allocate();
  if (request_.profile) profiler_.emplace(plan().step_count, started_, process_counts(engine_.workers));
}

void RunImpl::allocate() {
  const compile::Plan& made = plan();
  pointers_.assign(static_cast<size_t>(made.pointer_count), nullptr);
  owner_of_pointer_.assign(static_cast<size_t>(made.pointer_count), -1);
  const int64_t arena_bytes = local_arena_ ? local_arena_->bytes : made.memory.arena;
  const int64_t shared_bytes = arena_bytes + (local_arena_ ? local_arena_->scratch_bytes : made.memory.scratch);
  if (shared_bytes > 0) {
    arena_ = engine_.buffers->allocate(shared_bytes);
    stats_.allocated_bytes += shared_bytes;
    scratch_ = arena_->data() + arena_bytes;
  }
  int64_t most_shards = 1;
  for (const compile::ShardTable& table : made.tables) most_shards = std::max(most_shards, table.count());
  if (owners_.is_alone) {
    counting_.resize(static_cast<size_t>(most_shards));
    for (size_t i = 0; i < counting_.size(); ++i) counting_[i] = static_cast<int32_t>(i);
  }
  for (const RunArgument& argument : request_.arguments) {
    for (const tensor::BufferRef& shard : argument.shards) {
      if (shard != nullptr)
        stats_.peak_bytes += made.arguments[static_cast<size_t>(&argument - request_.arguments.data())].shard_bytes;
    }
  }
  for (const compile::Slot& slot : made.slots) {
    const int64_t count = made.table(slot.table).count();
    std::byte** const pointers = pointers_.data() + slot.first_pointer;
    switch (slot.storage) {
      case compile::Storage::kArena:
        for (int64_t i = 0; i < count && arena_ != nullptr; ++i) {
          const int64_t at = local_arena_ ? local_arena_->offsets[static_cast<size_t>(slot.first_pointer + i)]
                                          : slot.offset + i * slot.stride;
          if (at >= 0) pointers[i] = arena_->data() + at;
        }
        break;
      case compile::Storage::kConstant:
        // Never written: slots of constants are no step's result.
        for (int64_t i = 0; i < count; ++i)
          pointers[i] = const_cast<std::byte*>(made.constant_data()) + slot.offset + i * slot.stride;
        break;
      case compile::Storage::kOwn: {
        for (const int32_t i : active_shards(*frames_.back().active, slot.table)) {
          owner_of_pointer_[static_cast<size_t>(slot.first_pointer + i)] = static_cast<int32_t>(held_.size());
          held_.push_back(engine_.buffers->allocate(slot.bytes));
          stats_.allocated_bytes += slot.bytes;
          pointers[i] = held_.back()->data();
        }
        break;
      }
      case compile::Storage::kArgument:
        bind_argument(static_cast<size_t>(slot.argument), slot);
        break;
    }
  }
  stats_.peak_bytes += stats_.allocated_bytes;
}

void RunImpl::bind_argument(size_t number, const compile::Slot& slot) {
  RunArgument& argument = request_.arguments[number];
  for (size_t shard = 0; shard < argument.shards.size(); ++shard) {
    tensor::BufferRef buffer = argument.shards[shard];
    if (buffer == nullptr) continue;
    if (slot.is_writable && !argument.may_overwrite) {
      // Copy on write: the plan writes here, and the buffer may have other readers.
      tensor::BufferRef copy = engine_.buffers->allocate(slot.bytes);
      stats_.allocated_bytes += slot.bytes;
      for (int64_t at = 0; at < slot.bytes; at += kCopiedAtOnce) {
        throw_if_cancelled();
        std::memcpy(copy->data() + at, buffer->data() + at,
                    static_cast<size_t>(std::min(kCopiedAtOnce, slot.bytes - at)));
      }
      buffer = std::move(copy);
    }
    const auto at = static_cast<size_t>(slot.first_pointer) + shard;
    owner_of_pointer_[at] = static_cast<int32_t>(held_.size());
    pointers_[at] = buffer->data();
    held_.push_back(std::move(buffer));
  }
}

// ---- driving

void RunImpl::close_segment() {
  const core::SteadyTime now = std::chrono::steady_clock::now();
  stats_.busy_time += now - segment_start_;
  segment_start_ = now;
}

core::Error RunImpl::cancel_reason() {
  return core::keep_trying([&] { return cancel_reason_.with([](const auto& reason) { return *reason; }); });
}

void RunImpl::drive() {
  const auto self = shared_from_this();
  segment_start_ = std::chrono::steady_clock::now();
  while (true) {
    std::optional<core::Error> error;
    Next next = Next::kFinished;
    try {
      if (is_cancelled()) {
        error = cancel_reason();
      } else {
        if (!has_begun_ && request_.may_begin && !request_.may_begin()) {
          next = Next::kSuspended;
        } else {
          if (!has_begun_) begin();
          next = advance();
        }
      }
    } catch (...) {
      error = core::keep_trying([] { return error_of(std::current_exception()); });
    }
    if (error && is_cancelled()) error = cancel_reason();
    // A step left to others: one of them has the run now.
    if (!error && next == Next::kHandedOff) return;
    close_segment();
    if (error || next == Next::kFinished) return finish(std::move(error));
    if (next == Next::kYield) {
      if (!goes_on_after_yield()) return;
      continue;
    }
    if (std::exchange(waits_outside_, false)) {
      is_lent_ = false;
      gave_way_ = true;
      start_all(engine_.scheduler.step_aside(self, slice_time()));
    }
    Phase expected = Phase::kRunning;
    if (phase_.compare_exchange_strong(expected, Phase::kWaiting, std::memory_order_acq_rel)) return;
    // Resumed before it had stopped. What it waited for is looked at again after this, and not before.
    phase_.exchange(Phase::kRunning, std::memory_order_acq_rel);
    if (gave_way_) return go_on();
  }
}

void RunImpl::go_on() {
  const auto self = shared_from_this();
  if (!std::exchange(gave_way_, false)) {
    begin_slice_clock();  // while it waited it used no device
    return engine_.workers.post(self);
  }
  start_all(engine_.scheduler.step_back(self));
  withdraw_if_cancelled();
}

void RunImpl::resume() {
  while (true) {
    Phase seen = phase_.load(std::memory_order_acquire);
    if (seen == Phase::kWaiting) {
      if (!phase_.compare_exchange_weak(seen, Phase::kRunning, std::memory_order_acq_rel)) continue;
      return go_on();
    }
    if (seen != Phase::kRunning && seen != Phase::kResumed) return;
    // Written where it is kResumed already, too: the thread that drives reads it with an exchange, and so sees what
    // happened before this call (a message that has come).
    if (phase_.compare_exchange_weak(seen, Phase::kResumed, std::memory_order_acq_rel)) return;
  }
}

void RunImpl::cancel(core::Error reason) {
  if (phase_.load(std::memory_order_acquire) == Phase::kDone) return;
  const bool is_first = cancel_reason_.with([&](auto& kept) {
    if (kept) return false;
    kept = std::move(reason);
    return true;
  });
  if (!is_first) return;
  is_cancelled_.store(true, std::memory_order_release);
  attention_.fetch_or(kCancelled, std::memory_order_relaxed);
  std::vector<QueueEntryRef> starting;
  if (engine_.scheduler.withdraw(shared_from_this(), starting)) {
    start_all(starting);
    return start_slice();  // ends it there
  }
  resume();
}

RunProgress RunImpl::progress() const {
  RunProgress out;
  switch (phase_.load(std::memory_order_acquire)) {
    case Phase::kQueued:
      out.state = RunState::kQueued;
      break;
    case Phase::kRunning:
    case Phase::kResumed:
      out.state = RunState::kRunning;
      break;
    case Phase::kWaiting:
      out.state = RunState::kWaiting;
      break;
    case Phase::kDone:
      out.state = RunState::kDone;
      break;
  }
  out.steps_done = steps_done_.load(std::memory_order_relaxed);
  if (plan().executed_steps >= 0) out.steps_total = plan().executed_steps;
  out.has_loops = plan().has_loops;
  if (const core::SteadyTime::rep since = begun_.load(std::memory_order_relaxed); since != 0)
    out.running_for = std::chrono::steady_clock::now() - core::SteadyTime(core::SteadyTime::duration(since));
  if (const compile::Step* loop = outer_loop_.load(std::memory_order_acquire)) {
    out.loop = RunLoop{loop->location.line, outer_iteration_.load(std::memory_order_relaxed), {}};
    if (loop->trip_count >= 0) out.loop->iterations = loop->trip_count;
  }
  if (const compile::Step* step = current_.load(std::memory_order_acquire)) {
    out.op = step->name;
    out.line = step->location.line;
  }
  return out;
}

std::optional<double> RunProgress::fraction() const {
  if (!steps_total || *steps_total == 0 || steps_done > *steps_total) return std::nullopt;
  return static_cast<double>(steps_done) / static_cast<double>(*steps_total);
}

std::optional<std::chrono::nanoseconds> RunProgress::remaining() const {
  const auto done = fraction();
  if (!has_loops || !done || *done <= 0 || running_for < kLeastForEstimate || state == RunState::kQueued)
    return std::nullopt;
  const double left = static_cast<double>(running_for.count()) * (1 - *done) / *done;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min(left, 1e18)));
}

// ---- ending

std::vector<std::vector<tensor::BufferRef>> RunImpl::take_outputs() {
  std::vector<std::vector<tensor::BufferRef>> out;
  for (const compile::PlanParameter& result : plan().results) {
    std::vector<tensor::BufferRef> shards(static_cast<size_t>(plan().table(result.table).count()));
    for (size_t shard = 0; shard < shards.size() && !is_elsewhere(); ++shard) {
      const int64_t at = result.slot_ref.first + plan().slot_shard(result.slot_ref, static_cast<int64_t>(shard));
      const int32_t owner = owner_of_pointer_[static_cast<size_t>(at)];
      if (owner >= 0) shards[shard] = held_[static_cast<size_t>(owner)];
    }
    out.push_back(std::move(shards));
  }
  return out;
}

std::vector<std::chrono::nanoseconds> RunImpl::device_busy() const {
  const std::vector<double>& shares = plan().device_share;
  std::vector<std::chrono::nanoseconds> out(shares.size());
  double ours = 0;
  for (size_t i = 0; i < shares.size(); ++i) ours += owners_.rank_of_device[i] == owners_.rank ? shares[i] : 0;
  // Alone, the shares of all add up to 1, but for rounding; that must not change what one process counts.
  const double whole = owners_.is_alone ? 1 : ours;
  for (size_t i = 0; i < shares.size() && whole > 0; ++i) {
    if (owners_.rank_of_device[i] != owners_.rank) continue;
    out[i] = std::chrono::nanoseconds(
        static_cast<int64_t>(shares[i] / whole * static_cast<double>(stats_.busy_time.count())));
  }
  return out;
}

std::vector<int64_t> RunImpl::overwritten() const {
  std::vector<int64_t> out;
  if (!has_begun_) return out;
  for (const compile::Slot& slot : plan().slots) {
    const bool written = slot.storage == compile::Storage::kArgument && slot.is_writable;
    if (written && request_.arguments[static_cast<size_t>(slot.argument)].may_overwrite) out.push_back(slot.argument);
  }
  return out;
}

int64_t RunImpl::kept_bytes(const RunOutcome& outcome) const {
  if (engine_.options.memory_limit_bytes == 0) return 0;
  std::vector<const tensor::Buffer*> buffers;
  for (const auto& shards : outcome.outputs) {
    for (const tensor::BufferRef& shard : shards) {
      if (shard != nullptr) buffers.push_back(shard.get());
    }
  }
  std::sort(buffers.begin(), buffers.end());  // several results may be one buffer
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  int64_t bytes = 0;
  for (const tensor::Buffer* buffer : buffers) bytes += buffer->size();
  return bytes < kLeastKept ? 0 : std::min(bytes, planned_bytes_);
}

void RunImpl::finish(std::optional<core::Error> error) {
  const auto self = shared_from_this();
  RunOutcome outcome;
  int64_t kept = 0;
  timer_.reset();
  const core::SteadyTime now = std::chrono::steady_clock::now();
  if (!has_begun_) {
    stats_.queue_time = now - submitted_;
  } else {
    stats_.run_time = now - started_;
  }
  stats_.steps = steps_done_.load(std::memory_order_relaxed);
  stats_.operations = operations_;
  stats_.bytes = bytes_;
  stats_.busy_time += std::chrono::nanoseconds(helper_ns_.load(std::memory_order_relaxed));
  // It ends with an outcome and without its devices, whatever memory there is.
  core::keep_trying([&] { outcome.overwritten = overwritten(); });
  try {
    if (profiler_) stats_.profile = profiler_->take(process_counts(engine_.workers));
    stats_.device_busy = device_busy();
    if (!error) outcome.outputs = take_outputs();
    if (!request_.results_wait) kept = kept_bytes(outcome);
  } catch (...) {
    if (!error) error = core::keep_trying([&] { return error_of(std::current_exception()); });
  }
  if (!owners_.is_alone) engine_.options.transport->forget(request_.key);
  // Memory first, so that whoever starts now finds it free.
  frames_.clear();
  exchange_.reset();
  held_.clear();
  arena_.reset();
  request_.arguments.clear();
  current_.store(nullptr, std::memory_order_release);
  outer_loop_.store(nullptr, std::memory_order_release);
  engine_.counters.with([&](EngineShared::Counters& counters) {
    ++(error ? counters.runs_failed : counters.runs_done);
    for (size_t i = 0; i < stats_.device_busy.size(); ++i) {
      counters.device_busy[static_cast<size_t>(request_.devices[i])] += stats_.device_busy[i];
    }
  });
  outcome.error = std::move(error);
  outcome.stats = std::move(stats_);
  const auto done = std::move(done_);
  phase_.store(Phase::kDone, std::memory_order_release);
  start_all(engine_.scheduler.remove(self, slice_time(), kept));
  outcome.memory = ResultMemory(engine_.shared_scheduler, kept);
  done(std::move(outcome));
  engine_.leave();  // the engine may be destroyed after this
}

}  // namespace meshd::device
