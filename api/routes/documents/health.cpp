// Liveness, readiness, health and metrics: without credentials, on the reactor, from cached state: a busy thread, disk
// or database does not block a probe.
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "api/routes/documents/metrics_text.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

// With less room on the disk a balancer sends new data elsewhere; what comes all the same is taken as far as it fits.
constexpr int64_t kDiskFloorBytes = int64_t{64} << 20;

struct Check {
  std::string name;
  bool ok = true;
  std::optional<std::string> reason = {};
};

/// What is wrong with the disk.
std::optional<std::string> disk_problem(const StorageSample& storage) {
  if (!storage.is_fresh) return "the disk has not answered for seconds";
  if (storage.health.disk_free_bytes > kDiskFloorBytes) return std::nullopt;
  return fmt::format("{} bytes are free on the data folder's disk, ready is a server with more than {}",
                     storage.health.disk_free_bytes, kDiskFloorBytes);
}

std::vector<Check> checks(const ProcessFacts& facts) {
  const StorageSample storage = facts.storage();
  std::vector<Check> out{{"database", storage.health.writable}};
  if (!out.back().ok) out.back().reason = "a write has failed, and nothing is written any more";
  std::optional<std::string> problem = disk_problem(storage);
  out.push_back({"disk", !problem, std::move(problem)});
  out.push_back({"recovery", facts.is_recovered()});
  if (!out.back().ok) out.back().reason = "what waited before the start is being taken up again";
  out.push_back({"draining", !facts.is_draining()});
  if (facts.ranks) {
    problem = facts.ranks().problem;
    out.push_back({"ranks", !problem, std::move(problem)});
  }
  return out;
}

Response readiness(Request& request, const ProcessFacts& facts) {
  const auto list = checks(facts);
  bool ready = true;
  std::string verbose, reason;
  for (const Check& check : list) {
    ready = ready && check.ok;
    if (check.reason) reason += (reason.empty() ? ": " : "; ") + *check.reason;
    verbose += std::string(check.ok ? "[+]" : "[-]") + check.name + (check.ok ? " ok\n" : " failed\n");
  }
  const bool is_verbose = request.query.has("verbose");
  const std::string said = !ready ? "not ready" + reason : is_verbose ? "ready" : "ok";
  Response response = text(ready ? 200 : 503, is_verbose ? verbose + said : said);
  if (!ready) response.headers.set("Retry-After", "2");
  return response;
}

Response startup(const ProcessFacts& facts) {
  if (facts.is_recovered()) return text(200, "ok");
  Response response = text(503, "starting");
  response.headers.set("Retry-After", "1");
  return response;
}

// The state of the server.
struct Health {
  std::string_view status;
  std::vector<Check> checks;
  std::string version;
  int64_t uptime_seconds = 0;
};

}  // namespace

template <>
Schema<Check> make_schema() {
  return {"HealthCheck", {{"name", &Check::name}, {"ok", &Check::ok}, {"reason", &Check::reason}}};
}

template <>
Schema<Health> make_schema() {
  return {"Health",
          {{"status", &Health::status, {.words = {"ok", "unavailable"}}},
           {"checks", &Health::checks},
           {"version", &Health::version},
           {"uptime_seconds", &Health::uptime_seconds, {.low = 0}}}};
}

Schemas health_schemas() { return {&schema<Health>()}; }

namespace {

Response health_document(Services& services, const ProcessFacts& facts) {
  const std::vector<Check> list = checks(facts);
  const bool good = std::all_of(list.begin(), list.end(), [](const Check& check) { return check.ok; });
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(services.clock.steady() - facts.started).count();
  Response response = json_of(good ? 200 : 503, Health{good ? "ok" : "unavailable", list, facts.version, uptime});
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
       [facts](Request&) { return startup(facts); }},
      {"GET", "/health", "getHealth", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [&services, facts](Request&) { return health_document(services, facts); }},
      {"GET", "/metrics", "getMetrics", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [&services, facts](Request&) {
         return content(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(services, facts));
       }},
  };
}

}  // namespace meshd::api
