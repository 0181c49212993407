// /v1/sessions/{id}/callbacks: callback requests of running programs, and their replies.
#include <fmt/core.h>

#include "api/codecs/runs/effect_codec.h"
#include "api/codecs/value.h"
#include "api/routes/routes.h"
#include "api/routes/sessions/effect_file.h"
#include "api/routes/sessions/values_body.h"
#include "api/routes/waiting.h"
#include "service/jobs/execution/pulled_parts.h"

namespace meshd::api {
namespace {

// The values that a callback gives back.
struct CallbackReply {
  const Json* values = nullptr;
};

}  // namespace

template <>
Schema<CallbackReply> make_schema() {
  return {"CallbackReply",
          {{"values", &CallbackReply::values, {.required = true, .like = json_type<std::vector<FormValueInput>>}}}};
}

Schemas callback_schemas() {
  return {&schema<CallbackReply>(), &schema<CallbackRequestDocument>(),
          &JsonCodec<Page<CallbackRequestDocument>>::of()};
}

namespace {

int64_t number_of(const Request& request) {
  const std::string& text = request.capture("n");
  const auto number = whole_number(text);
  if (number.value_or(0) < 1)
    throw core::Error("not_found", "there is no callback request '" + text + "'; they are numbered 1, 2, ...");
  return *number;
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
  request.query.require_known({"after", "limit", "encoding", "wait"});
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const int64_t after = request.query.integer("after", 0, 0, INT64_MAX);
  const int64_t limit = request.query.integer("limit", 100, 1, storage::kMaxPageSize);
  const WantedValues wanted(request);
  PageBudget budget(request, wanted.memory_per_byte());
  using Open = std::vector<effects::SessionCallback>;
  const auto open = wait_in<Open>(request, services, session, [&]() -> std::optional<Open> {
    Open found = services.callbacks.open(session, after, limit, [&](int64_t bytes) { return budget.admit(bytes); });
    return found.empty() ? std::nullopt : std::optional(std::move(found));
  });
  Page<CallbackRequestDocument> page;
  if (open) {
    for (const effects::SessionCallback& asked : *open) page.items.push_back({asked, wanted.encoding});
  }
  if (open && (static_cast<int64_t>(open->size()) == limit || budget.is_full()))
    page.next = std::to_string(open->back().number);
  return send_page(
      request, services, page, wanted, [](const auto& item) { return item.asked.number; },
      [](const auto& item) -> const auto& { return item.asked.request.values; });
}

Response get(Request& request, Services& services) {
  request.query.require_known({"encoding", "wait"});
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const int64_t number = number_of(request);
  const WantedValues wanted(request);
  PageBudget budget(request, wanted.memory_per_byte());
  const auto get_now = [&] {
    return services.callbacks.get(session, number, [&](int64_t bytes) { return budget.admit(bytes); });
  };
  const auto found =
      wait_in<effects::SessionCallback>(request, services, session, [&]() -> std::optional<effects::SessionCallback> {
        try {
          return get_now();
        } catch (const core::Error& error) {
          if (error.code() != core::ErrorCode("not_found")) throw;
          return std::nullopt;
        }
      });
  const effects::SessionCallback asked = found ? *found : get_now();
  const CallbackRequestDocument document{asked, wanted.encoding};
  if (wanted.file == nullptr) return json_of(200, document).with("Vary", kVaryByAccept);
  const NumberedValues values{number, asked.request.values};
  return send_values(request, services, {&values, 1}, *wanted.file, to_json(document));
}

std::vector<tensor::DenseValue> read_reply(ValuesBody& body, const FileHints& hints, Request& request,
                                           Services& services) {
  if (!body.document) return values_of_file(body, hints, request, services);
  const Json document = body.json(request);
  core::Diagnostics wrong;
  const auto in = read_json<CallbackReply>(document, "", wrong);
  std::vector<tensor::DenseValue> out;
  if (in.values != nullptr) {
    each_entry(*in.values, "/values", wrong, [&](size_t i, const Json& value, const std::string& pointer) {
      const tensor::TensorType* type = i < hints.expected->size() ? &(*hints.expected)[i] : nullptr;
      auto read = read_form_value(value, type, body.files(), services.pool, pointer, wrong);
      if (read) out.push_back(std::move(*read));
    });
  }
  wrong.throw_if_any("invalid_request");
  return out;
}

Response reply(Request& request, Services& services) {
  request.query.require_known({"encoding"});
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const int64_t number = number_of(request);
  const ValueEncoding encoding = encoding_of(request);
  PageBudget budget(request, memory_per_byte_of(encoding));
  const effects::SessionCallback asked =
      services.callbacks.get(session, number, [&](int64_t bytes) { return budget.admit(bytes); });
  FileHints hints;
  hints.expected = asked.request.expected;
  ValuesBody body = read_values_body(request, services, hints);
  const std::vector<tensor::DenseValue> values = read_reply(body, hints, request, services);
  const effects::SessionCallback replied =
      effects::asks_for_parts(asked)
          ? jobs::reply_with_parts({services.callbacks, services.arrays, request.principal}, session, number, values)
          : services.callbacks.reply(session, number, values);
  return json_of(200, CallbackRequestDocument{replied, encoding});
}

}  // namespace

std::vector<Route> callback_routes(Services& services) {
  return {
      {"GET", "/v1/sessions/{id}/callbacks", "listCallbacks", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return list(request, services); }},
      {"GET", "/v1/sessions/{id}/callbacks/{n}", "getCallback", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return get(request, services); }},
      {"POST", "/v1/sessions/{id}/callbacks/{n}", "replyToCallback", BodyPolicy::kValues, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return reply(request, services); }},
  };
}

}  // namespace meshd::api
