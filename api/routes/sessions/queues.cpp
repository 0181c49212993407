// /v1/sessions/{id}/infeed and /outfeed: queues between clients and the programs of a session.
#include <iterator>

#include "api/codecs/runs/effect_codec.h"
#include "api/codecs/runs/infeed_codec.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "api/routes/sessions/effect_file.h"
#include "api/routes/sessions/values_body.h"
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

// What the query says of an entry, whatever the body is.
struct EntryQuery {
  std::optional<std::string> queue;
  std::optional<int64_t> number;
  FileHints hints;
};

EntryQuery read_entry_query(const Request& request) {
  std::vector<std::string_view> known{"queue", "number"};
  known.insert(known.end(), std::begin(kFileParameters), std::end(kFileParameters));
  request.query.require_known(known);
  EntryQuery out;
  if (request.query.has("queue")) out.queue = queue_of(request);
  if (request.query.has("number")) out.number = request.query.integer("number", 1, 1, INT64_MAX);
  out.hints = file_hints(request);
  return out;
}

void refuse_beside_document(const Request& request) {
  core::Diagnostics wrong;
  for (const std::string_view name : kFileParameters) {
    if (request.query.has(name))
      wrong.add("/" + std::string(name), "is for a body that is a file; a document says it of each value");
  }
  wrong.throw_if_any("invalid_query");
}

InfeedInput read_infeed_document(const Json& body, const EntryQuery& said, core::Diagnostics& wrong) {
  auto in = read_json<InfeedInput>(body, "", wrong);
  if (said.queue && in.queue) wrong.add("/queue", "is given in the query, too; name the queue once");
  if (said.number && in.number) wrong.add("/number", "is given in the query, too; say it once");
  if (!in.queue) in.queue = said.queue;
  if (!in.number) in.number = said.number;
  return in;
}

Response append_infeed(Request& request, Services& services) {
  const EntryQuery said = read_entry_query(request);
  const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
  ValuesBody body = read_values_body(request, services, said.hints);
  const bool is_keyed = !idempotency_key_of(request).empty();
  const RepeatedRequest repeated(request, services, is_keyed ? body.fingerprint("") : "");
  InfeedInput in{{said.queue}, said.number};
  core::Diagnostics wrong;
  std::optional<Json> document;
  if (body.document) {
    refuse_beside_document(request);
    document = body.json(request);
    in = read_infeed_document(*document, said, wrong);
  }
  // Before the entry is read: the arrays that it names may be gone by now.
  if (wrong.empty() && repeated.made())
    return repeated.again([&] {
      return json_of(201, InfeedPosition{in.queue.value_or(""), std::stoll(*repeated.made())});
    });
  effects::InfeedEntry given;
  if (body.document) {
    InfeedSource source{services.arrays, services.pool, request.principal};
    source.files = body.files();
    given = infeed_entry(in, "", source, wrong);
    wrong.throw_if_any("invalid_request");
  } else {
    given.queue = in.queue.value_or("");
    given.values = values_of_file(body, said.hints, request, services);
  }
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
  const WantedValues wanted(request);
  using Rows = std::vector<storage::EffectRow>;
  PageBudget budget(request, wanted.memory_per_byte());
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
  for (const storage::EffectRow& row : rows) page.items.push_back(effect_document(row, wanted.encoding));
  if (static_cast<int64_t>(rows.size()) == limit || budget.is_full()) page.next = std::to_string(rows.back().number);
  return send_page(
      request, services, page, wanted, [](const auto& item) { return item.number; },
      [](const auto& item) -> const auto& { return item.values; });
}

}  // namespace

std::vector<Route> queue_routes(Services& services) {
  return {
      {"POST", "/v1/sessions/{id}/infeed", "appendInfeed", BodyPolicy::kValues, RunOn::kWorker, Access::kUser,
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
