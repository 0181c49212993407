// A clock for tests of what ends by itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "service/core/clock.h"

namespace meshd::testing {

/// Time that stands still until a test moves it. It is ahead of the system's, so that what waits for a time of this
/// clock waits until that is moved. Any thread.
class ManualClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime wall() const override { return core::WallTime(passed_.load()); }
  [[nodiscard]] core::SteadyTime steady() const override { return core::SteadyTime(passed_.load()); }
  [[nodiscard]] std::shared_ptr<const void> on_move(std::function<void()> call) const override {
    const int64_t id = listeners_->add(std::move(call));
    // Whoever has dropped it is not called any more, nor is a call of it going on.
    return {nullptr, [listeners = listeners_, id](const void*) {
              const std::lock_guard held(listeners->mutex);
              listeners->calls.erase(id);
            }};
  }
  void advance(std::chrono::microseconds time) {
    passed_ = passed_.load() + time;
    const std::lock_guard held(listeners_->mutex);
    for (const auto& [id, call] : listeners_->calls) call();
  }

 private:
  struct Listeners {
    std::mutex mutex;
    int64_t last = 0;
    std::map<int64_t, std::function<void()>> calls;

    int64_t add(std::function<void()> call) {
      const std::lock_guard held(mutex);
      calls.emplace(++last, std::move(call));
      return last;
    }
  };

  std::atomic<std::chrono::microseconds> passed_{std::chrono::hours(100'000)};
  const std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
};

}  // namespace meshd::testing
