#include "service/hosts/plans.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "service/core/keep_trying.h"
#include "service/hosts/plan_digest.h"
#include "service/warmup/compile_record.h"

namespace meshd::hosts {
namespace {

constexpr size_t kMostPlans = 256;  // that ranks keep; more where runs use them

}  // namespace

Plans::Asked Plans::prepare(const compile::LoweredProgram& lowered, const std::vector<int>& members, Then then) {
  std::unique_lock held(mutex_);
  auto found = entries_.find(lowered.key);
  if (found == entries_.end()) {
    // Digest and record take their time: without the lock, and one of two is kept.
    held.unlock();
    PlanNumber made{.number = 0,
                    .key = lowered.key,
                    .digest = plan_digest(*lowered.plan),
                    .record = warmup::encode(warmup::record_of(*lowered.parsed, lowered.request))};
    held.lock();
    drop_old();
    found = entries_.find(lowered.key);
    if (found == entries_.end()) {
      made.number = ++last_number_;
      const auto plan = std::make_shared<const PlanNumber>(std::move(made));
      keys_[plan->number] = lowered.key;  // an entry without its plan would be taken for one
      found = entries_.try_emplace(lowered.key).first;
      found->second.plan = plan;
    }
  }
  Entry& entry = found->second;
  entry.used = ++uses_;
  const auto waiting = std::make_shared<Waiting>();
  waiting->then = std::move(then);
  for (const int rank : members) {
    if (rank == 0 || entry.ready.count(rank) > 0) continue;
    waiting->ranks.insert(rank);
    const auto [asked, is_first] = entry.asked.insert(rank);
    if (!is_first) continue;
    try {
      messages_.send(rank, Control::kPrepare,
                     encode(Prepare{.plan = entry.plan->number, .record = entry.plan->record}));
    } catch (...) {
      entry.asked.erase(asked);  // later runs would wait for its answer
      throw;
    }
  }
  if (waiting->ranks.empty()) return {entry.plan, true};
  entry.waiting.push_back(waiting);
  return {entry.plan, false};
}

void Plans::prepared(int rank, const Prepared& message) {
  std::vector<std::shared_ptr<Waiting>> over;
  {
    const std::lock_guard held(mutex_);
    Entry& entry = entries_.at(keys_.at(message.plan));
    over.reserve(entry.waiting.size());  // from here on nothing throws: the message comes once
    std::optional<core::Error> error = core::keep_trying([&] { return message.error; });
    if (!error && message.digest != entry.plan->digest) {
      error = core::keep_trying([&] {
        return core::Error("ranks_disagree",
                           fmt::format("rank {} made another plan of the program than rank 0: they have to be the same "
                                       "build on processors of one kind",
                                       rank));
      });
    }
    if (!error) core::keep_trying([&] { entry.ready.insert(rank); });
    entry.asked.erase(rank);
    for (auto at = entry.waiting.begin(); at != entry.waiting.end();) {
      Waiting& waiting = **at;
      if (waiting.ranks.erase(rank) > 0 && error && !waiting.error) core::keep_trying([&] { waiting.error = error; });
      if (!waiting.ranks.empty()) {
        ++at;
        continue;
      }
      over.push_back(std::move(*at));
      at = entry.waiting.erase(at);
    }
  }
  for (const auto& waiting : over) core::keep_trying([&] { waiting->then(waiting->error); });
}

void Plans::drop_old() {
  while (entries_.size() > kMostPlans) {
    auto oldest = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      const Entry& entry = at->second;
      if (entry.plan.use_count() > 1 || !entry.waiting.empty() || !entry.asked.empty()) continue;
      if (oldest == entries_.end() || entry.used < oldest->second.used) oldest = at;
    }
    if (oldest == entries_.end()) return;
    for (const int rank : oldest->second.ready)
      messages_.send_surely(rank, Control::kDropPlan, Number{oldest->second.plan->number});
    keys_.erase(oldest->second.plan->number);
    entries_.erase(oldest);
  }
}

}  // namespace meshd::hosts
