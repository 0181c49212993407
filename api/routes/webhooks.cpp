// /v1/webhooks: receivers of what happens in a session.
#include <algorithm>

#include "api/codecs/webhook_codec.h"
#include "api/json/json.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "service/webhooks/signature.h"

namespace meshd::api {
namespace {

constexpr std::string_view kEffects = "effects";
constexpr std::string_view kJobs = "jobs";

struct WebhookInput {
  std::string session, url;
  std::optional<std::string> secret;
  std::optional<std::vector<std::string>> events;
  std::optional<int64_t> after;
};

// The secret is shown to the client that makes the webhook, and to nobody after it.
struct WebhookDocument {
  const storage::WebhookRow& row;
  bool with_secret = false;
};

std::vector<std::string> events_of(const storage::WebhookRow& row) {
  std::vector<std::string> out;
  if (row.wants_effects) out.emplace_back(kEffects);
  if (row.wants_jobs) out.emplace_back(kJobs);
  return out;
}

}  // namespace

template <>
Schema<WebhookInput> make_schema() {
  using In = WebhookInput;
  return {"WebhookInput",
          {{"session", &In::session},
           {"url", &In::url, {.longest = 2'000}},
           {"secret", &In::secret, {.longest = 128}},
           {"events", &In::events, {.words = {kEffects, kJobs}}},
           {"after", &In::after, {.low = 0}}}};
}

template <>
Schema<WebhookDocument> make_schema() {
  using Doc = WebhookDocument;
  return {
      "Webhook",
      {{"id", [](const Doc& doc) -> std::string_view { return doc.row.id; }},
       {"session", [](const Doc& doc) -> std::string_view { return doc.row.session; }},
       {"url", [](const Doc& doc) -> std::string_view { return doc.row.url; }},
       {"secret",
        [](const Doc& doc) {
          return doc.with_secret ? std::optional(webhooks::secret_of_key(doc.row.secret)) : std::nullopt;
        }},
       {"events", [](const Doc& doc) { return events_of(doc.row); }, {.words = {kEffects, kJobs}}},
       {"state", [](const Doc& doc) { return storage::to_string(doc.row.state); }, {.words = {"active", "disabled"}}},
       {"sequence", [](const Doc& doc) { return doc.row.sequence; }, {.low = 0}},
       {"job_number", [](const Doc& doc) { return doc.row.job_number; }, {.low = 0}},
       {"failures", [](const Doc& doc) { return doc.row.failures; }, {.low = 0}},
       {"failing_since", [](const Doc& doc) { return doc.row.failing_since; }},
       {"last_error", [](const Doc& doc) { return unless_empty(doc.row.last_error); }},
       {"created", [](const Doc& doc) { return doc.row.created; }}}};
}

Schemas webhook_schemas() {
  Schemas out = {&schema<WebhookInput>(), &schema<WebhookDocument>(), &JsonCodec<Page<WebhookDocument>>::of()};
  for (const SchemaBase* delivery : delivery_schemas()) out.push_back(delivery);
  return out;
}

namespace {

Response create_webhook(Request& request, Services& services) {
  std::string body = body_text(request, BodyPolicy::kJson);
  const RepeatedRequest repeated(request, services, body);
  const auto made = [](const storage::WebhookRow& row) {
    return json_of(201, WebhookDocument{row, true}).with("Location", "/v1/webhooks/" + row.id);
  };
  if (repeated.made())
    return repeated.again([&] { return made(services.webhooks.get(*repeated.made(), request.principal)); });
  const auto in = read_json<WebhookInput>(parse_body(request, std::move(body), BodyPolicy::kJson), "invalid_request");
  webhooks::WebhookRequest asked{in.session, in.url, in.secret, true, true, in.after};
  if (in.events) {
    const auto wants = [&](std::string_view word) {
      return std::find(in.events->begin(), in.events->end(), word) != in.events->end();
    };
    asked.wants_effects = wants(kEffects);
    asked.wants_jobs = wants(kJobs);
  }
  return made(services.webhooks.create(request.principal, asked, repeated.key()));
}

}  // namespace

std::vector<Route> webhook_routes(Services& services) {
  return {
      {"POST", "/v1/webhooks", "createWebhook", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return create_webhook(request, services); }},
      {"GET", "/v1/webhooks", "listWebhooks", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         std::string session;
         // One that the caller does not see has no webhooks for it, as an unknown one.
         if (const auto asked = request.query.get("session"))
           session = services.sessions.get(*asked, request.principal).id;
         const auto found = services.webhooks.list(request.principal, session, page_of(request, {"session"}));
         Page<WebhookDocument> page;
         for (const storage::WebhookRow& row : found.items) page.items.push_back({row});
         page.next = found.next;
         return list_response(request, page);
       }},
      {"GET", "/v1/webhooks/{id}", "getWebhook", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         return json_of(200, WebhookDocument{services.webhooks.get(request.capture("id"), request.principal)});
       }},
      {"DELETE", "/v1/webhooks/{id}", "deleteWebhook", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         services.webhooks.remove(request.capture("id"), request.principal);
         return no_content();
       }},
      {"POST", "/v1/webhooks/{id}:resume", "resumeWebhook", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const std::string& id = request.capture("id");
         const RepeatedRequest repeated(request, services, "");
         if (repeated.made()) {
           return repeated.again(
               [&] { return json_of(200, WebhookDocument{services.webhooks.get(id, request.principal)}); });
         }
         return json_of(200, WebhookDocument{services.webhooks.resume(id, request.principal, repeated.key())});
       }},
  };
}

}  // namespace meshd::api
