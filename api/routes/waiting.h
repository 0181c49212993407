// Requests that wait until there is something to answer, for as long as the client asks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "api/http.h"
#include "api/preferences.h"
#include "service/effects/wake_table.h"

namespace meshd::api {

/// Seconds that a GET waits: ?wait=, else Prefer: wait=; 0 where neither is there.
int64_t wait_of(const Request& request);

/// Asks `look` for an answer, again each time the session's bell rings, until it has one, the time is up, the client is
/// gone or `is_over`. `subscribe` gives the bell a function to call.
template <typename T>
std::optional<T> wait_for(const Request& request, int64_t seconds, const std::function<std::optional<T>()>& look,
                          const std::function<std::shared_ptr<void>(std::function<void()>)>& subscribe,
                          const std::function<bool()>& is_over);

/// The part of it that knows no type: calls `try_once` until it is true.
void wait_until(const Request& request, int64_t seconds, const std::function<bool()>& try_once,
                const std::function<std::shared_ptr<void>(std::function<void()>)>& subscribe,
                const std::function<bool()>& is_over);

template <typename T>
std::optional<T> wait_for(const Request& request, int64_t seconds, const std::function<std::optional<T>()>& look,
                          const std::function<std::shared_ptr<void>(std::function<void()>)>& subscribe,
                          const std::function<bool()>& is_over) {
  std::optional<T> found;
  wait_until(
      request, seconds,
      [&] {
        found = look();
        return found.has_value();
      },
      subscribe, is_over);
  return found;
}

}  // namespace meshd::api
