// When the reactor polls its sockets instead of sleeping until one is ready (busy polling). A thread that sleeps in
// epoll_wait is woken in 30 to 50 us where a virtual machine's processor has to be woken as well, which is longer than
// most small requests take; so a reactor whose clients send their next request a moment after each answer polls for
// that moment.
#pragma once

#include <algorithm>
#include <chrono>

namespace meshd::api {

/// On the reactor's thread.
class BusyPoll {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// How long after an answer it polls for the next request.
  static constexpr std::chrono::microseconds kMoment{100};
  /// So many requests in a row have come within a moment before it begins to poll.
  static constexpr int kPrompt = 4;

  /// A response is sent.
  void on_answered(Time now) {
    answered_ = now;
    is_open_ = true;
  }
  /// A request has come.
  void on_request(Time now) {
    if (!is_open_) return;  // one beside others
    is_open_ = false;
    prompt_ = now - answered_ <= kMoment ? std::min(prompt_ + 1, kPrompt) : 0;
  }
  /// Poll once more before sleeping: a request is expected.
  [[nodiscard]] bool is_expected(Time now) {
    if (!is_open_ || prompt_ < kPrompt) return false;
    if (now - answered_ <= kMoment) return true;
    prompt_ = 0;  // in vain
    return false;
  }

 private:
  Time answered_;
  bool is_open_ = false;  ///< answered, and no request since
  int prompt_ = 0;        ///< requests in a row that came within a moment of an answer
};

}  // namespace meshd::api
