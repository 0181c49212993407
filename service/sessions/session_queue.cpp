#include "service/sessions/session_queue.h"

#include <algorithm>
#include <utility>

#include "service/core/planted_bugs.h"

namespace meshd::sessions {
namespace {

bool overlap(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& id) { return b.contains(id); });
}

}  // namespace

void SessionQueue::enter(int64_t number, EffectOrder effects, ArrayUses uses) {
  const std::lock_guard held(mutex_);
  open_.insert(number);
  if (effects >= EffectOrder::kUnordered) with_effects_.insert(number);
  if (effects >= EffectOrder::kOrdered) ordered_.insert(number);
  if (effects >= EffectOrder::kStreaming) streaming_.insert(number);
  if (!uses.reads.empty() || !uses.updates.empty() || !uses.makes.empty()) uses_.emplace(number, std::move(uses));
}

void SessionQueue::leave(int64_t number) {
  {
    const std::lock_guard held(mutex_);
    open_.erase(number);
    with_effects_.erase(number);
    ordered_.erase(number);
    streaming_.erase(number);
    uses_.erase(number);
  }
  watchers_.notify_all();
}

void SessionQueue::put_back(int64_t number) {
  {
    const std::lock_guard held(mutex_);
    put_back_.insert(number);
  }
  watchers_.notify_all();
}

bool SessionQueue::is_behind_put_back(int64_t number) const {
  const std::lock_guard held(mutex_);
  return !put_back_.empty() && *put_back_.begin() < number;
}

void SessionQueue::halt(int64_t number) {
  const std::lock_guard held(mutex_);
  halted_by_ = halted_by_ == 0 ? number : std::min(halted_by_, number);
}

void SessionQueue::resume() {
  {
    const std::lock_guard held(mutex_);
    halted_by_ = 0;
  }
  watchers_.notify_all();
}

bool SessionQueue::is_held(int64_t number) const {
  const std::lock_guard held(mutex_);
  return is_held_locked(number);
}

bool SessionQueue::is_dropped(int64_t number) const {
  const std::lock_guard held(mutex_);
  return is_closing_ && is_held_locked(number);
}

bool SessionQueue::may_read(int64_t number) const {
  const std::lock_guard held(mutex_);
  if (is_held_locked(number)) return false;
  const auto mine = uses_.find(number);
  if (mine == uses_.end()) return true;
  return std::none_of(uses_.begin(), mine, [&](const auto& before) {
    return overlap(before.second.updates, mine->second.reads) || overlap(before.second.updates, mine->second.updates) ||
           overlap(before.second.makes, mine->second.reads);
  });
}

bool SessionQueue::may_update(int64_t number) const {
  const std::lock_guard held(mutex_);
  if (is_held_locked(number)) return false;
  const auto mine = uses_.find(number);
  if (mine == uses_.end()) return true;
  return std::none_of(uses_.begin(), mine,
                      [&](const auto& before) { return overlap(before.second.reads, mine->second.updates); });
}

bool SessionQueue::is_next_in_order(int64_t number) const {
  const std::lock_guard held(mutex_);
  return is_next_locked(number);
}

bool SessionQueue::is_next_locked(int64_t number) const {
  if (core::is_planted(core::PlantedBug::kOrderByCompletion)) return true;
  const int64_t early = core::is_planted(core::PlantedBug::kSwapTwoJobs) ? 1 : 0;
  const std::set<int64_t>& before = streaming_.contains(number) ? with_effects_ : ordered_;
  return !is_held_locked(number) && (before.empty() || *before.begin() >= number - early);
}

bool SessionQueue::may_log(int64_t number) const {
  const std::lock_guard held(mutex_);
  if (ordered_.contains(number)) return is_next_locked(number);
  const bool follows_stream = with_effects_.contains(number) && !streaming_.empty() && *streaming_.begin() < number;
  return !is_held_locked(number) && !follows_stream;
}

void SessionQueue::close() {
  {
    const std::lock_guard held(mutex_);
    is_closing_ = true;
  }
  watchers_.notify_all();
}

bool SessionQueue::is_closing() const {
  const std::lock_guard held(mutex_);
  return is_closing_;
}

int64_t SessionQueue::last_open() const {
  const std::lock_guard held(mutex_);
  return open_.empty() ? 0 : *open_.rbegin();
}

bool SessionQueue::is_over(int64_t number) const {
  const std::lock_guard held(mutex_);
  return open_.empty() || *open_.begin() > number;
}

int64_t SessionQueue::open_count() const {
  const std::lock_guard held(mutex_);
  return static_cast<int64_t>(open_.size());
}

}  // namespace meshd::sessions
