// POST /v1/run, /v1/sessions/{id}/jobs and /v1/jobs: one decoder and one answer for all of them.
#include <charconv>
#include <cstdio>

#include "api/codecs/job_codec.h"
#include "api/codecs/json.h"
#include "api/problem.h"
#include "api/routes/routes.h"
#include "service/core/ids.h"

namespace meshd::api {
namespace {

using storage::JobState;

constexpr int64_t kLongestWaitSeconds = 60;

JobContext context_of(Services& services) {
  return {services.arrays, services.programs, services.compiler, services.pool, nullptr, services.processes};
}

std::string server_timing(const jobs::JobTimings& timings) {
  char text[200];
  std::snprintf(text, sizeof(text),
                "parse;dur=%.3f, lower;dur=%.3f, bind;dur=%.3f, queue;dur=%.3f, run;dur=%.3f, commit;dur=%.3f",
                timings.parse_ms, timings.lower_ms, timings.bind_ms, timings.queue_ms, timings.run_ms,
                timings.commit_ms);
  return text;
}

// What the client prefers (RFC 7240).
struct Preference {
  bool async = false;
  std::optional<int64_t> wait_seconds;
};

Preference preference_of(const Request& request) {
  Preference out;
  const std::string prefer = request.headers.joined("Prefer");
  out.async = prefer.find("respond-async") != std::string::npos;
  if (const size_t at = prefer.find("wait="); at != std::string::npos) {
    int64_t seconds = 0;
    const char* start = prefer.data() + at + 5;
    if (std::from_chars(start, prefer.data() + prefer.size(), seconds).ec == std::errc{} && seconds >= 0) {
      out.wait_seconds = std::min(seconds, kLongestWaitSeconds);
    }
  }
  return out;
}

std::string idempotency_key_of(const Request& request) {
  const auto key = request.headers.get("Idempotency-Key");
  if (!key) return {};
  if (key->empty() || key->size() > 255)
    throw core::Error("invalid_request", "Idempotency-Key: expected 1 to 255 characters");
  return std::string(*key);
}

// A finished job's answer as the first request got it.
Response answer_of(const jobs::JobView& view, const Request& request) {
  if (view.row.state == JobState::kDone) return json(200, view.row.answer);
  const core::Error error(core::error_code_from_word(view.row.error_code), view.row.error_detail);
  return problem(error, request.request_id, request.path);
}

bool is_over(const storage::JobRow& row) {
  return row.state == JobState::kDone || row.state == JobState::kFailed || row.state == JobState::kCancelled;
}

std::optional<Response> replay(const Request& request, const std::string& key, const std::string& fingerprint,
                               Services& services) {
  const std::string route = request.route->operation_id;
  const auto known = services.store.catalog().read(
      [&](storage::Reader& reader) { return reader.idempotency(request.principal, route, key); });
  if (!known) return std::nullopt;
  if (known->fingerprint != fingerprint) {
    throw core::Error("idempotency_key_reused",
                      "this Idempotency-Key came with another request before; use a new key for a new request");
  }
  const jobs::JobView view = services.jobs.view(known->job, request.principal);
  if (!is_over(view.row)) {
    Response conflict = problem(
        core::Error("idempotency_in_progress", "the first request with this key is still running: job " + known->job),
        request.request_id, request.path);
    return std::move(conflict).with("Location", "/v1/jobs/" + known->job);
  }
  return answer_of(view, request).with("Idempotency-Replayed", "true").with("Location", "/v1/jobs/" + known->job);
}

Response accepted(const jobs::JobView& view) {
  return json(202, job_document(view, false))
      .with("Location", "/v1/jobs/" + view.row.id)
      .with("Retry-After", "1")
      .with("Preference-Applied", "respond-async");
}

// The session that a body names, if it does.
std::string session_in(const Json& document) {
  if (const auto* object = document.as<JsonObject>()) {
    for (const auto& [name, value] : *object) {
      if (const auto* id = value.as<std::string>(); name == "session" && id != nullptr) return *id;
    }
  }
  return {};
}

Response submit(Request& request, Services& services, const std::string& path_session) {
  const auto start = services.clock.steady();
  const std::string body = request.body().read_all(body_limit(BodyPolicy::kInline));
  const std::string key = idempotency_key_of(request);
  std::string fingerprint;
  if (!key.empty()) {
    fingerprint = core::sha256_hex(request.path + "\n" + body);
    if (auto known = replay(request, key, fingerprint, services)) return std::move(*known);
  }
  std::string session = path_session;
  if (!session.empty()) session = services.sessions.get(session, request.principal).id;
  const Json document = Json::parse(body, kJobLimits);
  JobContext context = context_of(services);
  mesh::Mesh session_mesh;
  if (const std::string inside = session.empty() ? session_in(document) : session; !inside.empty()) {
    session_mesh = services.sessions.mesh_stack(inside, request.principal).current();
    context.session_mesh = &session_mesh;
  }
  auto [job, form] = decode_job(document, request.principal, session, context);
  if (!job.session.empty()) static_cast<void>(services.sessions.get(job.session, request.principal));
  const Preference preference = preference_of(request);
  const bool background = preference.async || preference.wait_seconds.has_value();
  if (background || !job.session.empty() || !key.empty()) job.document = kept_document(body, context.session_mesh);
  job.idempotency_route = request.route->operation_id;
  job.idempotency_key = key;
  job.idempotency_fingerprint = fingerprint;
  job.parse_ms = std::chrono::duration<double, std::milli>(services.clock.steady() - start).count();
  const jobs::ResultEncoder encode = [form = form](const jobs::JobResult& result) {
    return encode_result(result, form);
  };
  if (background) {
    const std::string id = services.jobs.start(std::move(job), encode);
    jobs::JobView view = preference.wait_seconds
                             ? services.jobs.wait(id, request.principal, std::chrono::seconds(*preference.wait_seconds))
                             : services.jobs.view(id, request.principal);
    if (preference.wait_seconds && is_over(view.row)) {
      return answer_of(view, request)
          .with("Location", "/v1/jobs/" + id)
          .with("Preference-Applied", "wait=" + std::to_string(*preference.wait_seconds));
    }
    return accepted(view);
  }
  const jobs::JobResult result =
      services.jobs.run(std::move(job), encode, [&request] { return request.client_gone(); });
  Response response = json(200, encode(result)).with("Server-Timing", server_timing(result.timings));
  if (!result.job.empty()) response.headers.set("Location", "/v1/jobs/" + result.job);
  return response;
}

}  // namespace

std::vector<Route> job_routes(Services& services) {
  return {
      {"POST", "/v1/run", "run", BodyPolicy::kInline, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) { return submit(request, services, ""); }},
      {"POST", "/v1/sessions/{id}/jobs", "createJob", BodyPolicy::kInline, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) { return submit(request, services, request.capture("id")); }},
      {"GET", "/v1/sessions/{id}/jobs", "listSessionJobs", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         storage::JobFilter filter;
         filter.session = services.sessions.get(request.capture("id"), request.principal).id;
         const auto page = services.store.catalog().read(
             [&](storage::Reader& reader) { return reader.jobs(request.principal, filter, page_of(request)); });
         std::vector<std::string> items;
         for (const auto& row : page.items) items.push_back(job_document({row, std::nullopt, 0}, false));
         return list_response(request, items, page.next);
       }},
      {"GET", "/v1/jobs", "listJobs", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         const auto page = services.store.catalog().read(
             [&](storage::Reader& reader) { return reader.jobs(request.principal, {}, page_of(request)); });
         std::vector<std::string> items;
         for (const auto& row : page.items) items.push_back(job_document({row, std::nullopt, 0}, false));
         return list_response(request, items, page.next);
       }},
      {"GET", "/v1/jobs/{id}", "getJob", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         static constexpr std::string_view kKnown[] = {"wait"};
         request.query.require_known(kKnown);
         const int64_t wait = request.query.integer("wait", 0, 0, kLongestWaitSeconds);
         const std::string& id = request.capture("id");
         const jobs::JobView view = wait > 0 ? services.jobs.wait(id, request.principal, std::chrono::seconds(wait))
                                             : services.jobs.view(id, request.principal);
         return json(200, job_document(view, true));
       }},
      {"DELETE", "/v1/jobs/{id}", "cancelJob", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         services.jobs.cancel(request.capture("id"), request.principal);
         return json(202, job_document(services.jobs.view(request.capture("id"), request.principal), false));
       }},
  };
}

}  // namespace meshd::api
