// Minimum transfer rate: decides when a client is too slow. A value; one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace meshd::api {

/// A token bucket with `grace` of credit. Time uses it up, bytes refill it at one second for every `bytes_per_second`,
/// up to `grace`: so the minimum rate holds over the transfer, and a burst at its beginning earns no pause later.
/// Example, 1,024 bytes a second and 10 s of grace: 512 bytes a second end after 20 s, wherever in the body they begin.
class RateGuard {
 public:
  using Time = std::chrono::steady_clock::time_point;

  RateGuard(int64_t bytes_per_second, std::chrono::milliseconds grace)
      : least_(bytes_per_second), rate_(bytes_per_second), grace_(grace) {}

  /// A transfer begins, of which at least so many bytes a second are wanted if that is more than of any.
  void start(Time now, int64_t bytes_per_second = 0) {
    rate_ = std::max(least_, bytes_per_second);
    last_ = now;
    credit_ = grace_;
  }
  void progress(Time now, int64_t bytes) {
    const auto earned = std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(rate_));
    const auto left = std::max(credit_ - (now - last_), std::chrono::nanoseconds(0));
    credit_ = earned >= grace_ ? grace_
                               : std::min(grace_, left + std::chrono::duration_cast<std::chrono::nanoseconds>(earned));
    last_ = now;
  }
  /// When the client is too slow, unless more bytes move before.
  [[nodiscard]] Time deadline() const { return last_ + credit_; }
  [[nodiscard]] bool too_slow(Time now) const { return now > deadline(); }

 private:
  int64_t least_, rate_;
  std::chrono::nanoseconds grace_;
  std::chrono::nanoseconds credit_{0};
  Time last_{};
};

}  // namespace meshd::api
