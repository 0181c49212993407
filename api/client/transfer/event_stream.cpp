#include "api/client/transfer/event_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace meshd::client {
namespace {

constexpr int kMostReconnects = 8;
constexpr auto kReconnectPause = std::chrono::milliseconds(250);

}  // namespace

bool EventParser::feed(std::string_view bytes, const std::function<bool(const ServerEvent&)>& take) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    line_ += bytes.substr(0, std::min(end, bytes.size()));
    if (end == std::string_view::npos) return true;
    bytes.remove_prefix(end + 1);
    std::string line = std::exchange(line_, {});
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) {
      const ServerEvent event = std::exchange(event_, {});
      if (!event.data.empty() && !take(event)) return false;
      continue;
    }
    // A line without a field's name is a comment.
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string field = line.substr(0, colon);
    std::string value = line.substr(std::min(colon + 1, line.size()));
    if (value.starts_with(' ')) value.erase(0, 1);
    if (field == "id") event_.id = value;
    if (field == "event") event_.name = value;
    if (field == "data") event_.data += (event_.data.empty() ? "" : "\n") + value;
  }
  return true;
}

void follow_events(Connection& connection, const std::string& session, int64_t after, const EventReader& reader) {
  std::string last = std::to_string(after);
  auto pause = kReconnectPause;
  for (int tries = 0; !reader.is_cancelled();) {
    EventParser parser;
    bool is_wanted = true;
    Ask ask{.target = fmt::format("/v1/sessions/{}/events", percent_encoded(session))};
    ask.headers = {{"Accept", "text/event-stream"}, {"Last-Event-ID", last}};
    ask.receiver = [&](const Answer&, std::string_view bytes) {
      tries = 0;
      pause = kReconnectPause;
      is_wanted = parser.feed(bytes, [&](const ServerEvent& event) {
        if (!event.id.empty()) last = event.id;
        return reader.take(event);
      });
      return is_wanted && !reader.is_cancelled();
    };
    try {
      connection.send(ask);
    } catch (const Failure& failure) {
      // Lost, or 503: the server is starting or ending.
      if (!is_wanted || reader.is_cancelled()) return;
      if (failure.code() != kUnavailable || ++tries == kMostReconnects) throw;
    }
    if (!is_wanted || reader.is_cancelled()) return;
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

}  // namespace meshd::client
