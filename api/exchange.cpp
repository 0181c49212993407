#include "api/exchange.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <exception>
#include <utility>

#include "api/characters.h"
#include "api/events.h"
#include "api/problem.h"

namespace meshd::api {

namespace {

constexpr int64_t kSmallBody = 64 * 1024;
constexpr size_t kRequestIdBytes = 64;
constexpr std::string_view kAllMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

int64_t limit_of(const ServerOptions& options, BodyPolicy policy) {
  switch (policy) {
    case BodyPolicy::kJson:
      return options.json_bytes;
    case BodyPolicy::kProgram:
      return options.program_bytes;
    case BodyPolicy::kInline:
      return options.inline_bytes;
    case BodyPolicy::kNone:
    case BodyPolicy::kBulk:
      break;
  }
  return body_limit(policy);
}

/// IMF-fixdate of RFC 9110 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date() {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::string out = "Www, DD Mmm YYYY hh:mm:ss GMT";
  const auto digits = [&](size_t at, int value, size_t count) {
    for (size_t i = count; i-- > 0; value /= 10) out[at + i] = static_cast<char>('0' + value % 10);
  };
  out.replace(0, 3, kDays.substr(static_cast<size_t>(parts.tm_wday) * 3, 3));
  digits(5, parts.tm_mday, 2);
  out.replace(8, 3, kMonths.substr(static_cast<size_t>(parts.tm_mon) * 3, 3));
  digits(12, parts.tm_year + 1900, 4);
  digits(17, parts.tm_hour, 2);
  digits(20, parts.tm_min, 2);
  digits(23, parts.tm_sec, 2);
  return out;
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kRequestIdBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
  });
}

bool has_no_body(int status) { return status == 204 || status == 304; }

}  // namespace

Exchange::Exchange(FrontContext& context, Head head, const Peer& peer) : context_(context), head_(std::move(head)) {
  context_.metrics.in_flight.fetch_add(1);
  request_.received = std::chrono::steady_clock::now();
  request_.method = head_.method;
  request_.target = head_.target;
  request_.path = head_.path;
  request_.minor_version = head_.minor_version;
  request_.peer_address = peer.address;
  request_.peer_port = peer.port;
  head_only_ = head_.method == "HEAD";
  // Until a route says more: a body to walk over.
  if (head_.framing != Framing::kNone) pipeline_.emplace(head_, nullptr, INT64_MAX);
  choose_request_id();
}

Exchange::Exchange(FrontContext& context, const core::Error& refusal, const Peer& peer)
    : Exchange(context, Head(), peer) {
  refuse(refusal);
}

Exchange::~Exchange() {
  context_.metrics.in_flight.fetch_sub(1);
  const auto took = std::chrono::steady_clock::now() - request_.received;
  const int status = sent_ ? response_.status : 0;
  const Route* route = path_template_.empty() ? nullptr : request_.route;
  context_.metrics.finished(head_.method, route, status, took);
  if (!context_.hooks.access) return;
  AccessRecord record;
  record.request_id = std::move(request_.request_id);
  record.peer_address = std::move(request_.peer_address);
  record.principal = std::move(request_.principal);
  record.method = std::move(head_.method);
  record.target = std::move(head_.target);
  record.route = std::move(path_template_);
  if (route != nullptr) record.operation_id = route->operation_id;
  record.status = status;
  record.bytes_in = bytes_in_;
  record.bytes_out = bytes_out_;
  record.duration = std::chrono::duration_cast<std::chrono::microseconds>(took);
  record.error_code = std::move(error_code_);
  record.error_internal = std::move(error_internal_);
  try {
    context_.hooks.access(record);
  } catch (...) {
    // A log that cannot be written must not take the connection with it.
  }
}

