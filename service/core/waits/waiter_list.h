// The waiters (service/core/waits/waiter.h) of a condition, which check it again after each notification.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "service/core/waits/waiter.h"

namespace meshd::core {

/// Any thread. A waiter stays until it is destroyed or notify_once() is called: a spurious notification is harmless, so
/// there is no remove().
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
    std::vector<std::weak_ptr<Waiter>> waiters;
    {
      const std::lock_guard held(mutex_);
      waiters = waiters_;
    }
    notify(waiters);
  }
  /// The same, and forgets them.
  void notify_once() {
    std::vector<std::weak_ptr<Waiter>> waiters;
    {
      const std::lock_guard held(mutex_);
      waiters.swap(waiters_);
    }
    notify(waiters);
  }

 private:
  static void notify(const std::vector<std::weak_ptr<Waiter>>& waiters) {
    for (const std::weak_ptr<Waiter>& waiter : waiters) {
      if (const WaiterRef alive = waiter.lock()) alive->notify();
    }
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<Waiter>> waiters_;
};

}  // namespace meshd::core
