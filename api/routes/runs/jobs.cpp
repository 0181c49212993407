// POST /v1/run, /v1/sessions/{id}/jobs and /v1/jobs: one decoder and one response for all of them.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "api/codecs/runs/decoded_runs.h"
#include "api/codecs/runs/job_request_codec.h"
#include "api/fields/conditions.h"
#include "api/fields/preferences.h"
#include "api/http/characters.h"
#include "api/http/problem.h"
#include "api/json/json.h"
#include "api/routes/document_body.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "api/routes/runs/run_answer.h"
#include "api/routes/waiting.h"
#include "service/core/checked_math.h"
#include "service/core/ids.h"

namespace meshd::api {
namespace {

using storage::JobState;

constexpr size_t kJobIdSize = 40;  // job_ and a UUID

// `principal` outlives the context.
JobContext context_of(Services& services, MeshFinder& meshes, const std::string& principal) {
  JobContext out{services.arrays, services.programs, services.compiler, services.pool,
                 meshes,          nullptr,           services.processes};
  out.result_array = [&services, &principal](const JobResultRef& ref) {
    return services.jobs.result_array(ref.job, ref.result, principal);
  };
  return out;
}

using Clock = std::chrono::steady_clock;

// A finished job's response, as stored for the first request.
Response answer_of(const jobs::JobView& view, const Request& request) {
  if (view.row.state == JobState::kDone) return json(200, view.row.answer);
  const core::Error error(core::error_code_from_word(view.row.error_code), view.row.error_detail);
  return problem(error, request);
}

std::optional<Response> replay(Request& request, const std::string& key, const std::string& fingerprint,
                               Services& services) {
  const auto view =
      services.jobs.find_repeated(request.principal, request.route->operation_id, key, fingerprint, request.memory);
  if (!view) return std::nullopt;
  request.session_id = view->row.session;
  request.job_id = view->row.id;
  const std::string location = "/v1/jobs/" + view->row.id;
  if (!view->is_over()) {
    const core::Error error("idempotency_in_progress",
                            "the first request with this key is still running: job " + view->row.id);
    return problem(error, request).with("Location", location);
  }
  return answer_of(*view, request).with("Idempotency-Replayed", "true").with("Location", location);
}

Response accepted(const jobs::JobView& view, const Preferences& preferences) {
  Response response =
      json_of(202, JobDocument{view}).with("Location", "/v1/jobs/" + view.row.id).with("Retry-After", "1");
  if (preferences.respond_async) note_applied(response, "respond-async");
  if (preferences.wait_seconds) note_applied(response, fmt::format("wait={}", *preferences.wait_seconds));
  return response;
}

// Changes with whatever GET shows of the job.
std::string job_etag(const jobs::JobView& view) {
  std::string out = fmt::format(R"("{}.{}.{})", view.row.id, storage::to_string(view.row.state), view.row.attempt);
  if (view.progress && !view.is_over()) {
    out += fmt::format(".{}.{}.{}.{}", view.progress->steps_done, view.progress->line, view.effect_count,
                       std::chrono::duration_cast<std::chrono::milliseconds>(view.progress->running_for).count());
  }
  return out + R"(")";
}

// A field of an object; null where it is no string.
const std::string* string_in(const Json& object, std::string_view field) {
  const Json* value = object.find(field);
  return value == nullptr ? nullptr : value->as<std::string>();
}

// The session that a body names, if it does.
std::string session_in(const Json& document) {
  const std::string* id = string_in(document, "session");
  return id == nullptr ? std::string() : *id;
}

// Of the text of the program that a body brings, if it does.
size_t text_bytes_in(const Json& document) {
  const Json* program = document.find("program");
  const std::string* text = program == nullptr ? nullptr : string_in(*program, "text");
  return text == nullptr ? 0 : text->size();
}

/// A request's body as a job.
struct Submission {
  jobs::JobRequest job;
  /// Where the document was decoded before, or will be decoded from the next time; null: nowhere.
  std::shared_ptr<DecodedRuns::Entry> decoded;

