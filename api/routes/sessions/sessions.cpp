// /v1/sessions: the order of a client's jobs, its log by page and as server-sent events, its barrier.
#include "api/codecs/runs/effect_codec.h"
#include "api/codecs/runs/job_request_codec.h"
#include "api/fields/preferences.h"
#include "api/json/json.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "api/routes/sessions/effect_file.h"
#include "api/routes/sessions/session_events.h"

namespace meshd::api {
namespace {

// How long a barrier and the end of a session wait for jobs.
constexpr std::chrono::seconds kLongestWait{kLongestWaitSeconds};

struct SessionInput {
  std::optional<std::string> name;
  std::optional<std::string> on_error;
  std::optional<std::string> effects;
};

// How far each order of effects is.
struct SessionTokens {
  int64_t log = 0;
};

}  // namespace

template <>
Schema<SessionInput> make_schema() {
  return {"SessionInput",
          {{"name", &SessionInput::name, {.longest = 1'024}},
           {"on_error", &SessionInput::on_error, {.words = {"continue", "halt"}}},
           {"effects", &SessionInput::effects, {.words = kEffectModes}}}};
}

template <>
Schema<SessionTokens> make_schema() {
  return {"SessionTokens", {{"log", &SessionTokens::log, {.low = 0}}}};
}

template <>
Schema<storage::SessionRow> make_schema() {
  using Row = storage::SessionRow;
  return {
      "Session",
      {{"id", &Row::id},
       {"name", &Row::name},
       {"state", [](const Row& row) { return storage::to_string(row.state); }, {.words = {"open", "halted", "closed"}}},
       {"on_error", [](const Row& row) { return storage::to_string(row.on_error); }, {.words = {"continue", "halt"}}},
       {"effects", [](const Row& row) { return storage::to_string(row.effects); }, {.words = kEffectModes}},
       {"halted_by", &Row::halted_by, {.low = 1}},
       {"jobs", [](const Row& row) { return row.next_job_number - 1; }, {.low = 0}},
       {"last_sequence", &Row::last_sequence, {.low = 0}},
       {"tokens", [](const Row& row) { return SessionTokens{row.last_sequence}; }},
       {"created", &Row::created},
       {"closed", &Row::closed}}};
}

Schemas session_schemas() {
  return {&schema<SessionInput>(), &schema<storage::SessionRow>(), &JsonCodec<Page<storage::SessionRow>>::of(),
          &JsonCodec<Page<EffectDocument>>::of()};
}

ValueEncoding encoding_of(const Request& request) {
  const std::string_view word = request.query.get("encoding").value_or("json");
  if (word == "json") return ValueEncoding::kJson;
  if (word == "base64") return ValueEncoding::kBase64;
  if (word == "none") return ValueEncoding::kNone;
  throw core::Error("invalid_query", "encoding: expected json, base64 or none");
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
         return made(
             services.sessions.create(request.principal, in.name.value_or(""),
                                      in.on_error == "halt" ? storage::OnError::kHalt : storage::OnError::kContinue,
                                      effect_mode_of(in.effects.value_or("atomic")), repeated.key()));
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
         const RepeatedRequest repeated(request, services, "");
         const auto shown = [&] { return json_of(200, services.sessions.get(id, request.principal)); };
         // It may be halted again by now: to go on would pass over a failure that the client has not seen.
         if (repeated.made()) return repeated.again(shown);
         services.jobs.resume_session(id, request.principal, repeated.key());
         return shown();
       }},
      {"GET", "/v1/sessions/{id}/effects", "listEffects", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         request.query.require_known({"after", "limit", "encoding"});
         const storage::SessionRow session = services.sessions.get(request.capture("id"), request.principal);
         const int64_t after = request.query.integer("after", 0, 0, INT64_MAX);
         const int64_t limit = request.query.integer("limit", 100, 1, storage::kMaxPageSize);
         const WantedValues wanted(request);
         PageBudget budget(request, wanted.memory_per_byte());
         const auto rows =
             services.log.after(session.id, after, limit, [&](int64_t bytes) { return budget.admit(bytes); });
         Page<EffectDocument> page;
         for (const storage::EffectRow& row : rows) page.items.push_back(effect_document(row, wanted.encoding));
         if (static_cast<int64_t>(rows.size()) == limit || budget.is_full())
           page.next = std::to_string(rows.back().sequence);
         return send_page(
             request, services, page, wanted, [](const auto& item) { return item.sequence; },
             [](const auto& item) -> const auto& { return item.values; });
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
