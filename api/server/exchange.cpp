#include "api/server/exchange.h"

#include <fmt/core.h>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <exception>
#include <new>
#include <utility>

#include "api/fields/conditions.h"
#include "api/fields/content_encoder.h"
#include "api/fields/cors.h"
#include "api/fields/digests.h"
#include "api/fields/media_type.h"
#include "api/fields/partial_upload.h"
#include "api/fields/preferences.h"
#include "api/fields/trace_context.h"
#include "api/http/characters.h"
#include "api/http/events.h"
#include "api/http/near_paths.h"
#include "api/http/pretty_json.h"
#include "api/http/problem.h"
#include "service/core/ids.h"

namespace meshd::api {

namespace {

constexpr int64_t kSmallBody = 64 * 1024;
constexpr size_t kRequestIdBytes = 64;
constexpr int kSpanBytes = 8;
constexpr int kTraceBytes = 16;
constexpr std::string_view kAllMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

int64_t limit_of(const ServerOptions& options, BodyPolicy policy) {
  switch (policy) {
    case BodyPolicy::kJson:
      return options.json_bytes;
    case BodyPolicy::kProgram:
      return options.program_bytes;
    case BodyPolicy::kInline:
    case BodyPolicy::kForm:
    case BodyPolicy::kValues:
    case BodyPolicy::kInference:
      return options.inline_bytes;
    case BodyPolicy::kNone:
    case BodyPolicy::kBulk:
      break;
  }
  return body_limit(policy);
}

constexpr std::string_view kNosniff = "X-Content-Type-Options";

/// Fields that only the front sets, whatever a handler does.
bool is_ours(std::string_view name) {
  constexpr std::array<std::string_view, 5> kOurs = {"Content-Length", "Transfer-Encoding", "Connection", "Date",
                                                     "X-Request-Id"};
  return std::any_of(kOurs.begin(), kOurs.end(),
                     [&](std::string_view ours) { return equal_ignoring_case(ours, name); });
}

/// "Date: Sun, 06 Nov 1994 08:49:37 GMT", RFC 9110 5.6.7. By calendar arithmetic: gmtime takes a lock.
void append_date(std::string& out) {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  timespec coarse{};  // a tick old at most, which seconds do not show, and cheap
  clock_gettime(CLOCK_REALTIME_COARSE, &coarse);
  const std::chrono::sys_seconds now{std::chrono::seconds(coarse.tv_sec)};
  const auto day = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(now - day);
  const auto digits = [&](long value, int count) {
    std::array<char, 4> text{};
    for (int i = count; i-- > 0; value /= 10) text[static_cast<size_t>(i)] = static_cast<char>('0' + value % 10);
    out.append(text.data(), static_cast<size_t>(count));
  };
  out.append("Date: ").append(kDays.substr(std::chrono::weekday(day).c_encoding() * 3, 3)).append(", ");
  digits(static_cast<long>(static_cast<unsigned>(date.day())), 2);
  out.append(" ").append(kMonths.substr((static_cast<unsigned>(date.month()) - 1) * 3, 3)).append(" ");
  digits(static_cast<int>(date.year()), 4);
  out.append(" ");
  digits(time.hours().count(), 2);
  out.append(":");
  digits(time.minutes().count(), 2);
  out.append(":");
  digits(time.seconds().count(), 2);
  out.append(" GMT\r\n");
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kRequestIdBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
  });
}

bool has_no_body(int status) { return status == 204 || status == 304; }

}  // namespace

Exchange::Exchange(FrontContext& context, Head head, const std::string& peer_address)
    : context_(context), head_(std::move(head)) {
  request_.received = std::chrono::steady_clock::now();
  request_.method = head_.method;
  request_.target = head_.target;
  request_.path = head_.path;
  request_.minor_version = head_.minor_version;
  request_.peer_address = peer_address;
  request_.is_draining = &context_.draining;
  request_.memory = {context_.options.memory, core::MemoryAccount::kRequests};
  answer_memory_ = {context_.options.memory, core::MemoryAccount::kAnswers};
  head_only_ = head_.method == "HEAD";
  // Until a route is known: a body to skip.
  if (head_.framing != Framing::kNone) pipeline_.emplace(head_, nullptr, INT64_MAX);
  choose_request_id();
  read_trace();
  context_.metrics.in_flight.fetch_add(1);  // last: where it throws before, the destructor does not count it as over
}

Exchange::Exchange(FrontContext& context, const core::Error& refusal, const std::string& peer_address)
    : Exchange(context, Head(), peer_address) {
  refuse(refusal);
}

