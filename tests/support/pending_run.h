// A run that was submitted to an executor, and its outcome when it is there. For tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "service/device/engine.h"

namespace meshd::testing {

struct PendingRun {
  std::shared_ptr<device::Run> run;
  std::mutex mutex;
  std::condition_variable there;
  std::optional<device::RunOutcome> outcome;

  device::RunOutcome wait() {
    std::unique_lock held(mutex);
    if (!there.wait_for(held, std::chrono::seconds(100), [&] { return outcome.has_value(); })) {
      ADD_FAILURE() << "the run does not end";
      return {};
    }
    return std::move(*outcome);
  }
  bool is_done() {
    const std::lock_guard held(mutex);
    return outcome.has_value();
  }
};

inline std::shared_ptr<PendingRun> start(device::Executor& executor, device::RunRequest request) {
  auto pending = std::make_shared<PendingRun>();
  pending->run = executor.submit(std::move(request), [pending](device::RunOutcome outcome) {
    const std::lock_guard held(pending->mutex);
    pending->outcome = std::move(outcome);
    pending->there.notify_all();
  });
  return pending;
}

}  // namespace meshd::testing
