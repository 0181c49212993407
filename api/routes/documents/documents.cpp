// Documents about the server: the contract, its page, devices, ops, effects.
#include <fmt/core.h>

#include "api/codecs/functions_document.h"
#include "api/codecs/ops_document.h"
#include "api/fields/accept.h"
#include "api/http/embedded.h"
#include "api/routes/documents/error_reference.h"
#include "api/routes/documents/history.h"
#include "api/routes/documents/site.h"
#include "api/routes/routes.h"
#include "service/core/error.h"
#include "service/effects/effect_kinds.h"

namespace meshd::api {
namespace {

// One cache.
struct CacheCounters {
  int64_t count = 0, hits = 0;
};

struct Info {
  std::string version, commit;
  int64_t devices = 0, threads = 0;
  compile::CompileCounters compile;
  CacheCounters layouts;
};

struct Device {
  int64_t id = 0, process_index = 0, queue = 0;
};

}  // namespace

template <>
Schema<CacheCounters> make_schema() {
  using Doc = CacheCounters;
  return {"CacheCounters", {{"count", &Doc::count, {.low = 0}}, {"hits", &Doc::hits, {.low = 0}}}};
}

template <>
Schema<compile::CompileCounters> make_schema() {
  using Doc = compile::CompileCounters;
  return {"CompileCounters",
          {{"parse",
            [](const Doc& doc) {
              return CacheCounters{doc.parse_count, doc.parse_hits};
            }},
           {"lower",
            [](const Doc& doc) {
              return CacheCounters{doc.lower_count, doc.lower_hits};
            }},
           {"bind", [](const Doc& doc) {
              return CacheCounters{doc.bind_count, doc.bind_hits};
            }}}};
}

template <>
Schema<Info> make_schema() {
  return {"Info",
          {{"name", [](const Info&) { return "meshd"; }},
           {"version", &Info::version},
           {"commit", [](const Info& info) { return unless_empty(info.commit); }},
           {"devices", &Info::devices, {.low = 0}},
           {"threads", &Info::threads, {.low = 0}},
           {"compile", &Info::compile},
           {"layouts", &Info::layouts}}};
}

template <>
Schema<Device> make_schema() {
  return {"Device",
          {{"id", &Device::id, {.low = 0}},
           {"process_index", &Device::process_index, {.low = 0}},
           {"kind", [](const Device&) { return "cpu"; }},
           {"queue", &Device::queue, {.low = 0}}}};
}

template <>
Schema<effects::EffectKind> make_schema() {
  using Kind = effects::EffectKind;
  return {"EffectKind",
          {{"name", &Kind::name},
           {"summary", &Kind::summary},
           {"ordered", [](const Kind&) { return true; }},
           {"shardable", &Kind::shardable},
           {"answers", &Kind::answers},
           {"control_flow", &Kind::control_flow},
           {"lowerable", &Kind::lowerable},
           {"parent", [](const Kind& kind) { return or_null(kind.parent); }}}};
}

Schemas document_schemas() {
  return {&schema<Info>(),
          &JsonCodec<Page<Device>>::of(),
          &JsonCodec<Page<effects::EffectKind>>::of(),
          &ops_schema(),
          &functions_schema(),
          &error_schema(),
          &schema<HistoryDocument>()};
}

namespace {

Info info_document(Services& services, const ProcessFacts& facts) {
  const sharding::LayoutCache::Counters layouts = services.arrays.layout_counters();
  return {facts.version,
          facts.commit,
          services.engine.options().device_count,
          services.engine.threads(),
          services.compiler.counters(),
          {layouts.count, layouts.hits}};
}

Page<Device> devices_document(Services& services) {
  const device::EngineStats stats = services.engine.stats();
  Page<Device> out;
  for (int64_t d = 0; d < services.engine.options().device_count; ++d) {
    const auto n = static_cast<size_t>(d);
    out.items.push_back({d, services.processes.of(d), n < stats.device_queue.size() ? stats.device_queue[n] : 0});
  }
  return out;
}

// ?in= keeps the kinds of a wider one, ?not_in= those that are not; the order stays.
Page<effects::EffectKind> effects_document(const Request& request) {
  static constexpr std::string_view kKnown[] = {"in", "not_in"};
  request.query.require_known(kKnown);
  for (const std::string_view name : kKnown) {
    if (const auto wider = request.query.get(name); wider && effects::find_effect_kind(*wider) == nullptr)
      throw core::Error("invalid_query", fmt::format("{}: {} is no kind of effect", name, quote(*wider)));
  }
  const auto in = request.query.get("in"), not_in = request.query.get("not_in");
  Page<effects::EffectKind> out;
  for (const effects::EffectKind& kind : effects::all_effect_kinds()) {
    if ((in && !effects::is_kind_of(kind.name, *in)) || (not_in && effects::is_kind_of(kind.name, *not_in))) continue;
    out.items.push_back(kind);
  }
  return out;
}

constexpr std::chrono::days kContactHolds{180};  // RFC 9116 2.5.5: less than a year

// RFC 9116: the contact for security reports, which the operator sets.
Response security_contact(const ProcessFacts& facts) {
  if (facts.security_contact.empty())
    throw core::Error("not_found", "the operator gave no contact; meshd serve --security-contact mailto:... does");
  const auto expires = core::SystemClock().wall() + kContactHolds;
  return text(200, fmt::format("Contact: {}\nExpires: {}\nPreferred-Languages: en\n", facts.security_contact,
                               core::to_rfc3339(expires)));
}

}  // namespace

std::vector<Route> document_routes(Services& services, const ProcessFacts& facts) {
  const auto open = [](std::string path, std::string operation, std::function<Response(Request&)> handler) {
    return Route{"GET",           std::move(path), std::move(operation), BodyPolicy::kNone,
                 RunOn::kReactor, Access::kOpen,   std::move(handler)};
  };
  return {
      open("/", "getHome", [](Request&) { return site_file("/"); }),
      open("/console", "getConsole", [](Request&) { return site_file("/console"); }),
      open("/docs", "getDocs", [](Request&) { return site_file("/docs"); }),
      open("/docs/guides/{name}", "getGuide",
           [](Request& request) { return site_file(fmt::format("/docs/guides/{}", request.capture("name"))); }),
      // The search index has the ops, whose examples take some hundred milliseconds to parse the first time.
      {"GET", "/docs/assets/{name}", "getDocsAsset", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen,
       [](Request& request) {
         if (request.capture("name") == "search.json") return search_index(ops_page().search + error_page().search);
         return site_file(fmt::format("/docs/assets/{}", request.capture("name")));
       }},
      open("/docs/errors", "getErrorCodes",
           [](Request& request) {
             // Browsers follow a problem's type to here.
             static constexpr std::string_view kForms[] = {"application/json", "text/html"};
             const bool is_page = preferred_media(request, kForms) == 1;
             return (is_page ? site_page("/docs/errors", error_page()) : json(200, error_document()))
                 .with("Vary", "Accept, Accept-Encoding");
           }),
      open("/.well-known/security.txt", "getSecurityContact", [facts](Request&) { return security_contact(facts); }),
      {"GET", "/docs/ops", "getOpsPage", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen,
       [](Request&) { return site_page("/docs/ops", ops_page()); }},
      open("/openapi.yaml", "getOpenapiYaml",
           [](Request&) { return content(200, "application/yaml", std::string(embedded::openapi_yaml())); }),
      open("/openapi.json", "getOpenapiJson",
           [](Request&) { return json(200, std::string(embedded::openapi_json())); }),
      {"GET", "/v1/info", "getInfo", BodyPolicy::kNone, RunOn::kReactor, Access::kReader,
       [&services, facts](Request& request) {
         request.query.require_known({});
         return json_of(200, info_document(services, facts));
       }},
      {"GET", "/v1/devices", "listDevices", BodyPolicy::kNone, RunOn::kReactor, Access::kReader,
       [&services](Request& request) {
         request.query.require_known({});
         return json_of(200, devices_document(services));
       }},
      {"GET", "/v1/history", "getHistory", BodyPolicy::kNone, RunOn::kReactor, Access::kReader,
       [facts](Request& request) {
         request.query.require_known({});
         return json_of(200, HistoryDocument{facts.history ? facts.history() : std::vector<HistorySample>()});
       }},
      {"GET", "/v1/ops", "listOps", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [](Request& request) {
         request.query.require_known({});
         return json(200, ops_document());
       }},
      {"GET", "/v1/functions", "listFunctions", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [](Request& request) {
         request.query.require_known({});
         return json(200, functions_document());
       }},
      {"GET", "/v1/effects", "listEffectKinds", BodyPolicy::kNone, RunOn::kReactor, Access::kReader,
       [](Request& request) { return json_of(200, effects_document(request)); }},
  };
}

}  // namespace meshd::api
