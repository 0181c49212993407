// Who asks, what they may do and how much of it they have left; for admins, everybody.
#include <array>
#include <set>

#include "api/codecs/json.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

// A limit as documents show it: 0 is any number, which is null.
std::string limit_json(int64_t limit) { return limit == 0 ? "null" : std::to_string(limit); }

std::string limits_json(const quotas::Limits& limits) {
  return "{\"array_bytes\":" + limit_json(limits.array_bytes) + ",\"arrays\":" + limit_json(limits.arrays) +
         ",\"sessions\":" + limit_json(limits.sessions) + ",\"programs\":" + limit_json(limits.programs) +
         ",\"meshes\":" + limit_json(limits.meshes) + ",\"waiting_jobs\":" + limit_json(limits.waiting_jobs) +
         ",\"requests_per_second\":" + limit_json(limits.requests_per_second) + "}";
}

std::string usage_json(Services& services, const std::string& principal) {
  using storage::Counted;
  const quotas::ArrayTotals arrays = services.arrays.totals_of(principal);
  const auto counts = services.store.catalog().read([&](storage::Reader& reader) {
    return std::array<int64_t, 3>{reader.count_of(Counted::kSessions, principal),
                                  reader.count_of(Counted::kPrograms, principal),
                                  reader.count_of(Counted::kMeshes, principal)};
  });
  return "{\"array_bytes\":" + std::to_string(arrays.bytes) + ",\"arrays\":" + std::to_string(arrays.arrays) +
         ",\"sessions\":" + std::to_string(counts[0]) + ",\"programs\":" + std::to_string(counts[1]) +
         ",\"meshes\":" + std::to_string(counts[2]) +
         ",\"waiting_jobs\":" + std::to_string(services.jobs.queue_room(principal).waiting) + "}";
}

Response me(const Request& request, Services& services, const PrincipalFacts& facts) {
  request.query.require_known({});
  return json(200, "{\"principal\":" + quote(quotas::display_name(request.principal)) +
                       ",\"role\":" + quote(to_string(request.role)) + ",\"limits\":" + limits_json(facts.limits) +
                       ",\"usage\":" + usage_json(services, request.principal) + "}");
}

// Those of the tokens file, by name; the cursor is the last name of the page before.
Response principals(const Request& request, Services& services, const PrincipalFacts& facts) {
  const storage::PageRequest page = page_of(request);
  const std::set<std::string> names = facts.names();
  std::vector<std::string> items;
  std::string last, next;
  for (auto name = names.upper_bound(page.cursor); name != names.end(); ++name) {
    if (static_cast<int64_t>(items.size()) == page.limit) {
      next = last;
      break;
    }
    items.push_back("{\"principal\":" + quote(*name) + ",\"usage\":" + usage_json(services, *name) + "}");
    last = *name;
  }
  return list_response(request, items, next);
}

}  // namespace

std::vector<Route> principal_routes(Services& services, const PrincipalFacts& facts) {
  return {
      {"GET", "/v1/me", "getMe", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services, facts](Request& request) { return me(request, services, facts); }},
      {"GET", "/v1/principals", "listPrincipals", BodyPolicy::kNone, RunOn::kWorker, Access::kAdmin,
       [&services, facts](Request& request) { return principals(request, services, facts); }},
      {"POST", "/v1/tokens:reload", "reloadTokens", BodyPolicy::kNone, RunOn::kWorker, Access::kAdmin,
       [facts](Request& request) {
         request.query.require_known({});
         return json(200, "{\"tokens\":" + std::to_string(facts.reload_tokens()) + "}");
       }},
  };
}

}  // namespace meshd::api
