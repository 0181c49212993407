// Routes that know nothing of arrays: what the tests of the front, and its benchmark, talk to.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "api/http/events.h"
#include "api/http/router.h"

namespace meshd::http_test {

/// What tests reach into while a server runs. Any thread.
struct ToyState {
  std::mutex mutex;
  std::vector<std::shared_ptr<api::EventStream>> streams;  ///< of GET /events, in the order of opening
  std::shared_ptr<std::vector<std::byte>> large;           ///< bytes of GET /large

  std::vector<std::shared_ptr<api::EventStream>> open_streams() {
    std::lock_guard held(mutex);
    return streams;
  }
};

/// Byte number `i` of every large body.
constexpr std::byte pattern(size_t i) { return static_cast<std::byte>((i * 2654435761U) >> 16); }

/// The table. `large_bytes` is the size of GET /large.
api::Router toy_router(const std::shared_ptr<ToyState>& state, size_t large_bytes);

}  // namespace meshd::http_test
