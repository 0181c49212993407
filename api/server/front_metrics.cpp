#include "api/server/front_metrics.h"

namespace meshd::api {

void FrontMetrics::finished(const Route* route, int code, std::string_view error_code,
                            std::chrono::steady_clock::duration took) {
  const bool is_refusal = (code == 429 || code == 503) && !error_code.empty();
  const double seconds = std::chrono::duration<double>(took).count();
  requests_.with([&](Requests& requests) {
    ++requests.counts[{route, code}];
    if (is_refusal) ++requests.refused[std::string(error_code)];
    requests.durations.try_emplace(route, kDurationBounds).first->second.add(seconds);
  });
}

void FrontMetrics::rejected(std::string_view error_code) {
  rejected_.with([&](auto& rejected) { ++rejected[std::string(error_code)]; });
}

FrontMetrics::OpenStream FrontMetrics::open_stream(int most) {
  if (event_streams.fetch_add(1) < most) return OpenStream(this);
  event_streams.fetch_sub(1);
  return nullptr;
}

void FrontMetrics::fill(ServerMetrics& out) const {
  const auto name_of = [](const Route* route) { return route == nullptr ? "unmatched" : route->operation_id; };
  requests_.with([&](const Requests& requests) {
    for (const auto& [key, count] : requests.counts) out.requests[{name_of(key.first), key.second}] = count;
    out.refused.insert(requests.refused.begin(), requests.refused.end());
    for (const auto& [route, durations] : requests.durations) out.durations.insert_or_assign(name_of(route), durations);
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
