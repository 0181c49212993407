// Long polling: requests that wait until there is a result, as long as the client allows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "api/fields/preferences.h"
#include "api/http/http.h"

namespace meshd::api {

/// Seconds that a GET waits: ?wait=, else Prefer: wait=; 0 where neither is there.
int64_t wait_of(const Request& request);

/// Calls `try_once`, again each time `subscribe`'s function is called, until it returns true, the time is up, the
/// client disconnects or the server stops. Releases its thread meanwhile.
void wait_until(const Request& request, int64_t seconds, const std::function<bool()>& try_once,
                const std::function<std::shared_ptr<void>(std::function<void()>)>& subscribe);

/// The same for what `look` finds.
template <typename T>
std::optional<T> wait_for(const Request& request, int64_t seconds, const std::function<std::optional<T>()>& look,
                          const std::function<std::shared_ptr<void>(std::function<void()>)>& subscribe) {
  std::optional<T> found;
  wait_until(
      request, seconds,
      [&] {
        found = look();
        return found.has_value();
      },
      subscribe);
  return found;
}

}  // namespace meshd::api
