// Request metrics of the server. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "api/server/server.h"
#include "service/core/locked.h"

namespace meshd::api {

class FrontMetrics {
 public:
  /// A request is over. `route` may be null, `code` 0 when there was no response. `error_code`: of a problem document.
  void finished(const Route* route, int code, std::string_view error_code, std::chrono::steady_clock::duration took);
  /// A refusal before a handler ran.
  void rejected(std::string_view error_code);
  /// Fills everything but the fields of the reactor and the pools.
  void fill(ServerMetrics& out) const;

  struct CloseStream {
    void operator()(FrontMetrics* metrics) const { metrics->event_streams.fetch_sub(1); }
  };
  /// An event stream that is counted as open, until this ends.
  using OpenStream = std::unique_ptr<FrontMetrics, CloseStream>;
  /// Counts one stream more; null when there are `most`.
  OpenStream open_stream(int most);

  std::atomic<int64_t> in_flight{0};
  std::atomic<int64_t> idle{0}, reading{0}, working{0}, writing{0};
  std::atomic<int64_t> event_streams{0};
  std::atomic<int64_t> accepted{0}, refused{0}, accept_errors{0};
  std::atomic<int64_t> handshakes_done{0}, handshakes_failed{0}, handshakes_late{0};
  std::atomic<int64_t> bytes_in{0}, bytes_out{0}, socket_writes{0};

 private:
  struct Requests {
    std::map<std::pair<const Route*, int>, int64_t> counts;
    std::map<const Route*, core::Histogram> durations;
    std::map<std::string, int64_t, std::less<>> refused;
  };
  core::Locked<Requests> requests_;
  core::Locked<std::map<std::string, int64_t, std::less<>>> rejected_;
};

}  // namespace meshd::api
