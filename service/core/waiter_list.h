// Who is to be notified when something changes: waiters (service/core/waiter.h) that look at a condition again.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "service/core/waiter.h"

namespace meshd::core {

/// Any thread. A waiter stays until it is destroyed: one notification too many is harmless, so nobody has to be
/// removed.
class WaiterList {
 public:
  /// From now on notify_all() reaches the waiter. Add first, then look at the condition: nothing is missed in between.
  void add(const WaiterRef& waiter) {
    const std::lock_guard held(mutex_);
    std::erase_if(waiters_, [&](const std::weak_ptr<Waiter>& other) {
      return other.expired() || (!other.owner_before(waiter) && !waiter.owner_before(other));
    });
    waiters_.push_back(waiter);
  }

  /// Notifies with no lock held.
  void notify_all() {
    std::vector<WaiterRef> alive;
    {
      const std::lock_guard held(mutex_);
      for (const std::weak_ptr<Waiter>& waiter : waiters_) {
        if (auto locked = waiter.lock()) alive.push_back(std::move(locked));
      }
    }
    for (const WaiterRef& waiter : alive) waiter->notify();
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Waiter>> waiters_;
};

}  // namespace meshd::core