void Exchange::choose_request_id() {
  if (const auto given = head_.headers.get("X-Request-Id"); given && is_request_id(*given)) {
    request_.request_id = *given;
    return;
  }
  char digits[16];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, context_.next_id.fetch_add(1, std::memory_order_relaxed), 16).ptr;
  request_.request_id.append(context_.id_prefix).append(digits, end);
}

void Exchange::deny(const core::Error& error) {
  refusal_ = problem(error, request_.request_id, request_.path);
  error_code_ = error.code().word();
  error_internal_ = error.internal();
  context_.metrics.rejected(error_code_);
}

void Exchange::refuse(const core::Error& error) {
  deny(error);
  close_ = true;
}

void Exchange::refuse_body(const core::Error& error) {
  // A limit of 0 is better said in the words of the rule behind it.
  const bool none = request_.route->body == BodyPolicy::kNone && error.code() == core::ErrorCode("body_too_large");
  refuse(none ? core::Error("malformed_request", "this operation takes no body") : error);
}

Response Exchange::options_answer(std::string allow) const {
  return no_content().with("Allow", allow.empty() ? kAllMethods : std::string_view(allow));
}

Exchange::Plan Exchange::plan() {
  if (refusal_) return Plan::kRunHere;
  try {
    return plan_route();
  } catch (const core::Error& error) {
    deny(error);
  } catch (...) {
    deny(core::Error("internal", "something went wrong on our side"));
  }
  return Plan::kRunHere;
}

Exchange::Plan Exchange::plan_route() {
  if (head_.path == "*") {
    refusal_ = options_answer({});
    return Plan::kRunHere;
  }
  RouteMatch match = context_.router.match(head_.method, head_.path);
  path_template_ = match.path_template;
  if (match.route == nullptr) {
    if (match.allow.empty()) throw core::Error("not_found", "there is nothing at this path");
    if (head_.method == "OPTIONS") {
      refusal_ = options_answer(std::move(match.allow));
    } else {
      deny(core::Error("method_not_allowed", "this path knows " + match.allow));
      refusal_->headers.add("Allow", match.allow);
    }
    return Plan::kRunHere;
  }
  const Route& route = *match.route;
  request_.route = &route;
  request_.captures = std::move(match.captures);
  if (!head_.raw_query.empty()) request_.query = Query::parse(head_.raw_query);
  request_.headers = std::move(head_.headers);
  if (route.access == Access::kPrincipal && context_.hooks.authenticate) context_.hooks.authenticate(request_);
  return plan_body(route);
}

Exchange::Plan Exchange::plan_body(const Route& route) {
  if (head_.framing == Framing::kNone) {
    request_.body_reader = std::make_shared<MemoryBody>();
    return after_body();
  }
  std::unique_ptr<ContentDecoder> decoder;
  try {
    decoder = make_content_decoder(request_.headers.joined("Content-Encoding"));
  } catch (const core::Error& error) {
    deny(error);
    refusal_->headers.add("Accept-Encoding", "gzip, zstd");
    return Plan::kRunHere;
  }
  const int64_t limit = limit_of(context_.options, route.body);
  if (route.body == BodyPolicy::kNone && head_.framing == Framing::kLength) {
    throw core::Error("malformed_request", "this operation takes no body");
  }
  if (head_.content_length > limit) {
    throw core::Error("body_too_large", "the body has " + std::to_string(head_.content_length) + " bytes, at most " +
                                            std::to_string(limit) + " are taken here");
  }
  const bool small = head_.framing == Framing::kLength && !decoder && head_.content_length <= kSmallBody;
  pipeline_.emplace(head_, std::move(decoder), limit);
  // A client that waits for 100 Continue wants to be refused before it sends: only the handler of a stream can do that.
  const bool stream =
      route.body == BodyPolicy::kBulk || route.body == BodyPolicy::kInline || route.body == BodyPolicy::kProgram;
  return stream && (!small || head_.expect_continue) ? Plan::kStreamBody : Plan::kTakeBody;
}

