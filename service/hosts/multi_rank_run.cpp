#include "service/hosts/multi_rank_run.h"

#include <algorithm>
#include <new>
#include <utility>

#include "service/core/error_of.h"
#include "service/core/keep_trying.h"
#include "service/device/local_arena.h"

namespace meshd::hosts {
namespace {

constexpr int64_t kSmallPlan = int64_t{1} << 20;

}  // namespace

MultiRankRun::MultiRankRun(Coordinator& owner, uint64_t key, Holders holders, device::RunRequest request,
                           std::function<void(device::RunOutcome)> done)
    : owner_(owner),
      key_(key),
      plan_(request.plan),
      request_(std::move(request)),
      done_(std::move(done)),
      holders_(std::move(holders)),
      is_member_(holders_.members().front() == 0) {}

// ---- beginning

void MultiRankRun::start() {
  const auto self = shared_from_this();
  // Effects need the run's own reference, which a constructor has not.
  if (request_.effects != nullptr) {
    const std::weak_ptr<MultiRankRun> weak = self;
    OrderedEffects::Hooks hooks;
    hooks.resume_own = [weak] {
      const auto run = weak.lock();
      if (run == nullptr) return;
      std::shared_ptr<device::Run> own;
      {
        const std::lock_guard held(run->mutex_);
        own = run->own_.lock();
      }
      if (own != nullptr) own->resume();
    };
    hooks.pump_soon = [this, weak] {
      core::keep_trying([&] {
        owner_.later([weak] {
          const auto run = weak.lock();
          if (run == nullptr) return;
          run->effects_->pump();
          run->finish_if_over();  // ranks do not wait for effects without results
        });
      });
    };
    hooks.reply = [this](int rank, const Reply& reply) { owner_.messages_->send_surely(rank, Control::kReply, reply); };
    hooks.fail = [weak](const core::Error& reason) {
      if (const auto run = weak.lock()) run->cancel(reason);
    };
    effects_.emplace(*request_.effects, *plan_, request_.devices, std::move(hooks));
  }
  bool is_there = false;
  {
    const std::lock_guard held(mutex_);  // the answer may come before `number_` is there
    Plans::Asked asked =
        owner_.plans_->prepare(*request_.lowered, holders_.members(), [this, self](std::optional<core::Error> error) {
          owner_.later([self, error = std::move(error)] {
            if (error) {
              self->own_failed(*error);
            } else {
              self->submit_own(false);
            }
          });
        });
    number_ = std::move(asked.plan);
    is_there = asked.is_there;
  }
  if (is_there) submit_own(request_.on_callers_thread);
}

void MultiRankRun::submit_own(bool is_lent) {
  try {
    give_to_engine(is_lent);
  } catch (...) {
    own_failed(core::keep_trying([] {
      return core::error_of(std::current_exception(), "the server has no memory for this run", "the run failed");
    }));
  }
}

void MultiRankRun::own_failed(const core::Error& error) {
  own_ended({.error = core::keep_trying([&] { return error; }), .outputs = {}, .overwritten = {}, .stats = {}});
}

void MultiRankRun::give_to_engine(bool is_lent) {
  const auto self = shared_from_this();
  device::RunRequest own;
  std::optional<core::Error> reason;
  {
    const std::lock_guard held(mutex_);
    reason = reason_;
    own = request_;
    request_.bind = nullptr;
    request_.arguments.clear();
  }
  if (reason) return own_failed(*reason);
  own.key = key_;
  own.on_callers_thread = is_lent;
  own.effects = effects_ ? &*effects_ : nullptr;
  own.bind = [self, bind = std::move(own.bind), given = std::move(own.arguments)](core::Checkpoint& checkpoint,
                                                                                  int64_t planned_bytes) {
    std::vector<device::RunArgument> arguments = bind ? bind(checkpoint, planned_bytes) : given;
    self->begin_elsewhere(arguments, checkpoint);
    return arguments;
  };
  own.arguments.clear();
  if (!is_member_) own.is_over_elsewhere = [self] { return self->is_over_elsewhere(); };
  own.on_submit = [self](const std::shared_ptr<device::Run>& run) {
    std::optional<core::Error> meanwhile;
    {
      const std::lock_guard held(self->mutex_);
      self->own_ = run;
      meanwhile = self->reason_;
    }
    if (meanwhile) run->cancel(*meanwhile);
  };
  owner_.engine_->submit(std::move(own), [self](device::RunOutcome outcome) { self->own_ended(std::move(outcome)); });
}

void MultiRankRun::begin_elsewhere(std::vector<device::RunArgument>& arguments, core::Checkpoint& checkpoint) {
  const uint64_t oldest = owner_.oldest_live();
  owner_.messages_->ignore_before(oldest);
  expect_results();
  load(arguments, checkpoint);
  Begin begin{.run = key_,
              .ticket = 0,
              .oldest_live = oldest,
              .plan = number_->number,
              .devices = request_.devices,
              .step_budget = request_.step_budget,
              .operation_budget = request_.operation_budget,
              .byte_budget = request_.byte_budget,
              .profile = request_.profile,
              .nonfinite = request_.nonfinite,
              .has_effects = request_.effects != nullptr,
              .arguments = {},
              .results = request_.apart.results,
              .results_wait = request_.results_wait,
              .drops = {}};
  std::vector<std::pair<int, int64_t>> planned;
  device::Ownership owners = device::ownership_of(owner_.options(), request_.devices);
  owners.is_member = true;
  for (const int rank : holders_.members()) {
    if (rank == 0) continue;
    owners.rank = rank;
    // What is small need not be counted by shards.
    const bool is_small = plan_->peak_bytes <= kSmallPlan;
    planned.emplace_back(rank, is_small ? plan_->peak_bytes : device::local_arena(*plan_, owners).planned_bytes);
  }
  std::vector<Send> sends;
  const auto loan = std::make_shared<RankLoan>(owner_, std::move(planned));
  {
    const std::lock_guard held(mutex_);
    if (reason_) throw core::Error(*reason_);
    const std::lock_guard ordered(owner_.order_);
    begin.ticket = ++owner_.last_ticket_;
    loan_ = loan;
    // From here on the directory of what ranks keep changes with what they are told, and a rank that was told is waited
    // for: all of it is done, whether there is memory or not.
    for (size_t i = 0; i < loan->count(); ++i) {
      const int rank = core::keep_trying([&] { return loan->lend(); });
      begin.arguments = place(rank, arguments, sends);
      begin.drops = owner_.residents_.take_drops(rank);
      core::keep_trying([&] { begun_.insert(rank); });
      owner_.messages_->send_surely(rank, Control::kBegin, begin);
    }
    if (!begin.results.empty()) {
      held_ = core::keep_trying([&] {
        return std::make_shared<RankResults>(owner_, key_, plan_, holders_,
                                             std::vector<int>(begun_.begin(), begun_.end()), loan_);
      });
    }
  }
  // Entries first: other runs may count on them already, whatever becomes of this one. They are in memory: their sends
  // throw nothing.
  std::stable_partition(sends.begin(), sends.end(), [](const Send& one) { return one.entry != 0; });
  for (const Send& one : sends) send(one, arguments);
  for (size_t argument = 0; argument < arguments.size(); ++argument) {
    // The ranks have been told to read their files, before any message that removes one.
    arguments[argument].load = nullptr;
    std::vector<tensor::BufferRef>& shards = arguments[argument].shards;
    for (size_t shard = 0; shard < shards.size(); ++shard) {
      if (!holders_.holds(0, plan_->arguments[argument].table, static_cast<int64_t>(shard))) shards[shard] = nullptr;
    }
  }
}

// Results of other ranks go straight into their buffers.
void MultiRankRun::expect_results() {
  for (size_t result = 0; result < plan_->results.size(); ++result) {
    const compile::PlanParameter& wanted = plan_->results[result];
    std::vector<tensor::BufferRef>& shards = received_.emplace_back();
    shards.resize(static_cast<size_t>(plan_->table(wanted.table).count()));
    for (size_t shard = 0; shard < shards.size() && !stays(result); ++shard) {
      const auto number = static_cast<int64_t>(shard);
      const auto from = holders_.sender(wanted.table, number);
      if (!from) continue;
      shards[shard] = owner_.pool()->allocate(wanted.shard_bytes);
      owner_.messages_->expect(*from, {key_ | kArgumentsAndResults, 1, number, static_cast<int64_t>(result)},
                               shards[shard]->bytes(), [self = shared_from_this(), buffer = shards[shard]] {});
    }
  }
}

void MultiRankRun::load(std::vector<device::RunArgument>& arguments, core::Checkpoint& checkpoint) {
  std::optional<core::UncheckedCall> aside;  // around reading
  for (size_t argument = 0; argument < arguments.size(); ++argument) {
    device::RunArgument& given = arguments[argument];
    const compile::PlanParameter& wanted = plan_->arguments.at(argument);
    for (size_t shard = 0; shard < given.shards.size(); ++shard) {
      if (given.shards[shard] != nullptr) continue;
      const auto number = static_cast<int64_t>(shard);
      const int on_disk = storage::blob_rank(given.files.at(shard).name);
      bool is_needed = false;
      for (const int rank : holders_.members()) {
        if (!holders_.holds(rank, wanted.table, number) || is_needed) continue;
        const std::lock_guard ordered(owner_.order_);
        const auto name = shard_of(given.version, wanted, number);
        is_needed = rank == 0 || (rank != on_disk && (!name || owner_.residents_.find(rank, *name) == 0));
      }
      if (!is_needed) continue;
      if (!aside) aside.emplace(&checkpoint);
      given.shards[shard] = given.load(number);
    }
  }
  if (aside) aside->end();
}

std::vector<ArgumentShard> MultiRankRun::place(int rank, const std::vector<device::RunArgument>& arguments,
                                               std::vector<Send>& sends) {
  using How = ArgumentShard::How;
  using core::keep_trying;
  Residents& residents = owner_.residents_;
  std::vector<ArgumentShard> out;
  for (size_t argument = 0; argument < arguments.size(); ++argument) {
    const device::RunArgument& given = arguments[argument];
    const compile::PlanParameter& wanted = plan_->arguments.at(argument);
    for (size_t shard = 0; shard < given.shards.size(); ++shard) {
      const auto number = static_cast<int64_t>(shard);
      if (!holders_.holds(rank, wanted.table, number)) continue;
      ArgumentShard& how = keep_trying([&]() -> ArgumentShard& { return out.emplace_back(); });
      const auto name = keep_trying([&] { return shard_of(given.version, wanted, number); });
      if (name) {
        how.entry =
            keep_trying([&] { return wanted.is_donated ? residents.take(rank, *name) : residents.find(rank, *name); });
      }
      if (how.entry != 0) {
        how.how = wanted.is_donated ? How::kTaken : How::kThere;
        continue;
      }
      const bool is_here = given.shards[shard] != nullptr;
      const bool is_on_disk = !given.files.empty() && storage::blob_rank(given.files[shard].name) == rank;
      // What is not here yet may fail to be read: nobody else is to count on it.
      if (name && !wanted.is_donated && (is_here || is_on_disk))
        how.entry = keep_trying([&] { return residents.add(rank, *name); });
      if (is_on_disk) {
        how.how = How::kRead;
        keep_trying([&] { how.file = given.files[shard]; });
        continue;
      }
      how.how = how.entry != 0 ? How::kKept : How::kSent;
      keep_trying([&] { sends.push_back({rank, argument, number, how.entry}); });
    }
  }
  return out;
}

void MultiRankRun::send(const Send& what, std::vector<device::RunArgument>& arguments) {
  const compile::PlanParameter& wanted = plan_->arguments[what.argument];
  const auto bytes = static_cast<size_t>(wanted.shard_bytes);
  tensor::BufferRef& shard = arguments[what.argument].shards[static_cast<size_t>(what.shard)];
  if (shard == nullptr) shard = arguments[what.argument].load(what.shard);
  device::MessageKey key{key_ | kArgumentsAndResults, 0, what.shard, static_cast<int64_t>(what.argument)};
  if (what.entry != 0) key = {kEntries | what.entry, 0, 0, 0};
  sent_bytes_ += wanted.shard_bytes;
  // A donated shard that rank 0 holds, too, may be overwritten before it is sent.
  const bool is_copied = wanted.is_donated && holders_.holds(0, wanted.table, what.shard);
  core::keep_trying([&] {
    if (is_copied) {
      owner_.messages_->post(what.rank, key, shard->bytes().first(bytes));
    } else {
      owner_.messages_->push(what.rank, key, shard->bytes().first(bytes), shard);
    }
  });
}

// ---- while it runs

void MultiRankRun::resume() {
  std::shared_ptr<device::Run> own;
  {
    const std::lock_guard held(mutex_);
    own = own_.lock();
  }
  if (own != nullptr) own->resume();
  if (effects_) effects_->resume();
}

void MultiRankRun::cancel(core::Error reason) {
  std::shared_ptr<device::Run> own;
  {
    const std::lock_guard held(mutex_);
    if (is_finishing_ || reason_) return;
    core::keep_trying([&] { reason_ = reason; });
    own = own_.lock();
  }
  // Nobody cancels it again: whoever runs out of memory here goes on until it is told everywhere.
  if (own != nullptr) core::keep_trying([&] { own->cancel(reason); });
  core::keep_trying([&] { cancel_ranks(reason); });
  finish_if_over();
}

void MultiRankRun::cancel_ranks(const core::Error& reason) {
  const std::lock_guard held(mutex_);
  for (const int rank : begun_) {
    if (outcomes_.count(rank) > 0 || told_.count(rank) > 0) continue;
    auto message = encode(Cancel{key_, reason});
    const auto told = told_.emplace(rank, reason).first;
    try {
      owner_.messages_->send(rank, Control::kCancel, std::move(message));
    } catch (const std::bad_alloc&) {
      told_.erase(told);  // it is told when this is called again
      throw;
    }
  }
}

device::RunProgress MultiRankRun::progress() const {
  std::shared_ptr<device::Run> own;
  {
    const std::lock_guard held(mutex_);
    own = own_.lock();
  }
  return own == nullptr ? device::RunProgress() : own->progress();
}

void MultiRankRun::effect(int rank, Effect effect) {
  if (effects_) effects_->take(rank, std::move(effect));
}

// ---- ending

void MultiRankRun::own_ended(device::RunOutcome outcome) {
  // The run waits for this, and nobody calls it again.
  const auto error = core::keep_trying([&] { return outcome.error; });
  {
    const std::lock_guard held(mutex_);
    RankOutcome& ours = core::keep_trying([&]() -> RankOutcome& {
      RankOutcome made{.error = error, .told = reason_, .stats = {}};
      return outcomes_.try_emplace(0, std::move(made)).first->second;
    });
    ours.stats = std::move(outcome.stats);
    own_outcome_ = std::move(outcome);
    if (error && !reason_) core::keep_trying([&] { reason_ = error; });
  }
  if (error) core::keep_trying([&] { cancel_ranks(*error); });
  finish_if_over();
}

void MultiRankRun::ended(int rank, Ended message) {
  std::shared_ptr<device::Run> own;
  // The run waits for this, and the message comes once.
  const auto error = core::keep_trying([&] { return message.error; });
  {
    const std::lock_guard held(mutex_);
    RankOutcome& outcome = core::keep_trying([&]() -> RankOutcome& {
      RankOutcome made{.error = error, .told = {}, .stats = {}};
      if (const auto told = told_.find(rank); told != told_.end()) made.told = told->second;
      return outcomes_.try_emplace(rank, std::move(made)).first->second;
    });
    outcome.stats = std::move(message.stats);
    if (!is_member_) own = own_.lock();
  }
  if (error) core::keep_trying([&] { cancel(*error); });
  if (own != nullptr) own->resume();
  finish_if_over();
}

bool MultiRankRun::is_over_elsewhere() {
  const std::lock_guard held(mutex_);
  return outcomes_.size() == begun_.size();
}

void MultiRankRun::finish_if_over() {
  {
    const std::lock_guard held(mutex_);
    if (is_finishing_ || outcomes_.count(0) == 0 || outcomes_.size() != begun_.size() + 1) return;
    // A run that is over everywhere may have effects that the sink has not taken yet, and may refuse.
    if (!reason_ && effects_ && effects_->has_waiting()) return;
    is_finishing_ = true;
  }
  core::keep_trying([&] { owner_.later([self = shared_from_this()] { self->finish(); }); });
}

// On the coordinator's thread, as the effects of other ranks: the sink has no other caller any more.
void MultiRankRun::finish() {
  const bool drops_effects = effects_ && effects_->has_waiting();
  if (effects_) effects_->close();
  device::RunOutcome outcome = std::move(own_outcome_);
  // Who waits for the run gets its end, whether there is memory or not.
  core::keep_trying([&] { outcome.error = first_error(outcomes_); });
  if (!outcome.error && drops_effects) core::keep_trying([&] { outcome.error = reason_; });
  core::keep_trying([&] { outcome.stats = stats_of(*plan_, outcomes_, is_member_); });
  outcome.stats.argument_bytes_sent = sent_bytes_;
  // Of a run that failed they are dropped.
  const std::shared_ptr<RankResults> held = std::move(held_);
  loan_.reset();
  if (outcome.error) {
    outcome.outputs.clear();
  } else {
    outcome.held = held;
    for (size_t result = 0; result < received_.size(); ++result) {
      for (size_t shard = 0; shard < received_[result].size(); ++shard) {
        if (received_[result][shard] == nullptr) continue;
        outcome.stats.result_bytes_received += plan_->results[result].shard_bytes;
        outcome.outputs[result][shard] = std::move(received_[result][shard]);
      }
    }
  }
  owner_.over(key_, outcome.stats, request_.devices);
  std::exchange(done_, nullptr)(std::move(outcome));
}

}  // namespace meshd::hosts
