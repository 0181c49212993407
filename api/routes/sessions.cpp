// /v1/sessions: the order of a client's jobs, its log by page and as server-sent events, its barrier.
#include "api/codecs/effect_codec.h"
#include "api/http/preferences.h"
#include "api/json/json.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "api/server/events.h"

namespace meshd::api {
namespace {

constexpr int64_t kEventBatch = 256;
constexpr int64_t kEventBatchBytes = int64_t{256} << 10;  // of rows, or one row
// How long a barrier and the end of a session wait for jobs.
constexpr std::chrono::seconds kLongestWait{kLongestWaitSeconds};

struct SessionInput {
  std::optional<std::string> name;
  std::optional<std::string> on_error;
};

// How far each order of effects is.
struct SessionTokens {
  int64_t log = 0;
};

}  // namespace

template <>
const Schema<SessionInput>& schema() {
  static const Schema<SessionInput> kSchema{
      "SessionInput",
      {{"name", &SessionInput::name}, {"on_error", &SessionInput::on_error, {.words = {"continue", "halt"}}}}};
  return kSchema;
}

template <>
const Schema<SessionTokens>& schema() {
  static const Schema<SessionTokens> kSchema{"SessionTokens", {{"log", &SessionTokens::log, {.low = 0}}}};
  return kSchema;
}

template <>
const Schema<storage::SessionRow>& schema() {
  using Row = storage::SessionRow;
  static const Schema<Row> kSchema{
      "Session",
      {{"id", &Row::id},
       {"name", &Row::name},
       {"state", [](const Row& row) { return storage::to_string(row.state); }, {.words = {"open", "halted", "closed"}}},
       {"on_error", [](const Row& row) { return storage::to_string(row.on_error); }, {.words = {"continue", "halt"}}},
       {"halted_by", &Row::halted_by, {.low = 1}},
       {"jobs", [](const Row& row) { return row.next_job_number - 1; }, {.low = 0}},
       {"last_sequence", &Row::last_sequence, {.low = 0}},
       {"tokens", [](const Row& row) { return SessionTokens{row.last_sequence}; }},
       {"created", &Row::created},
       {"closed", &Row::closed}}};
  return kSchema;
}

Schemas session_schemas() {
  return {&schema<SessionInput>(), &schema<storage::SessionRow>(), &JsonCodec<Page<storage::SessionRow>>::of(),
          &JsonCodec<Page<EffectDocument>>::of()};
}

namespace {

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
std::string event_of(storage::EffectRow row, bool base64) {
  const EffectDocument document = effect_document(row, base64);
  row.values = {};
  return format_event(std::to_string(document.sequence), "effect",
                      [&](std::string& out) { JsonCodec<EffectDocument>::append(out, document); });
}

Response stream_events(Request& request, Services& services) {
  request.query.require_known({"after", "encoding"});
  const storage::SessionRow session = services.sessions.get(request.capture("id"), request.principal);
  const bool base64 = wants_base64(request);
  auto stream = std::make_shared<EventStream>(core::MemoryReservation(services.memory, core::MemoryAccount::kEvents));
  stream->set_refill(
      [&log = services.log, id = session.id, cursor = cursor_of(request), base64](EventStream& out) mutable {
        while (out.has_room()) {
          auto batch = next_effects(log, id, cursor, out);
          if (batch.empty()) return;
          for (storage::EffectRow& row : batch) {
            const int64_t sequence = row.sequence;
            if (!out.send(event_of(std::move(row), base64))) return;
            cursor = sequence;
          }
        }
      });
  auto subscription = services.log.subscribe(session.id, [weak = std::weak_ptr(stream)] {
    if (const auto alive = weak.lock()) alive->wake();
  });
  stream->on_close([subscription = std::move(subscription)]() mutable { subscription.reset(); });
  return events(stream);
}

}  // namespace

bool wants_base64(const Request& request) {
  const auto encoding = request.query.get("encoding");
  if (encoding && *encoding != "json" && *encoding != "base64")
    throw core::Error("invalid_query", "encoding: expected json or base64");
  return encoding && *encoding == "base64";
}

std::vector<Route> session_routes(Services& services) {
  return {
      {"POST", "/v1/sessions", "createSession", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         std::string body = body_text(request, BodyPolicy::kJson);
         const RepeatedRequest repeated(request, services, body);
         const auto made = [&request](const storage::SessionRow& row) {
           request.session_id = row.id;
           return json_of(201, row).with("Location", "/v1/sessions/" + row.id);
         };
         if (repeated.made())
           return repeated.again([&] { return made(services.sessions.get(*repeated.made(), request.principal)); });
         const auto in = read_json<SessionInput>(
             parse_body(request, body.empty() ? "{}" : std::move(body), BodyPolicy::kJson), "invalid_request");
         return made(services.sessions.create(
             request.principal, in.name.value_or(""),
             in.on_error == "halt" ? storage::OnError::kHalt : storage::OnError::kContinue, repeated.key()));
       }},
      {"GET", "/v1/sessions", "listSessions", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         auto page = services.sessions.list(request.principal, page_of(request));
         return list_response(request, Page<storage::SessionRow>{std::move(page.items), std::move(page.next)});
       }},
      {"GET", "/v1/sessions/{id}", "getSession", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         return json_of(200, services.sessions.get(request.capture("id"), request.principal));
       }},
      {"DELETE", "/v1/sessions/{id}", "deleteSession", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         services.jobs.close_session(request.capture("id"), request.principal, kLongestWait, request.waiter);
         return no_content();
       }},
      {"POST", "/v1/sessions/{id}:resume", "resumeSession", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const std::string& id = request.capture("id");
         services.jobs.resume_session(id, request.principal);
         return json_of(200, services.sessions.get(id, request.principal));
       }},
      {"GET", "/v1/sessions/{id}/effects", "listEffects", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         request.query.require_known({"after", "limit", "encoding"});
         const storage::SessionRow session = services.sessions.get(request.capture("id"), request.principal);
         const int64_t after = request.query.integer("after", 0, 0, INT64_MAX);
         const int64_t limit = request.query.integer("limit", 100, 1, storage::kMaxPageSize);
         const bool base64 = wants_base64(request);
         PageBudget budget(request);
         const auto rows =
             services.log.after(session.id, after, limit, [&](int64_t bytes) { return budget.admit(bytes); });
         Page<EffectDocument> page;
         for (const storage::EffectRow& row : rows) page.items.push_back(effect_document(row, base64));
         if (static_cast<int64_t>(rows.size()) == limit || budget.is_full())
           page.next = std::to_string(rows.back().sequence);
         return list_response(request, page, "after");
       }},
      {"GET", "/v1/sessions/{id}/events", "streamEvents", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return stream_events(request, services); }},
      {"POST", "/v1/sessions/{id}/barrier", "sessionBarrier", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const std::string id = services.sessions.get(request.capture("id"), request.principal).id;
         services.jobs.barrier(id, kLongestWait, request.waiter);
         return json_of(200, services.sessions.get(id, request.principal));
       }},
  };
}

}  // namespace meshd::api
