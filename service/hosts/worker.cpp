#include "service/hosts/worker.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "service/core/error_of.h"
#include "service/hosts/holders.h"
#include "service/hosts/plan_digest.h"
#include "service/warmup/compile_record.h"

namespace meshd::hosts {
namespace {

// Effects without results that rank 0 has not confirmed: it may make the run wait for room.
constexpr int kMostUnconfirmed = 64;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

core::Error error_of(const std::exception_ptr& exception) {
  return core::error_of(exception, "a rank has no memory for this run", "a rank cannot begin the run");
}

}  // namespace

/// A run that this rank takes part in. Its effects go to rank 0.
class Worker::WorkerRun final : public device::EffectSink {
 public:
  WorkerRun(uint64_t key, compile::LoweredRef lowered, Holders holders, Messages& messages)
      : key_(key), lowered_(std::move(lowered)), holders_(std::move(holders)), messages_(messages) {}

  [[nodiscard]] const compile::Plan& plan() const { return *lowered_->plan; }
  [[nodiscard]] const compile::LoweredRef& lowered() const { return lowered_; }
  [[nodiscard]] const Holders& holders() const { return holders_; }
  [[nodiscard]] uint64_t key() const { return key_; }

  void set_run(const std::shared_ptr<device::Run>& run) {
    std::optional<core::Error> error;
    {
      const std::lock_guard held(mutex_);
      run_ = run;
      error = error_;
    }
    if (error) run->cancel(*error);
  }
  std::shared_ptr<device::Run> run() {
    const std::lock_guard held(mutex_);
    return run_.lock();
  }
  void resume() {
    if (const auto alive = run()) alive->resume();
  }
  void will_come() { missing_.fetch_add(1, std::memory_order_relaxed); }
  void has_come() {
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) resume();
  }
  /// Ends it with this error, whether it has begun or not.
  void fail(const core::Error& error) {
    std::shared_ptr<device::Run> alive;
    {
      const std::lock_guard held(mutex_);
      error_ = error;
      alive = run_.lock();
    }
    if (alive != nullptr) alive->cancel(error);
  }
  [[nodiscard]] bool is_complete() const { return missing_.load(std::memory_order_acquire) == 0; }

  device::EffectResult emit(const device::EffectCall& call) override {
    const std::lock_guard held(mutex_);
    if (call.results.empty()) {
      if (unconfirmed_ >= kMostUnconfirmed) {
        is_full_ = true;
        return device::EffectResult::pending();
      }
      ++unconfirmed_;
      ask(call);
      return device::EffectResult::done();
    }
    if (reply_ && reply_->visit == call.visit) {
      const Reply reply = *std::exchange(reply_, std::nullopt);
      if (reply.error) throw core::Error(*reply.error);
      std::vector<std::vector<std::byte>> results;
      for (const std::string& result : reply.results) results.push_back(bytes_of(result));
      return device::EffectResult::done(std::move(results));
    }
    if (asked_ != call.visit) ask(call);
    asked_ = call.visit;
    return device::EffectResult::pending();
  }

  void take(Reply reply) {
    {
      const std::lock_guard held(mutex_);
      if (asked_ == reply.visit) {
        reply_ = std::move(reply);
      } else {
        --unconfirmed_;
        if (!std::exchange(is_full_, false)) return;
      }
    }
    resume();
  }

