// Sends spans of requests and jobs to a collector: OTLP over HTTP, as JSON (OpenTelemetry protocol 1.x, POST
// .../v1/traces).
//
// A request is a span of kind SERVER, child of the client's where it sent `traceparent`; the stages of a run (parse,
// lower, bind, queue, run, commit and the others of Server-Timing) are its children, end to end. A job in the
// background is a span of its own, child of the request that brought it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/server/server.h"
#include "service/core/clock.h"
#include "service/jobs/job_runner.h"
#include "service/outbound/post_pool.h"

namespace meshd::api {

struct Span {
  std::string trace_id, span_id;
  std::string parent_id = {};  ///< empty: a root
  std::string name;
  bool is_server = false;  ///< of a request; else internal
  core::WallTime start, end;
  std::vector<std::pair<std::string_view, std::string>> texts = {};
  std::vector<std::pair<std::string_view, int64_t>> numbers = {};
  std::string error = {};  ///< empty: none
};

/// Spans of an answered request: none where nobody records its trace, and none of what anybody may ask (probes,
/// documents).
std::vector<Span> spans_of(const AccessRecord& record, core::WallTime now);
/// Spans of a job in the background; none of others, which their requests have.
std::vector<Span> spans_of(const jobs::JobEnd& end, core::WallTime now);
/// The body of an export.
std::string otlp_json(const std::vector<Span>& spans, std::string_view version);

struct ExportCounters {
  int64_t exported = 0;
  int64_t dropped = 0;  ///< the queue was full, or the collector did not take them
};

/// Any thread. add() does not wait.
class TraceExporter {
 public:
  /// `endpoint`: where to POST, http://127.0.0.1:4318/v1/traces; empty: everything is dropped uncounted. Throws
  /// core::Error for one that cannot be posted to.
  TraceExporter(std::string endpoint, std::string version);
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

  [[nodiscard]] bool is_on() const { return !endpoint_.empty(); }
  void add(std::vector<Span> spans);
  /// Posts what is queued, unless a post is under way: called periodically.
  void flush();
  /// Waits until everything is posted or the time is over: at the end of the server.
  void finish(std::chrono::milliseconds time);
  [[nodiscard]] ExportCounters counters() const;

 private:
  const std::string endpoint_, version_;
  mutable std::mutex mutex_;  ///< of the members below
  std::condition_variable ended_;
  std::vector<Span> queue_;
  bool is_under_way_ = false;
  ExportCounters counters_;
  std::unique_ptr<outbound::PostPool> pool_;  ///< null: off. The last member: ending it calls back
};

}  // namespace meshd::api