Exchange::Plan Exchange::after_body() const {
  return refusal_ || request_.route->run_on == RunOn::kReactor ? Plan::kRunHere : Plan::kRunOnWorker;
}

void Exchange::give_body(std::string bytes) { request_.body_reader = std::make_shared<MemoryBody>(std::move(bytes)); }

void Exchange::give_reader(std::shared_ptr<BodyReader> reader) { request_.body_reader = std::move(reader); }

Response Exchange::make_answer() {
  if (refusal_) return std::move(*refusal_);
  try {
    Response response = request_.route->handler(request_);
    if (response.status >= 200 && response.status <= 599) return response;
    error_internal_ = "the handler's status is " + std::to_string(response.status);
  } catch (const core::Error& error) {
    error_code_ = error.code().word();
    error_internal_ = error.internal();
    return problem(error, request_.request_id, request_.path);
  } catch (const std::exception& error) {
    error_internal_ = error.what();
    error_code_ = "internal";
    return problem(std::current_exception(), request_.request_id, request_.path);
  } catch (...) {
    error_internal_ = "an exception of unknown type";
  }
  error_code_ = "internal";
  return problem(core::Error("internal", "something went wrong on our side"), request_.request_id, request_.path);
}

HttplibBridge::Answer Exchange::finish_answer(bool can_keep) {
  if (auto* stream = std::get_if<std::shared_ptr<EventStream>>(&response_.body)) {
    if (head_only_) {
      (*stream)->close();
      response_.body = std::string();
    } else if (!context_.metrics.open_stream(context_.options.event_streams)) {
      (*stream)->close();
      response_ = problem(core::Error("overloaded", "too many event streams are open").with_retry_after(5),
                          request_.request_id, request_.path);
    } else {
      can_keep = false;  // what a client sends after this request is never read
    }
  }
  if (context_.hooks.finish) {
    try {
      context_.hooks.finish(request_, response_);
    } catch (...) {
      error_internal_ = "the finish hook threw";
    }
  }
  Headers& headers = response_.headers;
  const std::optional<int64_t> size = body_size(response_);
  keep_alive_ = can_keep && head_.keep_alive && !close_ && !context_.draining.load(std::memory_order_relaxed);
  if (has_no_body(response_.status)) {
    response_.body = std::string();
  } else if (size) {
    headers.set("Content-Length", std::to_string(*size));
  } else if (head_.minor_version > 0) {
    if (!head_only_) headers.set("Transfer-Encoding", "chunked");
    chunked_answer_ = true;
  } else {
    keep_alive_ = false;  // the end of the connection is the end of the body
  }
  if (head_only_) response_.body = std::string();
  headers.set("Date", http_date());
  headers.set("X-Request-Id", request_.request_id);
  if (!headers.has("X-Content-Type-Options")) headers.add("X-Content-Type-Options", "nosniff");
  if (!keep_alive_) {
    headers.set("Connection", "close");
  } else if (head_.minor_version == 0) {
    headers.set("Connection", "keep-alive");
  }
  return {response_.status, headers};
}

void Exchange::run(const std::function<bool()>& can_keep) {
  const auto answer = [&] {
    response_ = make_answer();
    try {
      return finish_answer(can_keep());
    } catch (...) {
      response_ = Response{500, {}, std::string()};
      return HttplibBridge::Answer{500, {}};
    }
  };
  try {
    if (head_.target.empty()) {
      const HttplibBridge::Answer refused = answer();
      answer_head_ = context_.bridge.render(refused);
    } else {
      answer_head_ = context_.bridge.exchange(head_, request_.peer_address, request_.peer_port, answer);
    }
  } catch (const core::Error& error) {
    // The library reads the head in another way than we did: nobody acts upon it.
    refuse(error);
    answer_head_ = context_.bridge.render(answer());
  }
}

void Exchange::sent(int64_t bytes_out) {
  sent_ = true;
  bytes_out_ = bytes_out;
}

}  // namespace meshd::api
