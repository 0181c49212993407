// Waiting for what another thread brings and tells nobody of.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace meshd::testing {

/// Asks `condition` every millisecond until it holds. False: it has not after `longest`, far beyond what it may take on
/// a slow machine. Where there is something to wait on (a future, a waiter), wait on that.
[[nodiscard]] inline bool eventually(const std::function<bool()>& condition,
                                     std::chrono::seconds longest = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace meshd::testing
