// The waiters (service/core/waits/waiter.h) of a condition, which check it again after each notification.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "service/core/waits/waiter.h"

namespace meshd::core {

/// Any thread. A waiter stays until it is destroyed: a spurious notification is harmless, so there is no remove().
class WaiterList {
 public:
  /// From now on notify_all() reaches the waiter. Add first, then check the condition: so no notification is lost.
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
