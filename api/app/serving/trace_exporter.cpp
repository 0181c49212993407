#include "api/app/serving/trace_exporter.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/fields/trace_context.h"
#include "service/core/ids.h"

namespace meshd::api {
namespace {

constexpr size_t kQueued = 4'096;       // spans; more are dropped
constexpr size_t kExported = 1'024;     // spans of one post
constexpr size_t kLongestPath = 2'048;  // of a span: what is not routed may be as long as a head
constexpr int kSpanBytes = 8;
constexpr int kTraceBytes = 16;
constexpr int kKindInternal = 1, kKindServer = 2;  // enum SpanKind of trace.proto
constexpr int kStatusError = 2;                    // enum StatusCode
constexpr int kFirstServerError = 500;

std::chrono::microseconds from_ms(double ms) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::duration<double, std::milli>(ms));
}

// The stages of Server-Timing, in order: "receive;dur=0.0100, ..., total;dur=1.2000".
std::vector<std::pair<std::string_view, double>> stages_of(std::string_view timing) {
  std::vector<std::pair<std::string_view, double>> out;
  constexpr std::string_view kDuration = ";dur=";
  while (!timing.empty()) {
    const size_t comma = std::min(timing.find(", "), timing.size());
    const std::string_view stage = timing.substr(0, comma);
    timing.remove_prefix(std::min(comma + 2, timing.size()));
    const size_t at = stage.find(kDuration);
    if (at == std::string_view::npos) continue;
    const std::string_view digits = stage.substr(at + kDuration.size());
    double ms = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), ms).ec != std::errc()) continue;
    if (stage.substr(0, at) != "total") out.emplace_back(stage.substr(0, at), ms);
  }
  return out;
}

// Children of a span, end to end from its start. Stages that took no time are left out.
void add_stages(std::vector<Span>& spans, const std::vector<std::pair<std::string_view, double>>& stages) {
  const Span parent = spans.front();
  core::WallTime at = parent.start;
  for (const auto& [name, ms] : stages) {
    const core::WallTime end = at + from_ms(ms);
    if (end == at) continue;
    spans.push_back({.trace_id = parent.trace_id,
                     .span_id = core::random_hex(kSpanBytes),
                     .parent_id = parent.span_id,
                     .name = std::string(name),
                     .start = at,
                     .end = end});
    at = end;
  }
}

nlohmann::json attribute(std::string_view key, const char* type, const std::string& value) {
  return {{"key", key}, {"value", {{type, value}}}};
}

// 64-bit integers are strings in the JSON of protobuf.
std::string nanoseconds(core::WallTime time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

nlohmann::json span_json(const Span& span) {
  nlohmann::json attributes = nlohmann::json::array();
  for (const auto& [key, value] : span.texts) {
    if (!value.empty()) attributes.push_back(attribute(key, "stringValue", value));
  }
  for (const auto& [key, value] : span.numbers) attributes.push_back(attribute(key, "intValue", std::to_string(value)));
  nlohmann::json out = {{"traceId", span.trace_id},
                        {"spanId", span.span_id},
                        {"name", span.name},
                        {"kind", span.is_server ? kKindServer : kKindInternal},
                        {"startTimeUnixNano", nanoseconds(span.start)},
                        {"endTimeUnixNano", nanoseconds(span.end)},
                        {"attributes", std::move(attributes)}};
  if (!span.parent_id.empty()) out["parentSpanId"] = span.parent_id;
  if (!span.error.empty()) out["status"] = {{"code", kStatusError}, {"message", span.error}};
  return out;
}

}  // namespace

std::vector<Span> spans_of(const AccessRecord& record, core::WallTime now) {
  if (record.span_id.empty() || !record.is_sampled || record.access == Access::kOpen) return {};
  Span span{.trace_id = record.trace_id,
            .span_id = record.span_id,
            .parent_id = record.client_span,
            .name = record.route.empty() ? record.method : record.method + " " + record.route,
            .is_server = true,
            .start = now - record.duration,
            .end = now};
  span.texts = {{"http.request.method", record.method},
                {"http.route", record.route},
                {"url.path", record.target.substr(0, std::min(record.target.find('?'), kLongestPath))},
                {"client.address", record.peer_address},
                {"enduser.id", record.principal},
                {"error.type", record.error_code},
                {"meshd.operation", record.operation_id},
                {"meshd.session", record.session_id},
                {"meshd.job", record.job_id},
                {"meshd.request", record.request_id}};
  span.numbers = {{"http.response.status_code", record.status},
                  {"http.request.body.size", record.bytes_in},
                  {"http.response.body.size", record.bytes_out}};
  if (record.status >= kFirstServerError) span.error = record.error_code;
  if (record.status == 0) span.error = "the client disconnected";
  std::vector<Span> out{std::move(span)};
  add_stages(out, stages_of(record.server_timing));
  return out;
}

