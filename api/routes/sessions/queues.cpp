// /v1/sessions/{id}/infeed and /outfeed: queues between clients and the programs of a session.
#include "api/codecs/runs/effect_codec.h"
#include "api/codecs/runs/infeed_codec.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "api/routes/waiting.h"

namespace meshd::api {
namespace {

std::string queue_of(const Request& request) {
  std::string queue(request.query.get("queue").value_or(""));
  if (const auto mistake = mistake_of_queue(queue)) throw core::Error("invalid_query", "queue: " + *mistake);
  return queue;
}

// The position of an entry.
struct InfeedPosition {
  std::string queue;
  int64_t number = 0;
};

struct DroppedInfeed {
  std::string queue;
  int64_t dropped = 0;
};

}  // namespace

template <>
Schema<InfeedPosition> make_schema() {
  return {"InfeedPosition", {{"queue", &InfeedPosition::queue}, {"number", &InfeedPosition::number, {.low = 1}}}};
}

template <>
Schema<DroppedInfeed> make_schema() {
  return {"DroppedInfeed", {{"queue", &DroppedInfeed::queue}, {"dropped", &DroppedInfeed::dropped, {.low = 0}}}};
}

template <>
Schema<storage::InfeedQueueRow> make_schema() {
  using Row = storage::InfeedQueueRow;
  return {"InfeedQueue",
          {{"queue", &Row::queue},
           {"last", &Row::last, {.low = 0}},
           {"waiting", &Row::waiting, {.low = 0}},
           {"bytes", &Row::bytes, {.low = 0}}}};
}

Schemas queue_schemas() {
  return {&schema<InfeedInput>(), &schema<InfeedPosition>(), &schema<DroppedInfeed>(),
          &JsonCodec<Page<storage::InfeedQueueRow>>::of()};
}

namespace {

Response append_infeed(Request& request, Services& services) {
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  std::string sent = body_text(request, BodyPolicy::kInline);
  const RepeatedRequest repeated(request, services, sent);
  const Json body = parse_body(request, std::move(sent), BodyPolicy::kInline);
  core::Diagnostics wrong;
  const auto in = read_json<InfeedInput>(body, "", wrong);
  // Before the entry is read: the arrays that it names may be gone by now.
  if (wrong.empty() && repeated.made())
    return repeated.again([&] {
      return json_of(201, InfeedPosition{in.queue.value_or(""), std::stoll(*repeated.made())});
    });
  const effects::InfeedEntry given = infeed_entry(in, "", {services.arrays, services.pool, request.principal}, wrong);
  wrong.throw_if_any("invalid_request");
  const effects::InfeedQueues::Appended appended = services.infeeds.append(session, given, in.number, repeated.key());
  return json_of(appended.is_new ? 201 : 200, InfeedPosition{given.queue, appended.number});
}

Response list_queues(Request& request, Services& services) {
  request.query.require_known({});
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  return json_of(200, Page<storage::InfeedQueueRow>{services.infeeds.queues(session), ""});
}

Response drop(Request& request, Services& services) {
  request.query.require_known({"queue"});
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const std::string queue = queue_of(request);
  return json_of(200, DroppedInfeed{queue, services.infeeds.drop(session, queue)});
}

Response outgoing(Request& request, Services& services) {
  request.query.require_known({"queue", "after", "limit", "encoding", "wait"});
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  const std::string queue = queue_of(request);
  const int64_t after = request.query.integer("after", 0, 0, INT64_MAX);
  const int64_t limit = request.query.integer("limit", 100, 1, storage::kMaxPageSize);
  const bool base64 = wants_base64(request);
  using Rows = std::vector<storage::EffectRow>;
  PageBudget budget(request);
  const auto rows = wait_for<Rows>(
                        request, wait_of(request),
                        [&]() -> std::optional<Rows> {
                          Rows found = services.log.outgoing(session, queue, after, limit,
                                                             [&](int64_t bytes) { return budget.admit(bytes); });
                          return found.empty() ? std::nullopt : std::optional(std::move(found));
                        },
                        [&](std::function<void()> wake) { return services.log.subscribe(session, std::move(wake)); })
                        .value_or(Rows{});
  Page<EffectDocument> page;
  for (const storage::EffectRow& row : rows) page.items.push_back(effect_document(row, base64));
  if (static_cast<int64_t>(rows.size()) == limit || budget.is_full()) page.next = std::to_string(rows.back().number);
  return list_response(request, page, "after");
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