  [[nodiscard]] jobs::ResultEncoder encoder() const {
    return [form = job.form](const jobs::JobResult& result) { return encode_result(result, form); };
  }
};

Submission read_submission(Request& request, Services& services, DecodedRuns& decoded, DocumentBody& body,
                           const std::string& path_session) {
  const auto start = services.clock.steady();
  MeshFinder meshes(services.meshes, request.principal);
  JobContext context = context_of(services, meshes, request.principal);
  context.files = body.files ? &*body.files : nullptr;
  Submission out;
  const auto take = [&](jobs::JobRequest read) {
    out.job = std::move(read);
    out.job.parse_ms = std::chrono::duration<double, std::milli>(services.clock.steady() - start).count();
  };
  if (path_session.empty()) out.decoded = decoded.find(request.principal, *body.document);
  if (out.decoded != nullptr) {
    if (auto again = decode_again(*out.decoded->run, context)) {
      take(std::move(*again));
      return out;
    }
  }
  // What it takes ends with this call: the request may wait long for its job.
  core::MemoryReservation artifact(services.memory, core::MemoryAccount::kRequests);
  context.memory = &artifact;
  const int64_t before = request.memory.bytes();
  const Json document = Json::parse(body.document, kInlineLimits, &request.memory);
  const std::shared_ptr<void> ends(
      nullptr, [&request, bytes = request.memory.bytes() - before](void*) { request.memory.shrink(bytes); });
  mesh::Mesh session_mesh;
  if (const std::string session = path_session.empty() ? session_in(document) : path_session; !session.empty()) {
    // Throws where the caller has no such session.
    session_mesh = services.sessions.mesh_stack(session, request.principal).current();
    context.session_mesh = &session_mesh;
  }
  std::shared_ptr<DecodedRun> run;
  const bool may_be_kept =
      path_session.empty() && DecodedRuns::may_come_again(body.document->size(), text_bytes_in(document));
  take(decode_job(document, request.principal, path_session, context, may_be_kept ? &run : nullptr));
  out.decoded = run == nullptr ? nullptr : decoded.keep(request.principal, *body.document, std::move(run));
  return out;
}

// How many more jobs of the principal may wait (draft-ietf-httpapi-ratelimit-headers).
void note_rate_limit(Response& response, const Request& request, Services& services) {
  const jobs::QueueRoom room = services.jobs.queue_room(request.principal);
  response.headers.set("RateLimit-Policy", fmt::format(R"("jobs";q={};qu="concurrent-requests")", room.limit));
  response.headers.set("RateLimit", fmt::format(R"("jobs";r={})", room.left));
}

// What `answer` gives, or where it has no memory the refusal with the job's place.
template <typename Answer>
Response after_accepting(const Request& request, const std::string& id, Answer&& answer) {
  try {
    return answer();
  } catch (const core::Error& error) {
    if (error.code() != core::ErrorCode("memory_full") && error.code() != core::ErrorCode("body_too_large")) throw;
    return problem(error, request).with("Location", "/v1/jobs/" + id);
  }
}

// Of the arguments that came with the request.
int64_t bytes_of_values(const jobs::JobRequest& job) {
  int64_t bytes = 0;
  for (const jobs::Argument& argument : job.arguments) {
    const auto* value = std::get_if<tensor::DenseValue>(&argument);
    if (value != nullptr) bytes = core::checked_add(bytes, static_cast<int64_t>(value->bytes().size()));
  }
  return bytes;
}

// In the background; 202 when it is not over in the time that the client would wait.
Response submit_in_background(Request& request, Services& services, Submission submission,
                              const Preferences& preference) {
  std::string id;
  try {
    jobs::ResultEncoder encoder = submission.encoder();
    id = services.jobs.start(std::move(submission.job), std::move(encoder));
  } catch (const core::Error& error) {
    if (error.code() != core::ErrorCode("queue_full")) throw;
    Response refused = problem(error, request);
    note_rate_limit(refused, request, services);
    return refused;
  }
  request.job_id = id;
  // The job is accepted: its client learns of it, whatever else there is no memory for.
  Response response = after_accepting(request, id, [&] {
    if (preference.wait_seconds) {
      const jobs::JobView view = services.jobs.wait(
          id, request.principal, std::chrono::seconds(*preference.wait_seconds), request.waiter, request.memory);
      if (view.is_over()) {
        return answer_of(view, request)
            .with("Location", "/v1/jobs/" + id)
            .with("Preference-Applied", fmt::format("wait={}", *preference.wait_seconds));
      }
      return accepted(view, preference);
    }
    core::MemoryReservation uncounted;  // a job that is not over has little in its row
    return accepted(services.jobs.view(id, request.principal, uncounted), preference);
  });
  note_rate_limit(response, request, services);
  return response;
}

Response submit(Request& request, Services& services, DecodedRuns& decoded, const std::string& path_session) {
  RequestTimes times;
  times.received = request.received;
  times.handled = Clock::now();
  DocumentBody body = read_document_body(request, services);
  const std::string key = idempotency_key_of(request);
  std::string fingerprint;
  if (!key.empty()) {
    fingerprint = body.fingerprint(request.path);
    if (auto known = replay(request, key, fingerprint, services)) return std::move(*known);
  }
  const Preferences preference = preferences_of(request);
  const bool background = preference.respond_async || preference.wait_seconds.has_value();
  Submission submission = read_submission(request, services, decoded, body, path_session);
  // Files of a form are counted already.
  if (!body.files) request.memory.grow(bytes_of_values(submission.job));
  request.session_id = submission.job.session;
  if (!request.span_id.empty()) submission.job.traceparent = "00-" + request.trace_id + "-" + request.span_id + "-01";
  submission.job.idempotency_route = request.route->operation_id;
  submission.job.idempotency_key = key;
  submission.job.idempotency_fingerprint = fingerprint;
  if (background) return submit_in_background(request, services, std::move(submission), preference);
  const std::optional<DataForm> file = results_file(request, submission.job);
  submission.job.form.is_file = file.has_value();
  times.decoded = Clock::now();
  const jobs::ResultEncoder encode = submission.encoder();
  const jobs::ResultForm form = submission.job.form;
  // Places in the program of a run that was not even planned.
  const jobs::JobResult result = core::in_text(
      {}, "/program", [&] { return services.jobs.run(std::move(submission.job), encode, request.waiter); });
  times.done = Clock::now();
  if (submission.decoded != nullptr) {
    submission.decoded->brief_plan.with([&](auto& plan) { plan = result.is_brief ? result.plan : compile::PlanRef(); });
    submission.decoded->is_shared.store(result.stats.handoffs > 0, std::memory_order_relaxed);
  }
  Response response = file ? send_results(request, services, result, form, *file) : json(200, encode(result));
  times.encoded = Clock::now();
  response.headers.set("Server-Timing", server_timing(result.timings, times));
  request.job_id = result.job;
  if (!result.job.empty()) response.headers.set("Location", "/v1/jobs/" + result.job);
  return response;
}

// PUT with a name of the client's: the same request again makes nothing twice. Always in the background; Prefer: wait=N
// waits.
Response put_job(Request& request, Services& services, DecodedRuns& decoded) {
  const std::string& id = request.capture("id");
  if (trim(request.headers.get("If-None-Match").value_or("")) != "*") {
    throw core::Error("precondition_required",
                      "a job is put where there is none and never changed: send -H 'If-None-Match: *'");
  }
  if (id.size() != kJobIdSize || !core::looks_like_id(id, "job")) {
    throw core::Error("invalid_request",
                      "the id in the path: expected job_ and a UUID in lower case, got '" + id + "'");
  }
  DocumentBody body = read_document_body(request, services);
  const Preferences preference = preferences_of(request);
  Submission submission = read_submission(request, services, decoded, body, "");
  submission.job.id = id;
  request.session_id = submission.job.session;
  if (!request.span_id.empty()) submission.job.traceparent = "00-" + request.trace_id + "-" + request.span_id + "-01";
  Response response = submit_in_background(request, services, std::move(submission), preference);
  if (response.status == status_of(core::ErrorKind::kTooMany)) return response;
  Response made = after_accepting(request, id, [&] {
    const jobs::JobView view = services.jobs.view(id, request.principal, request.memory);
    Response out =
        json_of(201, JobDocument{view, true}).with("Location", "/v1/jobs/" + id).with("ETag", job_etag(view));
    if (preference.respond_async) note_applied(out, "respond-async");
    if (preference.wait_seconds) note_applied(out, fmt::format("wait={}", *preference.wait_seconds));
    return out;
  });
  note_rate_limit(made, request, services);
  return made;
}

bool is_program_id(std::string_view text) {
  constexpr std::string_view kPrefix = "prog_";
  constexpr size_t kDigits = 32;
  return text.size() == kPrefix.size() + kDigits && text.starts_with(kPrefix) &&
         text.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string_view::npos;
}

Response list(Request& request, Services& services, storage::JobFilter filter,
              std::initializer_list<std::string_view> filters) {
  const storage::PageRequest wanted = page_of(request, filters);
  if (const auto state = request.query.get("state")) {
    filter.state = storage::job_state_from(*state);
    if (!filter.state)
      throw core::Error("invalid_query", "state: expected queued, running, done, failed or cancelled, got '" +
                                             std::string(*state) + "'");
  }
  if (const auto program = request.query.get("program")) {
    if (!is_program_id(*program))
      throw core::Error("invalid_query", "program: expected the id of a stored program, prog_ and 32 digits of 0-9a-f");
    filter.program = *program;
  }
  auto page = services.jobs.list(request.principal, filter, wanted);
  std::vector<jobs::JobView> views;
  for (storage::JobRow& row : page.items) views.push_back({std::move(row), std::nullopt, 0});
  return list_response(request, Page<JobDocument>{{views.begin(), views.end()}, std::move(page.next)});
}

}  // namespace