std::vector<Span> spans_of(const jobs::JobEnd& end, core::WallTime now) {
  if (!end.in_background) return {};
  const auto request = read_traceparent(end.traceparent, "");
  Span span{.trace_id = request ? request->trace_id : core::random_hex(kTraceBytes),
            .span_id = core::random_hex(kSpanBytes),
            .parent_id = request ? request->client_span : "",
            .name = "job",
            .start = now - from_ms(end.job_ms),
            .end = now};
  span.texts = {{"meshd.job", end.row.id}, {"meshd.session", end.row.session}, {"enduser.id", end.row.principal}};
  if (end.error != nullptr) {
    span.error = end.error->code().word();
    span.texts.emplace_back("error.type", span.error);
  }
  std::vector<Span> out{std::move(span)};
  const jobs::JobTimings& took = end.timings;
  // The stages of a job that did not come to its end are as long as they came; what is left before them is the wait for
  // jobs before it.
  const double known = took.lower_ms + took.bind_ms + took.queue_ms + took.run_ms + took.commit_ms;
  add_stages(out, {{"wait", std::max(0.0, end.job_ms - known)},
                   {"lower", took.lower_ms},
                   {"bind", took.bind_ms},
                   {"queue", took.queue_ms},
                   {"run", took.run_ms},
                   {"commit", took.commit_ms}});
  return out;
}

std::string otlp_json(const std::vector<Span>& spans, std::string_view version) {
  nlohmann::json list = nlohmann::json::array();
  for (const Span& span : spans) list.push_back(span_json(span));
  const nlohmann::json scope = {{"name", "meshd"}, {"version", version}};
  using List = nlohmann::json::array_t;
  const nlohmann::json resource = {
      {"attributes", List{attribute("service.name", "stringValue", "meshd"),
                          attribute("service.version", "stringValue", std::string(version))}}};
  const nlohmann::json of_scope = {{"scope", scope}, {"spans", std::move(list)}};
  const nlohmann::json of_resource = {{"resource", resource}, {"scopeSpans", List{of_scope}}};
  const nlohmann::json document = {{"resourceSpans", List{of_resource}}};
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TraceExporter::TraceExporter(std::string endpoint, std::string version)
    : endpoint_(std::move(endpoint)), version_(std::move(version)) {
  if (endpoint_.empty()) return;
  const outbound::AddressGuard any({*outbound::parse_network("::/0")});  // the operator has named it
  if (const auto mistake = outbound::mistake_of_url(endpoint_, any))
    throw core::Error("internal", "--otlp-endpoint: " + *mistake);
  pool_ = std::make_unique<outbound::PostPool>(any);
}

TraceExporter::~TraceExporter() = default;

void TraceExporter::add(std::vector<Span> spans) {
  if (!is_on() || spans.empty()) return;
  bool is_much = false;
  {
    const std::lock_guard held(mutex_);
    if (queue_.size() + spans.size() > kQueued) {
      counters_.dropped += static_cast<int64_t>(spans.size());
      return;
    }
    std::move(spans.begin(), spans.end(), std::back_inserter(queue_));
    is_much = queue_.size() >= kExported;
  }
  if (is_much) flush();
}

void TraceExporter::flush() {
  std::vector<Span> spans;
  {
    const std::lock_guard held(mutex_);
    if (is_under_way_ || queue_.empty()) return;
    const auto end = queue_.begin() + static_cast<ptrdiff_t>(std::min(kExported, queue_.size()));
    spans.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
    is_under_way_ = true;
  }
  outbound::PostRequest request{endpoint_, {"Content-Type: application/json", "User-Agent: meshd"}, {}};
  request.body = otlp_json(spans, version_);
  pool_->post(std::move(request), [this, count = static_cast<int64_t>(spans.size())](const outbound::PostOutcome& got) {
    const std::lock_guard held(mutex_);
    (got.is_accepted() ? counters_.exported : counters_.dropped) += count;
    is_under_way_ = false;
    ended_.notify_all();
  });
}

void TraceExporter::finish(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  for (;;) {
    flush();
    std::unique_lock held(mutex_);
    if (!is_under_way_) return;
    if (!ended_.wait_until(held, until, [this] { return !is_under_way_; })) return;
  }
}

ExportCounters TraceExporter::counters() const {
  const std::lock_guard held(mutex_);
  return counters_;
}

}  // namespace meshd::api