Exchange::~Exchange() {
  context_.metrics.in_flight.fetch_sub(1);
  const auto took = sent_.value_or(std::chrono::steady_clock::now()) - request_.received;
  const int status = sent_ ? response_.status : 0;
  const Route* route = path_template_.empty() ? nullptr : request_.route;
  context_.metrics.finished(route, status, response_.error_code, took);
  if (!context_.hooks.access) return;
  try {
    tell_access(route, status, took);
  } catch (...) {
    // A log that cannot be written must not take the connection with it.
  }
}

void Exchange::tell_access(const Route* route, int status, std::chrono::steady_clock::duration took) {
  AccessRecord record;
  record.request_id = std::move(request_.request_id);
  record.trace_id = std::move(request_.trace_id);
  record.span_id = std::move(request_.span_id);
  record.client_span = std::move(client_span_);
  record.is_sampled = is_sampled_;
  record.server_timing = response_.headers.get("Server-Timing").value_or("");
  record.peer_address = std::move(request_.peer_address);
  record.principal = std::move(request_.principal);
  record.method = std::move(head_.method);
  record.target = std::move(head_.target);
  record.route = path_template_;
  if (route != nullptr) {
    record.operation_id = route->operation_id;
    record.access = route->access;
  }
  record.session_id = std::move(request_.session_id);
  record.job_id = std::move(request_.job_id);
  record.role = request_.role;
  record.status = status;
  record.bytes_in = bytes_in_;
  record.bytes_out = bytes_out_;
  record.duration = std::chrono::duration_cast<std::chrono::microseconds>(took);
  record.error_code = std::move(error_code_);
  record.error_internal = std::move(error_internal_);
  context_.hooks.access(record);
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

void Exchange::read_trace() {
  const auto given = head_.headers.get("traceparent");
  if (!given && !context_.options.makes_traces) return;
  std::string span = core::random_hex(kSpanBytes);
  if (auto trace = read_traceparent(given, span)) {
    request_.trace_id = std::move(trace->trace_id);
    client_span_ = std::move(trace->client_span);
    is_sampled_ = trace->is_sampled;
    traceparent_ = std::move(trace->parent);
  } else if (context_.options.makes_traces) {
    request_.trace_id = core::random_hex(kTraceBytes);
    traceparent_ = "00-" + request_.trace_id + "-" + span + "-01";
  } else {
    return;
  }
  request_.span_id = std::move(span);
}

void Exchange::deny(const core::Error& error) {
  refusal_ = problem(error, request_);
  error_code_ = error.code().word();
  error_internal_ = error.internal();
  context_.metrics.rejected(error_code_);
}

void Exchange::refuse(const core::Error& error) {
  deny(error);
  close_ = true;
}

void Exchange::refuse_body(const core::Error& error) {
  // A limit of 0 is reported as the rule behind it.
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
  } catch (const std::bad_alloc&) {
    deny(no_memory());
  } catch (...) {
    deny(core::Error("internal", "something went wrong on our side"));
  }
  return Plan::kRunHere;
}

Exchange::Plan Exchange::plan_route() {
  cors_origin_ = context_.site.admit(head_);
  if (head_.path == "*") {
    refusal_ = options_answer({});
    return Plan::kRunHere;
  }
  RouteMatch match = context_.router.match(head_.method, head_.path);
  path_template_ = match.path_template;
  if (match.route == nullptr) {
    if (match.allow.empty()) {
      throw core::Error("not_found", "there is nothing at this path" + path_advice(context_.router, head_.path));
    }
    if (head_.method == "OPTIONS") {
      refusal_ = options_answer(std::move(match.allow));
      for (const auto& row : context_.router.routes()) {
        if (row->path != match.path_template) continue;
        for (const auto& [name, value] : row->options_fields) refusal_->headers.set(name, value);
      }
      if (!cors_origin_.empty()) answer_preflight(head_.headers, *refusal_);
    } else {
      deny(core::Error("method_not_allowed", "this path knows " + match.allow));
      refusal_->headers.add("Allow", match.allow);
    }
    return Plan::kRunHere;
  }
  const Route& route = *match.route;
  request_.route = &route;
  request_.captures = std::move(match.captures);
  if (!head_.raw_query.empty()) {
    request_.query = Query::parse(head_.raw_query);
    const auto pretty = request_.query.take("pretty");
    request_.pretty = pretty && *pretty != "0" && *pretty != "false";
  }
  request_.headers = std::move(head_.headers);
  if (route.access != Access::kOpen && context_.hooks.authenticate) context_.hooks.authenticate(request_);
  if (route.body == BodyPolicy::kJson || route.body == BodyPolicy::kInline) require_json(request_.headers);
  if (route.body == BodyPolicy::kForm) require_json_or_form(request_.headers);
  if (route.body == BodyPolicy::kInference) require_protocol_media(request_.headers);
  return plan_body(route);
}

