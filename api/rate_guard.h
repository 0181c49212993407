// Decides when a client is too slow: less than a minimum rate over the whole, or silent for long. A value; one thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace meshd::api {

class RateGuard {
 public:
  using Time = std::chrono::steady_clock::time_point;

  RateGuard(int64_t bytes_per_second, std::chrono::milliseconds grace) : rate_(bytes_per_second), grace_(grace) {}

  /// A transfer begins.
  void start(Time now) {
    start_ = last_ = now;
    bytes_ = 0;
  }
  void progress(Time now, int64_t bytes) {
    last_ = now;
    bytes_ += bytes;
  }
  /// True after `grace` of silence, or when the bytes so far are fewer than the rate asks for since `grace` after the
  /// start.
  [[nodiscard]] bool too_slow(Time now) const {
    if (now - last_ > grace_) return true;
    const auto counted = std::chrono::duration_cast<std::chrono::milliseconds>(now - start_ - grace_).count();
    return counted > 0 && bytes_ < rate_ * counted / 1000;
  }

 private:
  int64_t rate_;
  std::chrono::milliseconds grace_;
  Time start_{};
  Time last_{};
  int64_t bytes_ = 0;
};

}  // namespace meshd::api
