// Principals: the caller's role, quotas and usage; for admins, those of all.
#include <algorithm>
#include <set>

#include "api/http/characters.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

// What a principal has now.
struct PrincipalUsage {
  quotas::ArrayTotals arrays;
  int64_t sessions = 0, programs = 0, meshes = 0, waiting_jobs = 0;
};

struct PrincipalDocument {
  std::string principal;
  PrincipalUsage usage;
};

struct Me {
  std::string principal;
  std::string_view role;
  const quotas::Limits& limits;
  PrincipalUsage usage;
};

struct TokensReloaded {
  size_t tokens = 0;
};

struct BackupMade {
  std::string name;
  std::string folder;
};

constexpr size_t kLongestBackupName = 100;

// 0 is any number, which is null.
Field<quotas::Limits> limit(std::string_view name, int64_t quotas::Limits::*member) {
  return {name, [member](const quotas::Limits& limits) { return or_null(unless_zero(limits.*member)); }, {.low = 1}};
}

}  // namespace

template <>
Schema<quotas::Limits> make_schema() {
  using Limits = quotas::Limits;
  return {"PrincipalLimits",
          {limit("array_bytes", &Limits::array_bytes), limit("arrays", &Limits::arrays),
           limit("sessions", &Limits::sessions), limit("programs", &Limits::programs), limit("meshes", &Limits::meshes),
           limit("waiting_jobs", &Limits::waiting_jobs), limit("requests_per_second", &Limits::requests_per_second)}};
}

template <>
Schema<PrincipalUsage> make_schema() {
  using Doc = PrincipalUsage;
  return {"PrincipalUsage",
          {{"array_bytes", [](const Doc& doc) { return doc.arrays.bytes; }, {.low = 0}},
           {"arrays", [](const Doc& doc) { return doc.arrays.arrays; }, {.low = 0}},
           {"sessions", &Doc::sessions, {.low = 0}},
           {"programs", &Doc::programs, {.low = 0}},
           {"meshes", &Doc::meshes, {.low = 0}},
           {"waiting_jobs", &Doc::waiting_jobs, {.low = 0}}}};
}

template <>
Schema<PrincipalDocument> make_schema() {
  return {"Principal", {{"principal", &PrincipalDocument::principal}, {"usage", &PrincipalDocument::usage}}};
}

template <>
Schema<Me> make_schema() {
  return {"Me",
          {{"principal", &Me::principal},
           {"role", &Me::role, {.words = {"reader", "user", "admin"}}},
           {"limits", [](const Me& me) -> const quotas::Limits& { return me.limits; }},
           {"usage", &Me::usage}}};
}

template <>
Schema<TokensReloaded> make_schema() {
  return {"TokensReloaded", {{"tokens", &TokensReloaded::tokens, {.low = 1}}}};
}

template <>
Schema<BackupMade> make_schema() {
  return {"BackupMade", {{"name", &BackupMade::name}, {"folder", &BackupMade::folder}}};
}

Schemas principal_schemas() {
  return {&schema<Me>(), &JsonCodec<Page<PrincipalDocument>>::of(), &schema<TokensReloaded>(), &schema<BackupMade>()};
}

namespace {

PrincipalUsage usage_of(Services& services, const std::string& principal) {
  return {services.arrays.totals_of(principal), services.sessions.count(principal), services.programs.count(principal),
          services.meshes.count(principal), services.jobs.queue_room(principal).waiting};
}

Response me(const Request& request, Services& services, const PrincipalFacts& facts) {
  request.query.require_known({});
  return json_of(200, Me{std::string(quotas::display_name(request.principal)), to_string(request.role), facts.limits,
                         usage_of(services, request.principal)});
}

// Those of the tokens file, by name; the cursor is the last name of the page before.
Response principals(Request& request, Services& services, const PrincipalFacts& facts) {
  const storage::PageRequest page = page_of(request);
  const std::set<std::string> names = facts.names();
  Page<PrincipalDocument> out;
  for (auto name = names.upper_bound(page.cursor); name != names.end(); ++name) {
    if (static_cast<int64_t>(out.items.size()) == page.limit) {
      out.next = out.items.back().principal;
      break;
    }
    out.items.push_back({*name, usage_of(services, *name)});
  }
  return list_response(request, out);
}

// One folder beside others, by a name that no file system reads as a path.
std::string backup_name(const Request& request, const core::Clock& clock) {
  static constexpr std::string_view kKnown[] = {"name"};
  request.query.require_known(kKnown);
  const auto given = request.query.get("name");
  std::string name = given ? std::string(*given) : core::to_rfc3339(clock.wall());
  if (!given) std::replace(name.begin(), name.end(), ':', '-');
  const bool fits = is_plain_name(name, kLongestBackupName) && name.front() != '.';
  if (!fits) {
    throw core::Error("invalid_query",
                      "name: expected 1 to 100 letters, digits, '-', '_' and '.', not '.' first; got " + quote(name));
  }
  return name;
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
         return json_of(200, TokensReloaded{facts.reload_tokens()});
       }},
      {"POST", "/v1/admin/backup", "makeBackup", BodyPolicy::kNone, RunOn::kWorker, Access::kAdmin,
       [&services, facts](Request& request) {
         const std::string name = backup_name(request, services.clock);
         const RepeatedRequest repeated(request, services, "");
         const auto made = [](const std::string& folder) {
           return json_of(201, BackupMade{folder.substr(folder.rfind('/') + 1), folder});
         };
         if (repeated.made()) return repeated.again([&] { return made(*repeated.made()); });
         const std::string folder = facts.back_up(name);
         auto key = repeated.key();
         if (key) key->made = folder;
         services.keys.claim(key);
         return made(folder);
       }},
  };
}

}  // namespace meshd::api
