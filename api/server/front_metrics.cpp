#include "api/server/front_metrics.h"

#include <algorithm>
#include <array>

namespace meshd::api {

namespace {

/// Labels are bounded: a method no route has is "other".
std::string_view method_label(std::string_view method) {
  constexpr std::array<std::string_view, 7> kKnown = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
  const auto known = std::find(kKnown.begin(), kKnown.end(), method);
  return known == kKnown.end() ? "other" : *known;
}

}  // namespace

void FrontMetrics::finished(std::string_view method, const Route* route, int code,
                            std::chrono::steady_clock::duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const size_t bucket = static_cast<size_t>(std::lower_bound(kDurationBounds.begin(), kDurationBounds.end(), seconds) -
                                            kDurationBounds.begin());
  requests_.with([&](auto& requests) {
    ServerMetrics::Series& series = requests[{route, method_label(method), code}];
    ++series.count;
    series.seconds += seconds;
    ++series.buckets[bucket];
  });
}

void FrontMetrics::rejected(std::string_view error_code) {
  rejected_.with([&](auto& rejected) { ++rejected[std::string(error_code)]; });
}

bool FrontMetrics::open_stream(int most) {
  if (event_streams.fetch_add(1) < most) return true;
  event_streams.fetch_sub(1);
  return false;
}

void FrontMetrics::fill(ServerMetrics& out) const {
  requests_.with([&](const auto& requests) {
    for (const auto& [key, series] : requests) {
      const auto& [route, method, code] = key;
      out.requests[{std::string(method), route == nullptr ? "unmatched" : route->path, code}] = series;
    }
  });
  rejected_.with([&](const auto& rejected) { out.rejected.insert(rejected.begin(), rejected.end()); });
  out.in_flight = in_flight;
  out.connections_idle = idle;
  out.connections_reading = reading;
  out.connections_working = working;
  out.connections_writing = writing;
  out.event_streams = event_streams;
  out.connections_accepted = accepted;
  out.connections_refused = refused;
  out.accept_errors = accept_errors;
  out.handshakes_done = handshakes_done;
  out.handshakes_failed = handshakes_failed;
  out.handshakes_late = handshakes_late;
  out.bytes_in = bytes_in;
  out.bytes_out = bytes_out;
  out.socket_writes = socket_writes;
}

}  // namespace meshd::api
