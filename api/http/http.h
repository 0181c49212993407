// HTTP as handlers use it: a validated request, and a response as a value. No socket, no library type.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/http/body.h"
#include "api/http/roles.h"
#include "service/core/memory_ledger.h"
#include "service/core/waits/waiter.h"

namespace meshd::api {

class EventStream;
struct Route;

/// Header fields in the order they came; names compare without case. A value. One thread.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  /// Appends one field. Throws core::Error internal if the name is no token or the value holds control bytes: no
  /// response splitting by what a client sent.
  void add(std::string_view name, std::string_view value);
  /// Replaces all fields of that name by one.
  void set(std::string_view name, std::string_view value);
  void remove(std::string_view name);
  [[nodiscard]] bool has(std::string_view name) const { return get(name).has_value(); }
  /// The first value, trimmed; nothing when there is none.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  /// All values of the name, joined by ", " as RFC 9110 5.3 allows; empty when there is none.
  [[nodiscard]] std::string joined(std::string_view name) const;
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

/// Query parameters in the order they came, decoded ('+' is a space). A value.
class Query {
 public:
  using Parameter = std::pair<std::string, std::string>;

  Query() = default;
  /// Decodes "a=1&b=%20". Throws malformed_request on a broken escape, a NUL or text that is not UTF-8.
  static Query parse(std::string_view raw);

  [[nodiscard]] bool has(std::string_view name) const;
  /// The value; nothing when there is none. Throws invalid_query when the name comes more than once.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  /// Every value of the name, in order.
  [[nodiscard]] std::vector<std::string_view> all(std::string_view name) const;
  /// Throws invalid_query naming every parameter that is not in `known`.
  void require_known(std::span<const std::string_view> known) const;
  void require_known(std::initializer_list<std::string_view> known) const {
    require_known(std::span(known.begin(), known.size()));
  }
  /// The value of a parameter that the front itself understands, which handlers then do not see.
  std::optional<std::string> take(std::string_view name);
  /// A decimal integer within [low, high]; `missing` when there is none; invalid_query otherwise.
  [[nodiscard]] int64_t integer(std::string_view name, int64_t missing, int64_t low, int64_t high) const;
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  std::vector<Parameter> parameters_;
};

/// Percent-decodes `text`; throws malformed_request on a broken escape, a NUL or a result that is not UTF-8.
std::string percent_decode(std::string_view text);
/// Percent-encodes everything but unreserved characters, for Location and Link.
std::string percent_encode(std::string_view text);

/// One request after routing. Lives on the server's side for as long as the handler runs. One thread.
struct Request {
  std::string method;     ///< as sent; a HEAD request reaches the handler of GET with method "HEAD"
  std::string target;     ///< the raw request target: path and query, not decoded
  std::string path;       ///< the raw path, not decoded
  int minor_version = 1;  ///< HTTP/1.minor_version
  std::vector<std::pair<std::string, std::string>> captures;  ///< by template name, decoded: {"id", "arr_..."}
  Query query;
  Headers headers;
  std::string peer_address;  ///< of the connection, never of a header
  std::string request_id;    ///< the client's X-Request-Id if it is [A-Za-z0-9._-]{1,64}, else ours
  std::string trace_id;   ///< 32 hex digits of the client's traceparent, or made where traces are exported; else empty
  std::string span_id;    ///< 16 hex digits: the request's own span of that trace; empty without one
  bool pretty = false;    ///< ?pretty: JSON responses are indented
  std::string principal;  ///< filled by the authenticate hook; empty is anonymous
  /// The session and the job that it is about, for the log: of its path by the authenticate hook, else noted by the
  /// handler. Empty: none.
  std::string session_id, job_id;
  Role role = Role::kUser;  ///< of the token, filled by the authenticate hook
  const Route* route = nullptr;
  std::chrono::steady_clock::time_point received;  ///< when the head was complete
  std::shared_ptr<BodyReader> body_reader;         ///< never null; use body()
  core::MemoryReservation memory;                  ///< of the body and what it is parsed into, until it is answered
  std::function<bool()> is_client_gone;            ///< may be empty; use client_gone()
  /// Sends an interim response (1xx, its whole head) before the response; null where the client cannot be sent one.
  std::function<void(std::string_view)> send_interim;
  /// Where the handler waits; abandoned when the client leaves. Null on the reactor, which never waits.
  core::WaiterRef waiter;
  const std::atomic<bool>* is_draining = nullptr;  ///< may be null; use draining()

  [[nodiscard]] BodyReader& body() const { return *body_reader; }
  /// The decoded capture; throws core::Error internal if the template has no such name.
  [[nodiscard]] const std::string& capture(std::string_view name) const;
  /// True once the client has closed its side: work that only this response needs may stop. A system call, about 1 us.
  [[nodiscard]] bool client_gone() const {
    return (waiter != nullptr && waiter->is_abandoned()) || (is_client_gone && is_client_gone());
  }
  /// The server is shutting down: long waits end. The waiter is notified when it begins.
  [[nodiscard]] bool draining() const { return is_draining != nullptr && is_draining->load(); }
};

/// A response's body in memory that another object owns: the pieces are sent in order without a copy, and `keep` is
/// released when the last byte is written or the connection is lost. Example: the shards of an array, 3 pieces, keep =
/// the array.
struct MemoryPieces {
  std::vector<std::span<const std::byte>> pieces;
  std::shared_ptr<const void> keep;
  int64_t made_bytes = 0;  ///< of `keep`: made for this response, whose memory they are until it is sent
};

/// A response's body that is produced while it is sent. `pull` fills the span at most and returns how many bytes it put
/// there, 0 at the end; it runs on a worker thread, one call at a time, and only when the client has taken the previous
/// piece. With `length` exactly that many bytes must follow (fewer closes the connection); without, the response is
/// chunked.
struct BodySource {
  std::optional<int64_t> length;
  std::function<size_t(std::span<std::byte>)> pull;
};

/// A response as a value. The server adds Date, Content-Length, Connection, X-Request-Id and nosniff; a 204 or 304 has
/// no body.
struct Response {
  int status = 200;
  Headers headers;
  std::variant<std::string, MemoryPieces, BodySource, std::shared_ptr<EventStream>> body;
  int64_t held_bytes = 0;  ///< of memory that others may wait for until all is sent; the client has its time for it
  std::string_view error_code = {};  ///< of a problem document: a word of the table of error codes

  /// Adds a header and returns itself, for chains: json(201, text).with("Location", where).
  Response&& with(std::string_view name, std::string_view value) && {
    headers.set(name, value);
    return std::move(*this);
  }
};

/// application/json; a newline is put at the end of the text if it has none.
Response json(int status, std::string text);
/// text/plain; charset=utf-8, with a newline at the end.
Response text(int status, std::string text);
/// Any media type, the bytes as they are.
Response content(int status, std::string_view media_type, std::string bytes);
/// 204.
Response no_content();
/// Bytes that another object owns, see MemoryPieces.
Response memory(int status, std::string_view media_type, MemoryPieces pieces);
/// A body made while it is sent, see BodySource.
Response generated(int status, std::string_view media_type, BodySource source);
/// 200 text/event-stream, see api/server/events.h.
Response events(std::shared_ptr<EventStream> stream);

/// Size of the body in bytes; nothing for an event stream or a source without length.
std::optional<int64_t> body_size(const Response& response);

}  // namespace meshd::api