Exchange::Plan Exchange::plan_body(const Route& route) {
  std::unique_ptr<BodyDigest> digest = BodyDigest::announced(
      request_.headers, is_part_of_upload(request_) ? BodyDigest::Body::kPart : BodyDigest::Body::kWhole);
  if (head_.framing == Framing::kNone) {
    if (digest) digest->check();
    request_.body_reader = context_.no_body;
    return after_body();
  }
  const std::string coding = request_.headers.joined("Content-Encoding");
  const bool small = head_.framing == Framing::kLength && coding.empty() && head_.content_length <= kSmallBody;
  core::MemoryReservation window(context_.options.memory, core::MemoryAccount::kRequests);
  // Those who have no name are many, or the only one.
  if (!small && !request_.principal.empty()) {
    const core::MemoryShareRef share = context_.shares.of(request_.principal);
    request_.memory.count_in(share);
    window.count_in(share);
  }
  std::unique_ptr<ContentDecoder> decoder;
  try {
    decoder = make_content_decoder(coding, std::move(window));
  } catch (const core::Error& error) {
    deny(error);
    refusal_->headers.add("Accept-Encoding", "gzip, deflate, zstd");
    return Plan::kRunHere;
  }
  const int64_t limit = limit_of(context_.options, route.body);
  if (route.body == BodyPolicy::kNone && head_.framing == Framing::kLength) {
    throw core::Error("malformed_request", "this operation takes no body");
  }
  if (head_.content_length > limit) {
    throw core::Error("body_too_large",
                      fmt::format("the body has {} bytes, at most {} are taken here", head_.content_length, limit));
  }
  pipeline_.emplace(head_, std::move(decoder), limit);
  pipeline_->expect(std::move(digest));
  // A client that waits for 100 Continue should be refused before it sends: only the handler of a stream can do that.
  const bool stream = route.body == BodyPolicy::kBulk || route.body == BodyPolicy::kInline ||
                      route.body == BodyPolicy::kForm || route.body == BodyPolicy::kValues ||
                      route.body == BodyPolicy::kInference || route.body == BodyPolicy::kProgram;
  return stream && (!small || head_.expect_continue) ? Plan::kStreamBody : Plan::kTakeBody;
}

Exchange::Plan Exchange::after_body() const {
  return refusal_ || request_.route->run_on == RunOn::kReactor ? Plan::kRunHere : Plan::kRunOnWorker;
}

bool Exchange::is_brief() const {
  return !refusal_ && taken_body_ != nullptr && request_.route->is_brief != nullptr &&
         request_.route->is_brief(request_, taken_body_->bytes());
}

void Exchange::give_body(std::string bytes) {
  taken_body_ = std::make_shared<MemoryBody>(std::move(bytes));
  request_.body_reader = taken_body_;
}

void Exchange::give_reader(std::shared_ptr<BodyReader> reader) { request_.body_reader = std::move(reader); }

Response Exchange::make_answer() {
  if (refusal_) return std::move(*refusal_);
  try {
    Response response = request_.route->handler(request_);
    if (response.status >= 200 && response.status <= 599) return response;
    error_internal_ = fmt::format("the handler's status is {}", response.status);
  } catch (const core::Error& error) {
    error_code_ = error.code().word();
    error_internal_ = error.internal();
    return problem(error, request_);
  } catch (const std::bad_alloc&) {
    error_code_ = "overloaded";
    return problem(no_memory(), request_);
  } catch (const std::exception& error) {
    error_internal_ = error.what();
    error_code_ = "internal";
    return problem(std::current_exception(), request_.request_id, request_.path);
  } catch (...) {
    error_internal_ = "an exception of unknown type";
  }
  error_code_ = "internal";
  return problem(core::Error("internal", "something went wrong on our side"), request_);
}

