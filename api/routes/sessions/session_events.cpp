// GET /v1/sessions/{id}/events: the log as server-sent events, and the progress of jobs that run.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/codecs/runs/effect_codec.h"
#include "api/codecs/runs/job_answer_codec.h"
#include "api/http/characters.h"
#include "api/http/events.h"
#include "api/json/json.h"
#include "api/routes/routes.h"
#include "api/routes/sessions/session_events.h"

namespace meshd::api {
namespace {

constexpr int64_t kEventBatch = 256;
constexpr int64_t kEventBatchBytes = int64_t{256} << 10;  // of rows, or one row
// Between two events of one job's progress; jobs that run shorter have none.
constexpr std::chrono::milliseconds kProgressInterval{1000};
constexpr std::chrono::milliseconds kProgressSlack{100};  // the reactor's clock is coarse

// Where a stream resumes: Last-Event-ID of the client, else ?after=.
int64_t cursor_of(const Request& request) {
  const auto last = request.headers.get("Last-Event-ID");
  if (!last || last->empty()) return request.query.integer("after", 0, 0, INT64_MAX);
  if (const auto cursor = whole_number(*last)) return *cursor;
  throw core::Error("invalid_request", "Last-Event-ID: expected the id of an event of this stream, a whole number");
}

/// The entries behind `after` that the stream takes next. Throws memory_full, which ends it.
std::vector<storage::EffectRow> next_effects(effects::EffectLog& log, const std::string& session, int64_t after,
                                             EventStream& out) {
  int64_t stored = 0;
  return log.after(session, after, kEventBatch, [&](int64_t bytes) {
    const bool is_first = stored == 0;
    stored += bytes;
    if (!is_first) return stored <= kEventBatchBytes;
    if (!out.admit(std::max(stored, kEventBatchBytes) * kMemoryPerStoredByte))
      throw core::Error("memory_full", "other event streams hold the memory that the next event needs");
    return true;
  });
}

/// Made in place: of a large entry nothing is there twice but its values.
std::string event_of(storage::EffectRow row, ValueEncoding encoding) {
  const EffectDocument document = effect_document(row, encoding);
  row.values = {};
  return format_event(std::to_string(document.sequence), "effect",
                      [&](std::string& out) { JsonCodec<EffectDocument>::append(out, document); });
}

/// The progress of a session's jobs as events of one stream.
class ProgressEvents {
 public:
  ProgressEvents(jobs::JobRunner& jobs, std::string session) : jobs_(jobs), session_(std::move(session)) {}

  /// Sends where each job is that has run for a while and got on since.
  void send(EventStream& out) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + kProgressInterval - kProgressSlack;
    std::map<std::string, Reported> reported;
    for (const jobs::JobView& view : jobs_.running(session_)) {
      if (view.progress->running_for < kProgressInterval) continue;
      const Reported now_at{view.progress->steps_done, view.effect_count, view.waits.has_value()};
      const auto before = reported_.find(view.row.id);
      const bool is_news = before == reported_.end() || before->second != now_at;
      reported.emplace(view.row.id, now_at);
      if (!is_news || !out.has_room()) continue;
      out.send(format_event({}, "progress", [&](std::string& text) {
        JsonCodec<JobProgressEvent>::append(text, JobProgressEvent{view});
      }));
    }
    reported_ = std::move(reported);
  }

 private:
  using Reported = std::tuple<int64_t, int64_t, bool>;

  jobs::JobRunner& jobs_;
  const std::string session_;
  std::chrono::steady_clock::time_point next_;
  std::map<std::string, Reported> reported_;
};

}  // namespace

Response stream_events(Request& request, Services& services) {
  request.query.require_known({"after", "encoding"});
  const storage::SessionRow session = services.sessions.get(request.capture("id"), request.principal);
  const ValueEncoding encoding = encoding_of(request);
  auto stream = std::make_shared<EventStream>(core::MemoryReservation(services.memory, core::MemoryAccount::kEvents));
  const auto queue = services.sessions.queue(session.id);
  stream->set_refill([&log = services.log, &sessions = services.sessions, queue, id = session.id,
                      cursor = cursor_of(request), encoding,
                      progress = ProgressEvents(services.jobs, session.id)](EventStream& out) mutable {
    while (out.has_room()) {
      auto batch = next_effects(log, id, cursor, out);
      if (batch.empty() && queue->is_closing() && !sessions.is_there(id)) {
        out.send(format_event({}, "closed", "{}"));
        return out.finish();
      }
      if (batch.empty()) return progress.send(out);
      for (storage::EffectRow& row : batch) {
        const int64_t sequence = row.sequence;
        if (!out.send(event_of(std::move(row), encoding))) return;
        cursor = sequence;
      }
    }
  });
  stream->set_poll(kProgressInterval, [queue] { return queue->open_count() > 0; });
  auto subscription = services.log.subscribe(session.id, [weak = std::weak_ptr(stream)] {
    if (const auto alive = weak.lock()) alive->wake();
  });
  stream->on_close([subscription = std::move(subscription)]() mutable { subscription.reset(); });
  return events(stream);
}

}  // namespace meshd::api
