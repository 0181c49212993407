#include "api/routes/waiting.h"

#include <algorithm>

namespace meshd::api {
namespace {

// How often a waiting request looks whether its client and the server are still there.
constexpr std::chrono::milliseconds kLook{200};

struct Bell {
  std::mutex mutex;
  std::condition_variable there;
  bool rung = false;
};

}  // namespace

int64_t wait_of(const Request& request) {
  const int64_t asked = request.query.integer("wait", 0, 0, kLongestWaitSeconds);
  return asked > 0 ? asked : preferences_of(request).wait_seconds.value_or(0);
}

void wait_until(const Request& request, int64_t seconds, const std::function<bool()>& try_once,
                const std::function<std::shared_ptr<void>(std::function<void()>)>& subscribe,
                const std::function<bool()>& is_over) {
  if (seconds <= 0) {
    try_once();
    return;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const auto bell = std::make_shared<Bell>();
  const std::shared_ptr<void> subscription = subscribe([weak = std::weak_ptr<Bell>(bell)] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    {
      const std::lock_guard held(alive->mutex);
      alive->rung = true;
    }
    alive->there.notify_all();
  });
  // Asked for the first time behind the subscription: what comes in between rings.
  while (!try_once()) {
    std::unique_lock held(bell->mutex);
    while (!bell->rung) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= end || is_over() || request.client_gone()) return;
      bell->there.wait_for(held, std::min<std::chrono::nanoseconds>(kLook, end - now));
    }
    bell->rung = false;
  }
}

}  // namespace meshd::api
