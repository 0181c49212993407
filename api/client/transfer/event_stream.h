// Server-sent events (WHATWG HTML 9.2): a parser of the stream, and a reader of a session's log that resumes after a
// lost connection at the entry behind the last one it gave.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "api/client/transfer/connection.h"

namespace meshd::client {

struct ServerEvent {
  std::string id;    ///< empty: it has none
  std::string name;  ///< of "event:"
  std::string data;
};

/// Takes the bytes of a stream as they come. One thread.
class EventParser {
 public:
  /// Calls `take` for each event that is complete; false of it ends the reading, and is returned.
  bool feed(std::string_view bytes, const std::function<bool(const ServerEvent&)>& take);

 private:
  std::string line_;
  ServerEvent event_;
};

/// What takes the events of a stream.
struct EventReader {
  std::function<bool(const ServerEvent&)> take;  ///< false ends the reading
  /// Asked before each connection and after each piece of a stream, comments too. Another thread ends the reading by
  /// letting it give true and then stopping the connection.
  std::function<bool()> is_cancelled = [] { return false; };
};

/// The longest silence of a stream: the server writes a comment every 15 s.
inline constexpr int64_t kStreamSeconds = 30;

/// Follows the log of a session from the entry behind number `after`. A stream that ends is opened again, and so is one
/// whose connection was lost, if the server answers within about a minute; `connection` gives up after kStreamSeconds
/// without a byte. Throws Failure kRefused where there is no such session (any more).
void follow_events(Connection& connection, const std::string& session, int64_t after, const EventReader& reader);

}  // namespace meshd::client
