// Liveness, readiness, health and metrics: answered without credentials, on the reactor, from what is known already: no
// thread, disk or database that is busy keeps a probe waiting.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "api/codecs/json.h"
#include "api/routes/documents/metrics_text.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

// Below this much room on the disk nothing new is taken.
constexpr int64_t kDiskFloorBytes = int64_t{64} << 20;

struct Check {
  std::string name;
  bool ok = true;
};

std::vector<Check> checks(const ProcessFacts& facts) {
  const StorageSample storage = facts.storage();
  return {{"database", storage.health.writable},
          {"disk", storage.is_fresh && storage.health.disk_free_bytes > kDiskFloorBytes},
          {"recovery", true},
          {"draining", !facts.is_draining()}};
}

Response readiness(Request& request, const ProcessFacts& facts) {
  const auto list = checks(facts);
  bool ready = true;
  std::string verbose;
  for (const Check& check : list) {
    ready = ready && check.ok;
    verbose += std::string(check.ok ? "[+]" : "[-]") + check.name + (check.ok ? " ok\n" : " failed\n");
  }
  Response response = text(ready ? 200 : 503, request.query.has("verbose") ? verbose + (ready ? "ready" : "not ready")
                                              : ready                      ? "ok"
                                                                           : "not ready");
  if (!ready) response.headers.set("Retry-After", "2");
  return response;
}

Response health_document(Services& services, const ProcessFacts& facts) {
  bool good = true;
  std::string items;
  for (const Check& check : checks(facts)) {
    good = good && check.ok;
    items += (items.empty() ? "" : ",") + std::string("{\"name\":") + quote(check.name) +
             ",\"ok\":" + (check.ok ? "true" : "false") + "}";
  }
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(services.clock.steady() - facts.started).count();
  Response response = json(good ? 200 : 503, std::string("{\"status\":\"") + (good ? "ok" : "unavailable") +
                                                 "\",\"checks\":[" + items + "],\"version\":" + quote(facts.version) +
                                                 ",\"uptime_seconds\":" + std::to_string(uptime) + "}");
  if (!good) response.headers.set("Retry-After", "2");
  return response;
}

}  // namespace

std::vector<Route> health_routes(Services& services, const ProcessFacts& facts) {
  return {
      {"GET", "/livez", "getLivez", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [](Request&) { return text(200, "ok"); }},
      {"GET", "/readyz", "getReadyz", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [facts](Request& request) { return readiness(request, facts); }},
      {"GET", "/startupz", "getStartupz", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [](Request&) { return text(200, "ok"); }},
      {"GET", "/health", "getHealth", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [&services, facts](Request&) { return health_document(services, facts); }},
      {"GET", "/metrics", "getMetrics", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [&services, facts](Request&) {
         return content(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(services, facts));
       }},
  };
}

}  // namespace meshd::api
