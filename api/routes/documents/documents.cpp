// What the server says of itself: the contract, its page, devices, ops, effects.
#include "api/codecs/json.h"
#include "api/http/accept.h"
#include "api/http/embedded.h"
#include "api/routes/documents/error_reference.h"
#include "api/routes/documents/ops_document.h"
#include "api/routes/routes.h"
#include "service/core/error.h"
#include "service/effects/effect_kinds.h"

namespace meshd::api {
namespace {

Response html(std::string_view page) {
  return content(200, "text/html; charset=utf-8", std::string(page))
      .with("Content-Security-Policy",
            "default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; "
            "frame-ancestors 'none'");
}

std::string info_document(Services& services, const ProcessFacts& facts) {
  const compile::CompileCounters counters = services.compiler.counters();
  const sharding::LayoutCache::Counters layouts = services.arrays.layout_counters();
  const auto pair = [](int64_t made, int64_t hits) {
    return "{\"count\":" + std::to_string(made) + ",\"hits\":" + std::to_string(hits) + "}";
  };
  return "{\"name\":\"meshd\",\"version\":" + quote(facts.version) +
         ",\"devices\":" + std::to_string(services.engine.options().device_count) +
         ",\"threads\":" + std::to_string(services.engine.threads()) +
         ",\"compile\":{\"parse\":" + pair(counters.parse_count, counters.parse_hits) +
         ",\"lower\":" + pair(counters.lower_count, counters.lower_hits) +
         ",\"bind\":" + pair(counters.bind_count, counters.bind_hits) +
         "},\"layouts\":" + pair(layouts.count, layouts.hits) + "}";
}

std::string devices_document(Services& services) {
  const device::EngineStats stats = services.engine.stats();
  std::string out = "{\"items\":[";
  for (int64_t d = 0; d < services.engine.options().device_count; ++d) {
    const auto n = static_cast<size_t>(d);
    const int64_t queue = n < stats.device_queue.size() ? stats.device_queue[n] : 0;
    out += (d ? "," : "") + std::string("{\"id\":") + std::to_string(d) +
           ",\"process_index\":" + std::to_string(services.processes.of(d)) +
           ",\"kind\":\"cpu\",\"queue\":" + std::to_string(queue) + "}";
  }
  return out + "],\"next\":null}";
}

// ?in= keeps the kinds of a wider one, ?not_in= those that are not; the order stays.
std::string effects_document(const Request& request) {
  static constexpr std::string_view kKnown[] = {"in", "not_in"};
  request.query.require_known(kKnown);
  for (const std::string_view name : kKnown) {
    if (const auto wider = request.query.get(name); wider && effects::find_effect_kind(*wider) == nullptr)
      throw core::Error("invalid_query", std::string(name) + ": " + quote(*wider) + " is no kind of effect");
  }
  const auto in = request.query.get("in"), not_in = request.query.get("not_in");
  std::string out;
  for (const effects::EffectKind& kind : effects::all_effect_kinds()) {
    if ((in && !effects::is_kind_of(kind.name, *in)) || (not_in && effects::is_kind_of(kind.name, *not_in))) continue;
    const auto flag = [](bool value) { return value ? "true" : "false"; };
    out += (out.empty() ? "" : ",") + std::string("{\"name\":") + quote(kind.name) +
           ",\"summary\":" + quote(kind.summary) + ",\"ordered\":true,\"shardable\":" + flag(kind.shardable) +
           ",\"answers\":" + flag(kind.answers) + ",\"control_flow\":" + flag(kind.control_flow) +
           ",\"lowerable\":" + flag(kind.lowerable) +
           ",\"parent\":" + (kind.parent.empty() ? "null" : quote(kind.parent)) + "}";
  }
  return "{\"items\":[" + out + "],\"next\":null}";
}

constexpr std::chrono::days kContactHolds{180};  // RFC 9116 2.5.5: less than a year

// RFC 9116: whom to tell of a hole. Only the operator knows.
Response security_contact(const ProcessFacts& facts) {
  if (facts.security_contact.empty())
    throw core::Error("not_found", "the operator gave no contact; meshd serve --security-contact mailto:... does");
  const auto expires = core::SystemClock().wall() + kContactHolds;
  return text(200, "Contact: " + facts.security_contact + "\nExpires: " + core::to_rfc3339(expires) +
                       "\nPreferred-Languages: en\n");
}

}  // namespace

std::vector<Route> document_routes(Services& services, const ProcessFacts& facts) {
  const auto open = [](std::string path, std::string operation, std::function<Response(Request&)> handler) {
    return Route{"GET",           std::move(path), std::move(operation), BodyPolicy::kNone,
                 RunOn::kReactor, Access::kOpen,   std::move(handler)};
  };
  return {
      open("/", "getHome", [](Request&) { return html(embedded::docs_html()); }),
      open("/docs", "getDocs", [](Request&) { return html(embedded::docs_html()); }),
      open("/docs/errors", "getErrorCodes",
           [](Request& request) {
             // Browsers follow a problem's type to here.
             static constexpr std::string_view kForms[] = {"application/json", "text/html"};
             const bool page = preferred_media(request, kForms) == 1;
             return (page ? html(error_page()) : json(200, error_document())).with("Vary", "Accept, Accept-Encoding");
           }),
      open("/.well-known/security.txt", "getSecurityContact", [facts](Request&) { return security_contact(facts); }),
      {"GET", "/docs/ops", "getOpsPage", BodyPolicy::kNone, RunOn::kWorker, Access::kOpen,
       [](Request&) { return html(ops_page()); }},
      open("/openapi.yaml", "getOpenapiYaml",
           [](Request&) { return content(200, "application/yaml", std::string(embedded::openapi_yaml())); }),
      open("/openapi.json", "getOpenapiJson",
           [](Request&) { return json(200, std::string(embedded::openapi_json())); }),
      {"GET", "/v1/info", "getInfo", BodyPolicy::kNone, RunOn::kReactor, Access::kReader,
       [&services, facts](Request&) { return json(200, info_document(services, facts)); }},
      {"GET", "/v1/devices", "listDevices", BodyPolicy::kNone, RunOn::kReactor, Access::kReader,
       [&services](Request&) { return json(200, devices_document(services)); }},
      {"GET", "/v1/ops", "listOps", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [](Request&) { return json(200, ops_document()); }},
      {"GET", "/v1/effects", "listEffectKinds", BodyPolicy::kNone, RunOn::kReactor, Access::kReader,
       [](Request& request) { return json(200, effects_document(request)); }},
  };
}

}  // namespace meshd::api
