// For what has to be done and that nobody would do again: allocations on the way to the end of a request or a job.
#pragma once

#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace meshd::core {

/// What `call` gives. While it throws std::bad_alloc the thread sleeps for a millisecond and calls it again, so that it
/// must leave nothing behind when it throws. Any thread.
template <typename Call>
decltype(auto) keep_trying(Call&& call) {
  constexpr std::chrono::milliseconds kPause{1};
  while (true) {
    try {
      return std::forward<Call>(call)();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace meshd::core
