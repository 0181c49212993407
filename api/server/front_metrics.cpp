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
  const std::string_view label = method_label(method);
  requests_.with([&](Requests& requests) {
    ++requests.counts[{route, label, code}];
    requests.durations.try_emplace({route, label}, kDurationBounds).first->second.add(seconds);
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
  const auto path_of = [](const Route* route) { return route == nullptr ? "unmatched" : route->path; };
  requests_.with([&](const Requests& requests) {
    for (const auto& [key, count] : requests.counts) {
      const auto& [route, method, code] = key;
      out.requests[{std::string(method), path_of(route), code}] = count;
    }
    for (const auto& [key, durations] : requests.durations)
      out.durations.insert_or_assign({std::string(key.second), path_of(key.first)}, durations);
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
