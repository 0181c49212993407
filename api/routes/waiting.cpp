#include "api/routes/waiting.h"

#include <chrono>

namespace meshd::api {

int64_t wait_of(const Request& request) {
  const int64_t asked = request.query.integer("wait", 0, 0, kLongestWaitSeconds);
  return asked > 0 ? asked : preferences_of(request).wait_seconds.value_or(0);
}

void wait_until(const Request& request, int64_t seconds, const std::function<bool()>& try_once,
                const std::function<std::shared_ptr<void>(std::function<void()>)>& subscribe) {
  if (seconds <= 0) {
    try_once();
    return;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  core::Waiter& waiter = *request.waiter;
  const std::shared_ptr<void> subscription = subscribe([weak = std::weak_ptr(request.waiter)] {
    if (const auto alive = weak.lock()) alive->notify();
  });
  // Asked for the first time behind the subscription: what comes in between notifies.
  while (!try_once()) {
    if (std::chrono::steady_clock::now() >= end || waiter.is_abandoned() || request.draining()) return;
    waiter.wait(end);
  }
}

}  // namespace meshd::api