Schemas job_schemas() {
  return {&run_input_schema(), &run_answer_schema(), &schema<JobDocument>(), &schema<JobProgressEvent>(),
          &JsonCodec<Page<JobDocument>>::of()};
}

std::vector<Route> job_routes(Services& services) {
  const auto decoded = std::make_shared<DecodedRuns>();
  return {
      {"POST", "/v1/run", "run", BodyPolicy::kForm, RunOn::kWorker, Access::kUser,
       [&services, decoded](Request& request) { return submit(request, services, *decoded, ""); },
       [&services, decoded](const Request& request, std::string_view body) {
         if (request.headers.has("Prefer") || request.headers.has("Idempotency-Key")) return false;
         const auto known = decoded->find(request.principal, body);
         if (known == nullptr) return false;
         // A thread wakes up while a worker takes the request up and decodes it. Where it would not take part it would
         // only be in the way of the one that does: they may be two of one core.
         if (known->is_shared.load(std::memory_order_relaxed)) services.engine.expect_run();
         return known->is_brief();
       }},
      {"POST", "/v1/sessions/{id}/jobs", "createJob", BodyPolicy::kForm, RunOn::kWorker, Access::kUser,
       [&services, decoded](Request& request) { return submit(request, services, *decoded, request.capture("id")); }},
      {"GET", "/v1/sessions/{id}/jobs", "listSessionJobs", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         storage::JobFilter filter;
         filter.session = services.sessions.get(request.capture("id"), request.principal).id;
         return list(request, services, std::move(filter), {"state", "program"});
       }},
      {"GET", "/v1/jobs", "listJobs", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         storage::JobFilter filter;
         // One that the caller does not see has no jobs for it, as an unknown one.
         if (const auto session = request.query.get("session"))
           filter.session = services.sessions.get(*session, request.principal).id;
         return list(request, services, std::move(filter), {"state", "program", "session"});
       }},
      {"GET", "/v1/jobs/{id}", "getJob", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         request.query.require_known({"wait"});
         const int64_t wait = request.query.integer("wait", 0, 0, kLongestWaitSeconds);
         const std::string& id = request.capture("id");
         const jobs::JobView view =
             services.jobs.wait(id, request.principal, std::chrono::seconds(wait), request.waiter, request.memory);
         return json_of(200, JobDocument{view, true}).with("ETag", job_etag(view));
       }},
      {"PUT", "/v1/jobs/{id}", "putJob", BodyPolicy::kForm, RunOn::kWorker, Access::kUser,
       [&services, decoded](Request& request) { return put_job(request, services, *decoded); }},
      {"DELETE", "/v1/jobs/{id}", "deleteJob", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const std::string& id = request.capture("id");
         require_match(request, job_etag(services.jobs.view(id, request.principal, request.memory)));
         using Removal = jobs::JobRunner::Removal;
         if (services.jobs.cancel_or_delete(id, request.principal) == Removal::kDeleted) return no_content();
         return json_of(202, JobDocument{services.jobs.view(id, request.principal, request.memory)});
       }},
  };
}

}  // namespace meshd::api