 private:
  void ask(const device::EffectCall& call) {
    Effect effect;
    effect.run = key_;
    effect.visit = call.visit;
    effect.effect = static_cast<int32_t>(call.effect - plan().effects.data());
    effect.device = call.device;
    effect.path = call.key->path;
    effect.shard = call.key->shard;
    for (const device::EffectValue& value : call.operands)
      effect.operands.emplace_back(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
    messages_.send(0, Control::kEffect, encode(std::move(effect)));
  }

  const uint64_t key_;
  const compile::LoweredRef lowered_;
  const Holders holders_;
  Messages& messages_;
  std::atomic<int64_t> missing_{1};  // shards of arguments, and one until it is submitted
  std::mutex mutex_;                 // of what follows
  std::weak_ptr<device::Run> run_;
  std::optional<core::Error> error_;
  int64_t asked_ = -1;
  std::optional<Reply> reply_;
  int unconfirmed_ = 0;
  bool is_full_ = false;
};

Worker::Worker(Network& network, WorkerOptions options, std::shared_ptr<tensor::BufferPool> pool)
    : network_(network), options_(std::move(options)), pool_(std::move(pool)) {
  messages_ = std::make_shared<Messages>(
      network_, [this](int peer, Control kind, std::string_view text) { on_control(peer, kind, text); });
  network_.start(messages_);
}

Worker::~Worker() { messages_->detach(); }

void Worker::serve() {
  while (true) {
    std::function<bool()> work;
    {
      std::unique_lock held(mutex_);
      wake_.wait(held, [&] { return !work_.empty(); });
      work = std::move(work_.front());
      work_.pop_front();
    }
    if (!work()) return;
  }
}

std::function<std::chrono::nanoseconds()> Worker::silence() const {
  return [messages = messages_] { return messages->silence(0); };
}

void Worker::on_control(int peer, Control kind, std::string_view text) {
  const auto later = [&](std::function<bool()> work) {
    const std::lock_guard held(mutex_);
    work_.push_back(std::move(work));
    wake_.notify_one();
  };
  switch (kind) {
    case Control::kWelcome:
      return later([this, message = decode<Welcome>(text)] {
        welcome(message);
        return true;
      });
    case Control::kPrepare:
      return later([this, message = decode<Prepare>(text)] {
        prepare(message);
        return true;
      });
    case Control::kDropPlan:
      return later([this, plan = decode<Number>(text).value] {
        const std::lock_guard held(mutex_);
        plans_.erase(plan);
        return true;
      });
    case Control::kBegin:
      return begin(decode<Begin>(text));
    case Control::kCancel: {
      const auto message = decode<Cancel>(text);
      const auto found = find(message.run);
      const auto run = found == nullptr ? nullptr : found->run();
      if (run != nullptr) run->cancel(*message.reason);
      return;
    }
    case Control::kReply: {
      auto message = decode<Reply>(text);
      if (const auto found = find(message.run)) found->take(std::move(message));
      return;
    }
    case Control::kBecame:
      return became(decode<Became>(text));
    case Control::kRelease: {
      std::map<uint64_t, Held>::node_type
          released;  // destroyed after the lock is released: runs that wait for its memory may begin
      const std::lock_guard held(mutex_);
      released = held_.extract(decode<Number>(text).value);
      return;
    }
    case Control::kDrop:
      return drop(decode<Drop>(text).entries);
    case Control::kDisk:
      return serve_disk(decode<DiskRequest>(text));
    case Control::kPing:
      return messages_->send(peer, Control::kPong, std::string(text));
    case Control::kStop:
      return later([this] {
        messages_->send(0, Control::kStopped, {});
        return false;
      });
    default:
      throw core::Error("internal",
                        fmt::format("rank {} sent a message of kind {}", peer, static_cast<uint32_t>(kind)));
  }
}

void Worker::welcome(const Welcome& welcome) {
  Ready ready{.environment = options_.environment,
              .problem = {},
              .array_bytes = options_.array_bytes,
              .with_runs_bytes = options_.with_runs_bytes};
  try {
    if (!options_.data.empty()) {
      files_ = storage::real_file_system();
      disk_ = std::make_unique<OwnDisk>(*files_, options_.data, network_.rank(), welcome.mesh, options_.fatal);
    }
  } catch (const core::Error& error) {
    ready.problem = fmt::format("rank {}: {} {}", network_.rank(), error.detail(), error.internal());
  }
  if (!ready.problem.empty()) {
    // It is told.
  } else if (welcome.environment != options_.environment) {
    ready.problem =
        fmt::format("rank {} is '{}', rank 0 is '{}': ranks have to be the same build on processors of one kind",
                    network_.rank(), options_.environment, welcome.environment);
  } else {
    compile::PlanSettings settings(static_cast<int>(welcome.plan_threads));
    for (const compile::PlanPass& pass : compile::kPlanPasses) {
      const std::vector<std::string>& off = welcome.disabled_passes;
      settings.*pass.is_on = std::find(off.begin(), off.end(), pass.name) == off.end();
    }
    settings.shares_memory = false;
    rank_of_device_ = ranks_of_devices(welcome.device_count, network_.size());
    device::EngineOptions options;
    options.device_count = welcome.device_count;
    options.threads = options_.threads;
    options.memory_limit_bytes = welcome.memory_limit_bytes;
    options.process_of_device = rank_of_device_;
    options.rank = network_.rank();
    options.transport = messages_;
    engine_ = std::make_unique<device::Engine>(std::move(options), pool_);
    compiler_ = std::make_unique<compile::Compiler>(settings, options_.cache_entries, options_.cache_bytes);
  }
  messages_->send(0, Control::kReady, encode(ready));
  if (!ready.problem.empty()) throw core::Error("internal", ready.problem);
}

void Worker::prepare(const Prepare& prepare) {
  Prepared out{.plan = prepare.plan, .digest = {}, .error = {}};
  try {
    compile::LoweredRef lowered = warmup::compile_record(*compiler_, warmup::decode_record(prepare.record));
    out.digest = plan_digest(*lowered->plan);
    const std::lock_guard held(mutex_);
    plans_[prepare.plan] = std::move(lowered);
  } catch (...) {
    out.error = error_of(std::current_exception());
  }
  messages_->send(0, Control::kPrepared, encode(std::move(out)));
}

std::shared_ptr<Worker::WorkerRun> Worker::find(uint64_t run) {
  const std::lock_guard held(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second;
}

void Worker::over(uint64_t run) {
  std::shared_ptr<WorkerRun> last;
  bool is_idle = false;
  {
    const std::lock_guard held(mutex_);
    const auto found = runs_.find(run);
    if (found == runs_.end()) return;
    last = std::move(found->second);
    runs_.erase(found);
    is_idle = runs_.empty();
  }
  if (is_idle) network_.expect_traffic(false);
}

Worker::EntryRef Worker::new_entry(const std::shared_ptr<WorkerRun>& run, uint64_t number,
                                   const tensor::BufferRef& buffer) {
  auto entry = std::make_shared<Entry>();
  entry->buffer = buffer;
  entry->waiting.push_back(run);
  const std::lock_guard held(mutex_);
  entries_[number] = entry;
  return entry;
}

void Worker::has_come(uint64_t number, const EntryRef& entry, const std::optional<core::Error>& error) {
  std::vector<std::shared_ptr<WorkerRun>> waiting;
  {
    const std::lock_guard held(mutex_);
    entry->is_there = true;
    entry->error = error;
    waiting.swap(entry->waiting);
    if (error) entry->buffer = nullptr;
  }
  if (error) messages_->send(0, Control::kLost, encode(Number{number}));
  for (const auto& run : waiting) {
    if (error) run->fail(*error);
    run->has_come();
  }
}

tensor::BufferRef Worker::find_shard(const std::shared_ptr<WorkerRun>& run, const ArgumentShard& how,
                                     const device::MessageKey& key, int64_t bytes) {
  using How = ArgumentShard::How;
  if (how.how == How::kThere || how.how == How::kTaken) {
    const std::lock_guard held(mutex_);
    const auto found = entries_.find(how.entry);
    // It could not be kept, and rank 0 did not know it yet.
    if (found == entries_.end()) throw core::Error("memory_exceeded", "a rank has no memory for this run");
    const EntryRef entry = found->second;
    if (how.how == How::kTaken) entries_.erase(found);
    if (entry->error) throw core::Error(*entry->error);
    if (!entry->is_there) {
      run->will_come();
      entry->waiting.push_back(run);
      return entry->buffer;
    }
    return how.how == How::kTaken ? std::exchange(entry->buffer, nullptr) : entry->buffer;
  }
  const tensor::BufferRef buffer = pool_->allocate(bytes);
  run->will_come();
  if (how.how == How::kRead) {
    read_shard(run, how, buffer, bytes);
  } else if (how.how == How::kKept) {
    const EntryRef entry = new_entry(run, how.entry, buffer);
    messages_->expect(0, {kEntries | how.entry, 0, 0, 0}, buffer->bytes(),
                      [this, number = how.entry, entry] { has_come(number, entry, {}); });
  } else {
    messages_->expect(0, key, buffer->bytes(), [run, buffer] { run->has_come(); });
  }
  return buffer;
}

void Worker::read_shard(const std::shared_ptr<WorkerRun>& run, const ArgumentShard& how,
                        const tensor::BufferRef& buffer, int64_t bytes) {
  if (disk_ == nullptr) throw core::Error("storage_failed", "a rank has no disk");
  if (how.entry == 0) {
    return disk_->read(how.file, buffer, bytes, [run](const std::optional<core::Error>& error) {
      if (error) run->fail(*error);
      run->has_come();
    });
  }
  const EntryRef entry = new_entry(run, how.entry, buffer);
  disk_->read(how.file, buffer, bytes, [this, number = how.entry, entry](const std::optional<core::Error>& error) {
    has_come(number, entry, error);
  });
}

void Worker::drop(const std::vector<uint64_t>& entries) {
  const std::lock_guard held(mutex_);
  for (const uint64_t entry : entries) entries_.erase(entry);
}

void Worker::became(const Became& message) {
  const std::lock_guard held(mutex_);
  const auto found = held_.find(message.run);
  for (const Became::Shard& shard : message.shards) {
    if (found == held_.end()) continue;
    auto entry = std::make_shared<Entry>();
    entry->buffer = found->second.results.at(shard.result).at(static_cast<size_t>(shard.shard));
    entry->is_there = true;
    entries_[shard.entry] = std::move(entry);
  }
  for (const uint64_t entry : message.drops) entries_.erase(entry);
}

void Worker::serve_disk(DiskRequest request) {
  const auto answer = [this](DiskAnswer out) { messages_->send(0, Control::kDiskDone, encode(std::move(out))); };
  std::vector<OwnDisk::ToWrite> shards;
  std::optional<core::Error> problem;
  if (disk_ == nullptr) problem = core::Error("storage_failed", "a rank has no disk");
  if (request.what == DiskRequest::What::kWrite) {
    const std::lock_guard held(mutex_);
    const auto found = held_.find(request.run);
    for (size_t i = 0; i < request.names.size() && found != held_.end(); ++i) {
      const size_t result = request.results.at(i);
      shards.push_back({request.names[i],
                        found->second.results.at(result).at(static_cast<size_t>(request.shards.at(i))),
                        found->second.lowered->plan->results.at(result).shard_bytes});
    }
    if (found == held_.end()) problem = core::Error("internal", "a rank does not hold the results of that run");
  }
  if (problem) {
    DiskAnswer refused;
    refused.number = request.number;
    refused.error = std::move(problem);
    return answer(std::move(refused));
  }
  disk_->serve(std::move(request), std::move(shards), answer);
}

void Worker::begin(const Begin& begin) {
  messages_->ignore_before(begin.oldest_live);
  network_.expect_traffic(true);
  compile::LoweredRef lowered;
  {
    const std::lock_guard held(mutex_);
    lowered = plans_.at(begin.plan);
  }
  const auto run = std::make_shared<WorkerRun>(begin.run, lowered,
                                               Holders(*lowered->plan, begin.devices, rank_of_device_), *messages_);
  {
    const std::lock_guard held(mutex_);
    runs_[begin.run] = run;
  }
  const auto end = [this, run, places = begin.results](device::RunOutcome outcome) {
    ended(*run, places, std::move(outcome));
  };
  try {
    device::RunRequest request;
    request.plan = lowered->plan;
    request.devices = begin.devices;
    request.key = begin.run;
    request.ticket = begin.ticket;
    request.step_budget = begin.step_budget;
    request.operation_budget = begin.operation_budget;
    request.byte_budget = begin.byte_budget;
    request.profile = begin.profile;
    request.nonfinite = begin.nonfinite;
    request.results_wait = begin.results_wait;
    if (begin.has_effects) request.effects = run.get();
    request.arguments = find_arguments(run, begin.arguments);
    drop(begin.drops);
    request.may_begin = [run] { return run->is_complete(); };
    request.on_submit = [run](const std::shared_ptr<device::Run>& handle) { run->set_run(handle); };
    engine_->submit(std::move(request), end);
    run->has_come();
  } catch (...) {
    device::RunOutcome outcome;
    outcome.error = error_of(std::current_exception());
    settle_entries(begin.arguments);
    drop(begin.drops);
    end(std::move(outcome));
  }
}

std::vector<device::RunArgument> Worker::find_arguments(const std::shared_ptr<WorkerRun>& run,
                                                        const std::vector<ArgumentShard>& shards) {
  const compile::Plan& plan = run->plan();
  std::vector<device::RunArgument> out;
  auto how = shards.begin();
  for (size_t argument = 0; argument < plan.arguments.size(); ++argument) {
    const compile::PlanParameter& wanted = plan.arguments[argument];
    device::RunArgument& given = out.emplace_back();
    given.shards.resize(static_cast<size_t>(plan.table(wanted.table).count()));
    given.may_overwrite = true;
    for (size_t shard = 0; shard < given.shards.size(); ++shard) {
      const auto number = static_cast<int64_t>(shard);
      if (!run->holders().holds(network_.rank(), wanted.table, number)) continue;
      const device::MessageKey key{run->key() | kArgumentsAndResults, 0, number, static_cast<int64_t>(argument)};
      given.shards[shard] = find_shard(run, *how, key, wanted.shard_bytes);
      // Others may read what was an entry: a run that began before, or a result that is the same buffer.
      const bool is_own =
          how->how == ArgumentShard::How::kTaken ? given.shards[shard].use_count() == 1 : how->entry == 0;
      given.may_overwrite = given.may_overwrite && is_own;
      ++how;
    }
  }
  return out;
}

void Worker::settle_entries(const std::vector<ArgumentShard>& shards) {
  using How = ArgumentShard::How;
  for (const ArgumentShard& shard : shards) {
    if (shard.entry == 0 || shard.how == How::kThere) continue;
    {
      const std::lock_guard held(mutex_);
      if (shard.how == How::kTaken) entries_.erase(shard.entry);
      if (shard.how == How::kTaken || entries_.contains(shard.entry)) continue;
    }
    messages_->forget(kEntries | shard.entry);  // where rank 0 sends it all the same
    messages_->send(0, Control::kLost, encode(Number{shard.entry}));
  }
}

void Worker::ended(const WorkerRun& run, const std::vector<device::ResultPlace>& places, device::RunOutcome outcome) {
  const compile::Plan& plan = run.plan();
  const uint64_t cargo = run.key() | kArgumentsAndResults;
  for (size_t result = 0; !outcome.error && result < outcome.outputs.size(); ++result) {
    const std::vector<tensor::BufferRef>& shards = outcome.outputs[result];
    for (size_t shard = 0; shard < shards.size(); ++shard) {
      const auto number = static_cast<int64_t>(shard);
      if (run.holders().sender(plan.results[result].table, number) != network_.rank()) continue;
      if (!places.empty() && places[result] == device::ResultPlace::kThere) continue;
      const auto bytes = static_cast<size_t>(plan.results[result].shard_bytes);
      messages_->push(0, {cargo, 1, number, static_cast<int64_t>(result)}, shards[shard]->bytes().first(bytes),
                      shards[shard]);
    }
  }
  messages_->forget(cargo);
  if (!outcome.error && !places.empty()) {
    const std::lock_guard held(mutex_);
    held_[run.key()] = {run.lowered(), std::move(outcome.outputs), std::move(outcome.memory)};
  }
  Ended message{.run = run.key(), .error = std::move(outcome.error), .stats = std::move(outcome.stats)};
  messages_->send(0, Control::kEnded, encode(std::move(message)));
  over(run.key());
}

}  // namespace meshd::hosts
