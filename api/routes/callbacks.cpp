// /v1/sessions/{id}/callbacks: what programs ask their client while they run, and its answers.
#include <charconv>

#include "api/codecs/job_codec.h"
#include "api/codecs/json.h"
#include "api/codecs/value.h"
#include "api/routes/routes.h"
#include "api/routes/waiting.h"
#include "service/jobs/pulled_parts.h"

namespace meshd::api {
namespace {

constexpr JsonLimits kAnswerLimits{64, 64'000'000};

int64_t number_of(const Request& request) {
  const std::string& text = request.capture("n");
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1)
    throw core::Error("not_found", "there is no callback request '" + text + "'; they are numbered 1, 2, ...");
  return number;
}

// Waits in a session for what `look` finds.
template <typename T>
std::optional<T> wait_in(const Request& request, Services& services, const std::string& session,
                         const std::function<std::optional<T>()>& look) {
  return wait_for<T>(request, wait_of(request), look, [&](std::function<void()> wake) {
    return services.callbacks.subscribe(session, std::move(wake));
  });
}

Response list(Request& request, Services& services) {
  static constexpr std::string_view kKnown[] = {"encoding", "wait"};
  request.query.require_known(kKnown);
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const bool base64 = wants_base64(request);
  using Open = std::vector<effects::SessionCallback>;
  const auto open = wait_in<Open>(request, services, session, [&]() -> std::optional<Open> {
    Open found = services.callbacks.open(session);
    return found.empty() ? std::nullopt : std::optional(std::move(found));
  });
  std::string out = "{\"items\":[";
  for (size_t i = 0; open && i < open->size(); ++i) out += (i ? "," : "") + callback_document((*open)[i], base64);
  return json(200, out + "],\"next\":null}");
}

Response get(Request& request, Services& services) {
  static constexpr std::string_view kKnown[] = {"encoding", "wait"};
  request.query.require_known(kKnown);
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const int64_t number = number_of(request);
  const bool base64 = wants_base64(request);
  const auto found =
      wait_in<effects::SessionCallback>(request, services, session, [&]() -> std::optional<effects::SessionCallback> {
        try {
          return services.callbacks.get(session, number);
        } catch (const core::Error& error) {
          if (error.code() != core::ErrorCode("not_found")) throw;
          return std::nullopt;
        }
      });
  return json(200, callback_document(found ? *found : services.callbacks.get(session, number), base64));
}

Response answer(Request& request, Services& services) {
  static constexpr std::string_view kKnown[] = {"encoding"};
  request.query.require_known(kKnown);
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const int64_t number = number_of(request);
  const effects::SessionCallback asked = services.callbacks.get(session, number);
  const Json body = Json::parse(request.body().read_all(body_limit(BodyPolicy::kInline)), kAnswerLimits);
  core::Diagnostics wrong;
  ObjectReader reader(body, "", wrong);
  std::vector<effects::OwnedValue> values;
  if (const Json* list = reader.field("values")) {
    if (!list->is_array()) wrong.add("/values", "expected a list, got " + std::string(list->kind_name()));
    for (size_t i = 0; i < list->size(); ++i) {
      const tensor::TensorType* expected = i < asked.request.expected.size() ? &asked.request.expected[i] : nullptr;
      if (auto read = read_value(list->at(i), expected, "/values/" + std::to_string(i), wrong))
        values.push_back({read->type, std::move(read->bytes)});
    }
  } else {
    reader.missing("values");
  }
  reader.finish();
  wrong.throw_if_any("invalid_request");
  const effects::SessionCallback answered =
      effects::asks_for_parts(asked)
          ? jobs::answer_with_parts({services.callbacks, services.arrays, services.pool, request.principal}, session,
                                    number, values)
          : services.callbacks.answer(session, number, values);
  return json(200, callback_document(answered, wants_base64(request)));
}

}  // namespace

std::vector<Route> callback_routes(Services& services) {
  return {
      {"GET", "/v1/sessions/{id}/callbacks", "listCallbacks", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return list(request, services); }},
      {"GET", "/v1/sessions/{id}/callbacks/{n}", "getCallback", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return get(request, services); }},
      {"POST", "/v1/sessions/{id}/callbacks/{n}", "replyToCallback", BodyPolicy::kInline, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return answer(request, services); }},
  };
}

}  // namespace meshd::api
