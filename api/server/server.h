// The HTTP server: sockets in an Asio reactor, request heads parsed and status lines written by cpp-httplib behind
// api/http/httplib_bridge.h.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/fields/site_policy.h"
#include "api/http/http.h"
#include "api/http/router.h"
#include "service/core/histogram.h"

namespace meshd::api {

class TlsContext;

/// Every limit of the front, with its default.
struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;                ///< 0: any free one, see Server::port()
  std::shared_ptr<TlsContext> tls;  ///< null: plain HTTP
  core::MemoryLedgerRef memory;     ///< holds bodies, answers and backlogs of events; null: they are not counted
  int backlog = 1024;
  bool makes_traces = false;  ///< requests without a traceparent begin a trace
  SiteOptions site;           ///< the browser pages that may send requests

  int64_t head_bytes = 16 * 1024;
  int head_fields = 100;
  std::chrono::milliseconds head_deadline{10'000};  ///< from the first byte of a head to its end
  std::chrono::milliseconds idle_deadline{15'000};  ///< between requests of a connection
  int64_t minimum_bytes_per_second = 1024;          ///< of a body that comes, and of a client that reads
  std::chrono::seconds longest_held{600};        ///< that a client may take for an answer in memory, beside the grace
  std::chrono::milliseconds rate_grace{10'000};  ///< before that rate is required, and the longest pause
  int64_t json_bytes = 4LL << 20;
  int64_t program_bytes = 64LL << 20;
  int64_t inline_bytes = 256LL << 20;
  int64_t drain_bytes = 64 * 1024;  ///< of an unread body, before the connection is closed instead

  int connections = 2048;            ///< then accepting pauses
  int connections_per_address = 64;  ///< loopback excepted
  int event_streams = 512;
  std::chrono::milliseconds heartbeat{15'000};
  std::chrono::milliseconds event_retry{3'000};      ///< `retry:` of the shutdown event
  std::chrono::milliseconds event_deadline{60'000};  ///< for a client to take what was taken from its backlog

  int workers = 16;             ///< kept
  int workers_max = 64;         ///< under load
  int worker_queue = 1024;      ///< then 503 with Retry-After
  int upload_workers_max = 48;  ///< threads of their own for bodies that stream, so that uploads never starve the rest
  int handshake_workers_max = 2;

  std::chrono::milliseconds accept_after_drain{2'000};  ///< for balancers to see readiness fall
  std::chrono::milliseconds drain_timeout{20'000};
};

/// One line of the access log, after the last byte of the response was sent (or the connection broke).
struct AccessRecord {
  std::string request_id;
  std::string trace_id;       ///< of the client's traceparent, or of one that was made; empty without one
  std::string span_id;        ///< the request's own span of the trace
  std::string client_span;    ///< its parent; empty: none
  bool is_sampled = true;     ///< whoever began the trace records it
  std::string server_timing;  ///< the response's Server-Timing; empty: none
  std::string peer_address;
  std::string principal;
  Role role = Role::kUser;        ///< of the principal's token
  Access access = Access::kOpen;  ///< of the route
  std::string method;
  std::string target;
  std::string route;               ///< the template; empty when there is none
  std::string operation_id;        ///< of the route; empty when there is none
  std::string session_id, job_id;  ///< that it was about; empty: none
  int status = 0;                  ///< 0: the client disconnected before a response
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
  std::chrono::microseconds duration{0};
  std::string error_code;      ///< of a problem, else empty
  std::string error_internal;  ///< core::Error::internal() or what() of an unexpected exception: for the log only
};

/// What the rest of the program adds to each request. All may be empty. They run on the reactor or on a worker, must
/// not wait, and must be safe to call from any thread.
struct ServerHooks {
  /// Before the body is read (and before 100 Continue). Sets request.principal; throws core::Error (unauthorized,
  /// forbidden, too_many_requests) to refuse. Not called for Access::kOpen.
  std::function<void(Request&)> authenticate;
  /// After the handler (or a refusal): adds headers, e.g. security or tracing ones.
  std::function<void(const Request&, Response&)> finish;
  std::function<void(const AccessRecord&)> access;
};

/// Upper bounds of the duration histograms.
inline constexpr std::array<double, 12> kDurationBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                           0.1,    0.25,  1.0,    2.5,   10.0, 60.0};

/// Counters since the start, and gauges.
struct ServerMetrics {
  struct Key {
    std::string operation;  ///< the route's id, or "unmatched"; HEAD counts as its GET
    int code = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, int64_t> requests;
  /// By operation, whatever the code.
  std::map<std::string, core::Histogram> durations;
  std::map<std::string, int64_t> rejected;  ///< by error code: refusals before a handler ran
  std::map<std::string, int64_t> refused;   ///< by error code: answers of 429 and 503, whoever made them
  int64_t in_flight = 0;
  int64_t connections_idle = 0, connections_reading = 0, connections_working = 0, connections_writing = 0;
  int64_t event_streams = 0;
  int64_t connections_accepted = 0;
  int64_t connections_refused = 0;  ///< over connections_per_address
  int64_t accept_errors = 0;
  int64_t handshakes_done = 0;
  int64_t handshakes_failed = 0;  ///< the client ended it, or spoke something else than TLS
  int64_t handshakes_late = 0;    ///< not done within head_deadline
  int64_t bytes_in = 0, bytes_out = 0;
  int64_t socket_writes = 0;  ///< calls that wrote to a socket
  int64_t worker_threads = 0, worker_queue = 0;
  int64_t handlers = 0;  ///< that have not ended, those that wait included
};

/// Listens, reads, responds. start(), begin_drain(), stop() from one owner; everything else from any thread.
class Server {
 public:
  Server(const ServerOptions& options, Router router, ServerHooks hooks = {});
  /// Stops without waiting for the drain timeout.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Binds (SO_REUSEADDR only: a second server on the port is refused), listens and starts the threads. Throws
  /// core::Error internal with the system's reason when the address cannot be had.
  void start();
  /// The bound port.
  [[nodiscard]] uint16_t port() const;
  [[nodiscard]] const Router& router() const;

  /// Returns at once. From now on draining() is true and responses have Connection: close; after accept_after_drain the
  /// listener is closed, idle connections end and event streams get `event: shutdown`. Safe to call twice.
  void begin_drain();
  [[nodiscard]] bool draining() const;
  /// Whether the thread that owns the sockets takes work within `patience`: false where it hangs. Between start() and
  /// stop().
  [[nodiscard]] bool is_responsive(std::chrono::milliseconds patience) const;
  /// begin_drain, then waits until nothing is in flight or drain_timeout is over, closes what is left, joins all
  /// threads. Returns true if every request that was accepted got its response.
  bool stop();
  /// The same without waiting.
  void stop_now();

  [[nodiscard]] ServerMetrics metrics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace meshd::api
