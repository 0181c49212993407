// One request and its response, without sockets: routing, credentials, body policy, the handler, and the response's
// head. The connection schedules it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/http/head.h"
#include "api/http/http.h"
#include "api/http/httplib_bridge.h"
#include "api/http/router.h"
#include "api/server/body_pipeline.h"
#include "api/server/front_metrics.h"
#include "api/server/server.h"
#include "service/core/error.h"

namespace meshd::api {

/// What all exchanges of a server share. Any thread.
struct FrontContext {
  ServerOptions options;
  SitePolicy site;
  Router router;
  ServerHooks hooks;
  HttplibBridge bridge;
  FrontMetrics metrics;
  std::atomic<bool> draining{false};
  std::string id_prefix;  ///< of request ids made here
  std::atomic<uint64_t> next_id{0};
  std::shared_ptr<BodyReader> no_body;       ///< of all requests without one; it has no state
  core::MemoryShareTable shares{INT64_MAX};  ///< of principals, in what requests hold
};

/// One thread at a time: the reactor's, or the worker's that the exchange was handed to.
class Exchange {
 public:
  /// What has to happen before run().
  enum class Plan {
    kRunHere,      ///< nothing, and run() does not wait: a refusal, or a RunOn::kReactor row
    kRunOnWorker,  ///< nothing
    /// the reactor reads the body through pipeline() and calls give_body(); then after_body() is where to run
    kTakeBody,
    kStreamBody,  ///< on a worker, with a reader over pipeline(), given by give_reader()
  };

  /// Counts the request as in flight.
  Exchange(FrontContext& context, Head head, const std::string& peer_address);
  /// A request whose head was refused.
  Exchange(FrontContext& context, const core::Error& refusal, const std::string& peer_address);
  /// Counts it as over, and writes the access record.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Routes, checks credentials and the head's body fields. Refusals become the response. Never throws.
  Plan plan();
  /// Of the body and what the handler makes of it.
  [[nodiscard]] core::MemoryReservation& memory() { return request_.memory; }
  /// The body; none if the head has none.
  [[nodiscard]] std::optional<BodyPipeline>& pipeline() { return pipeline_; }
  void give_body(std::string bytes);
  /// How the handler sends interim responses (Request::send_interim).
  void set_send_interim(std::function<void(std::string_view)> send) { request_.send_interim = std::move(send); }
  void give_reader(std::shared_ptr<BodyReader> reader);
  [[nodiscard]] Plan after_body() const;
  /// The handler of kRunOnWorker may run here: Route::is_brief says so of this request.
  [[nodiscard]] bool is_brief() const;
  /// The response becomes this problem.
  void deny(const core::Error& error);
  /// The same, and the connection ends after it.
  void refuse(const core::Error& error);
  /// The same for what the body's pipeline threw.
  void refuse_body(const core::Error& error);
  void set_client_gone(std::function<bool()> gone) { request_.is_client_gone = std::move(gone); }
  /// Where the handler waits; before run() on a worker.
  void set_waiter(core::WaiterRef waiter) { request_.waiter = std::move(waiter); }

  /// Runs the handler (or takes the refusal) and makes the response's head. `can_keep` is called after the handler:
  /// whether the connection can be reused, given what is left of the body. Never throws. `head` is emptied and filled:
  /// its memory is reused by later requests.
  void run(const std::function<bool()>& can_keep, std::string& head);

  [[nodiscard]] const Head& head() const { return head_; }
  [[nodiscard]] std::chrono::steady_clock::time_point received() const { return request_.received; }
  [[nodiscard]] Response& response() { return response_; }
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }
  [[nodiscard]] bool chunked_answer() const { return chunked_answer_; }
  /// Of a response that is an event stream: whoever sends it keeps this.
  FrontMetrics::OpenStream take_open_stream() { return std::move(open_stream_); }
  /// The response ends early with this error, of which only the log tells.
  void cut_off(const core::Error& error);
  /// The response's last byte is sent, `bytes_out` in all; without this call the request counts as aborted.
  void sent(int64_t bytes_out, std::chrono::steady_clock::time_point now);
  void count_in(int64_t bytes) { bytes_in_ += bytes; }

 private:
  Plan plan_route();
  Plan plan_body(const Route& route);
  Response options_answer(std::string allow) const;
  Response make_answer();
  void finish_answer(bool can_keep, std::string& head);
  /// Holds the memory of what was made for the response, or makes it a problem.
  void hold_answer();
  void write_head(std::optional<int64_t> size, std::string& out) const;
  /// Has the hook log the request, which is over.
  void tell_access(const Route* route, int status, std::chrono::steady_clock::duration took);
  void choose_request_id();
  void read_trace();
  /// Applies the request's conditions, preferences and codings to the response.
  void shape_representation();
  /// Breaks a JSON text into lines, as far as answers have the memory for it.
  void lay_out(std::string& text);

  FrontContext& context_;
  Head head_;
  Request request_;
  std::string_view path_template_;  ///< of the router, which outlives this
  std::optional<Response> refusal_;
  std::optional<BodyPipeline> pipeline_;
  std::shared_ptr<MemoryBody> taken_body_;  ///< null: the body is read by the handler, or there is none
  Response response_;
  FrontMetrics::OpenStream open_stream_;   ///< while the response is one
  core::MemoryReservation answer_memory_;  ///< of what was made for the response, until it is sent
  std::string cors_origin_;                ///< the allowed origin of the requesting page; empty: none
  std::string traceparent_;                ///< of the response; empty when the request is in no trace
  std::string client_span_;                ///< of the client's traceparent
  bool is_sampled_ = true;
  std::string error_code_;
  std::string error_internal_;
  bool close_ = false;
  bool keep_alive_ = false;
  bool chunked_answer_ = false;
  bool head_only_ = false;
  int64_t bytes_in_ = 0;
  int64_t bytes_out_ = 0;
  std::optional<std::chrono::steady_clock::time_point> sent_;
};

}  // namespace meshd::api
