// /v1/sessions/{id}/infeed and /outfeed: queues between clients and the programs of a session.
#include "api/codecs/infeed_codec.h"
#include "api/codecs/job_codec.h"
#include "api/codecs/json.h"
#include "api/routes/routes.h"
#include "api/routes/waiting.h"

namespace meshd::api {
namespace {

constexpr JsonLimits kInfeedLimits{64, 64'000'000};

std::string queue_of(const Request& request) {
  std::string queue(request.query.get("queue").value_or(""));
  if (const auto mistake = mistake_of_queue(queue)) throw core::Error("invalid_query", "queue: " + *mistake);
  return queue;
}

Response append_infeed(Request& request, Services& services) {
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const Json body = Json::parse(request.body().read_all(body_limit(BodyPolicy::kInline)), kInfeedLimits);
  core::Diagnostics wrong;
  ObjectReader reader(body, "", wrong);
  const effects::InfeedEntry given = read_infeed_entry(reader, {services.arrays, request.principal}, wrong);
  const auto number = reader.integer("number", 1, INT64_MAX);
  reader.finish();
  wrong.throw_if_any("invalid_request");
  const effects::InfeedQueues::Fed fed = services.infeeds.append(session, given, number);
  return json(fed.is_new ? 201 : 200,
              "{\"queue\":" + quote(given.queue) + ",\"number\":" + std::to_string(fed.number) + "}");
}

Response list_queues(Request& request, Services& services) {
  request.query.require_known({});
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  std::string out = "{\"items\":[";
  bool first = true;
  for (const storage::InfeedQueueRow& queue : services.infeeds.queues(session)) {
    out += std::string(first ? "" : ",") + "{\"queue\":" + quote(queue.queue) +
           ",\"last\":" + std::to_string(queue.last) + ",\"waiting\":" + std::to_string(queue.waiting) +
           ",\"bytes\":" + std::to_string(queue.bytes) + "}";
    first = false;
  }
  return json(200, out + "],\"next\":null}");
}

Response drop(Request& request, Services& services) {
  static constexpr std::string_view kKnown[] = {"queue"};
  request.query.require_known(kKnown);
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const std::string queue = queue_of(request);
  const int64_t dropped = services.infeeds.drop(session, queue);
  return json(200, "{\"queue\":" + quote(queue) + ",\"dropped\":" + std::to_string(dropped) + "}");
}

Response outgoing(Request& request, Services& services) {
  static constexpr std::string_view kKnown[] = {"queue", "after", "limit", "encoding", "wait"};
  request.query.require_known(kKnown);
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const std::string queue = queue_of(request);
  const int64_t after = request.query.integer("after", 0, 0, INT64_MAX);
  const int64_t limit = request.query.integer("limit", 100, 1, storage::kMaxPageSize);
  const bool base64 = wants_base64(request);
  using Rows = std::vector<storage::EffectRow>;
  const auto rows = wait_for<Rows>(
                        request, wait_of(request),
                        [&]() -> std::optional<Rows> {
                          Rows found = services.log.outgoing(session, queue, after, limit);
                          return found.empty() ? std::nullopt : std::optional(std::move(found));
                        },
                        [&](std::function<void()> wake) { return services.log.subscribe(session, std::move(wake)); })
                        .value_or(Rows{});
  std::vector<std::string> items;
  for (const storage::EffectRow& row : rows) items.push_back(effect_document(row, base64));
  const bool more = static_cast<int64_t>(rows.size()) == limit;
  return list_response(request, items, more ? std::to_string(rows.back().number) : "", "after");
}

}  // namespace

std::vector<Route> queue_routes(Services& services) {
  return {
      {"POST", "/v1/sessions/{id}/infeed", "appendInfeed", BodyPolicy::kInline, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return append_infeed(request, services); }},
      {"GET", "/v1/sessions/{id}/infeed", "listInfeedQueues", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return list_queues(request, services); }},
      {"DELETE", "/v1/sessions/{id}/infeed", "dropInfeed", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return drop(request, services); }},
      {"GET", "/v1/sessions/{id}/outfeed", "listOutfeed", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return outgoing(request, services); }},
  };
}

}  // namespace meshd::api
