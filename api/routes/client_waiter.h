// Waits on the thread of a request and looks now and then whether its client is still there.
#pragma once

#include <algorithm>
#include <memory>

#include "api/http.h"
#include "service/core/waiter.h"

namespace meshd::api {

/// Must not outlive the request's handler in wait(); notify() is for any thread, at any time.
class ClientWaiter final : public core::Waiter {
 public:
  explicit ClientWaiter(const Request& request) : request_(request) {}

  void wait(core::SteadyTime until) override {
    thread_.wait(std::min(until, std::chrono::steady_clock::now() + kLook));
    if (request_.client_gone()) abandon();
  }
  void notify() override { thread_.notify(); }

 private:
  static constexpr std::chrono::milliseconds kLook{100};

  const Request& request_;
  core::ThreadWaiter thread_;
};

inline core::WaiterRef waiter_of(const Request& request) { return std::make_shared<ClientWaiter>(request); }

}  // namespace meshd::api