void Exchange::finish_answer(bool can_keep, std::string& head) {
  if (auto* stream = std::get_if<std::shared_ptr<EventStream>>(&response_.body)) {
    if (head_only_) {
      (*stream)->close();
      response_.body = std::string();
    } else if (open_stream_ = context_.metrics.open_stream(context_.options.event_streams); open_stream_ == nullptr) {
      (*stream)->close();
      response_ = problem(core::Error("overloaded", "too many event streams are open").with_retry_after(5), request_);
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
  hold_answer();
  shape_representation();
  if (context_.site.names_origins()) allow_origin(cors_origin_, response_);
  const std::optional<int64_t> size = body_size(response_);
  keep_alive_ = can_keep && head_.keep_alive && !close_ && !context_.draining.load(std::memory_order_relaxed);
  if (has_no_body(response_.status)) {
    response_.body = std::string();
  } else if (!size && head_.minor_version == 0) {
    keep_alive_ = false;  // the end of the connection is the end of the body
  }
  chunked_answer_ = !size && head_.minor_version > 0 && !has_no_body(response_.status);
  write_head(size, head);
  if (head_only_) response_.body = std::string();
}

void Exchange::hold_answer() {
  int64_t bytes = 0;
  if (const auto* text = std::get_if<std::string>(&response_.body)) {
    bytes = static_cast<int64_t>(text->capacity());
  } else if (const auto* pieces = std::get_if<MemoryPieces>(&response_.body)) {
    bytes = pieces->made_bytes;
  }
  if (bytes == 0) return;
  // What a request has changed is answered in any case, and so are probes; other reads may be repeated.
  const bool is_read = request_.method == "GET" || head_only_;
  if (!is_read || request_.route == nullptr || request_.route->access == Access::kOpen) {
    answer_memory_.grow_regardless(bytes);
    return;
  }
  try {
    answer_memory_.grow(bytes);
  } catch (const core::Error& error) {
    error_code_ = error.code().word();
    response_ = problem(error, request_);
  }
}

void Exchange::lay_out(std::string& text) {
  // Beside the text until it takes its place. Where there is no memory for it, the text is sent as it is.
  const size_t size = pretty_json_size(text);
  if (!answer_memory_.try_grow(static_cast<int64_t>(size))) return;
  text = pretty_json(text, size);
  answer_memory_.hold(static_cast<int64_t>(text.capacity()));
}

void Exchange::shape_representation() {
  // Refusals before routing have no headers.
  if (request_.headers.fields().empty() || std::holds_alternative<std::shared_ptr<EventStream>>(response_.body)) return;
  apply_conditions(request_, response_);
  apply_return_preference(request_, response_);
  if (auto* text = std::get_if<std::string>(&response_.body);
      request_.pretty && text != nullptr && response_.headers.get("Content-Type").value_or("").ends_with("json")) {
    lay_out(*text);
  }
  const bool digest =
      wants_digest(request_.headers, "Want-Repr-Digest") || wants_digest(request_.headers, "Want-Content-Digest");
  encode_content(request_, response_, digest, answer_memory_);
  if (digest) apply_digests(request_, response_);
}

void Exchange::write_head(std::optional<int64_t> size, std::string& out) const {
  out = context_.bridge.status_line(response_.status);
  bool has_nosniff = false;
  for (const auto& [name, value] : response_.headers.fields()) {
    if (is_ours(name)) continue;
    has_nosniff = has_nosniff || equal_ignoring_case(name, kNosniff);
    out.append(name).append(": ").append(value).append("\r\n");
  }
  if (chunked_answer_) {
    if (!head_only_) out.append("Transfer-Encoding: chunked\r\n");
  } else if (size && !has_no_body(response_.status)) {
    out.append("Content-Length: ").append(std::to_string(*size)).append("\r\n");
  }
  append_date(out);
  out.append("X-Request-Id: ").append(request_.request_id).append("\r\n");
  if (!traceparent_.empty()) out.append("traceparent: ").append(traceparent_).append("\r\n");
  if (!has_nosniff) out.append(kNosniff).append(": nosniff\r\n");
  if (!keep_alive_) {
    out.append("Connection: close\r\n");
  } else if (head_.minor_version == 0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

void Exchange::run(const std::function<bool()>& can_keep, std::string& head) {
  response_ = make_answer();
  // The answer needs memory of its own, and its client may take its time: what was asked is not kept for so long.
  request_.body_reader.reset();
  request_.memory = {};
  try {
    finish_answer(can_keep(), head);
  } catch (...) {
    // Out of memory: the shortest possible response. What the request has made, its client may ask for.
    keep_alive_ = false;
    chunked_answer_ = false;
    if (const auto* stream = std::get_if<std::shared_ptr<EventStream>>(&response_.body)) (*stream)->close();
    open_stream_.reset();
    response_ = Response{503, {}, std::string()};
    response_.error_code = "overloaded";
    head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  }
  // On a worker: it may take milliseconds.
  const bool may_wait = request_.route != nullptr && request_.route->run_on == RunOn::kWorker;
  if (may_wait && context_.options.memory != nullptr && context_.options.memory->is_trim_due()) ::malloc_trim(0);
}

void Exchange::cut_off(const core::Error& error) {
  error_code_ = error.code().word();
  error_internal_ = error.internal().empty() ? error.detail() : error.internal();
}

void Exchange::sent(int64_t bytes_out, std::chrono::steady_clock::time_point now) {
  sent_ = now;
  bytes_out_ = bytes_out;
}

}  // namespace meshd::api
