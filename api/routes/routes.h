// The route table, by resource: each function gives the rows of one. A handler decodes, calls one service function,
// encodes.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/value.h"
#include "api/http/router.h"
#include "api/json/schema.h"
#include "api/routes/services.h"
#include "api/server/server.h"
#include "service/quotas/limits.h"

namespace meshd::api {

struct HistorySample;

/// The last health check of storage, which probes show: they touch no disk themselves.
struct StorageSample {
  storage::StoreHealth health;
  bool is_fresh = true;  ///< false: the disk has not responded for long
};

/// The other processes of the server, where it has several.
struct RankFacts {
  std::optional<std::string> problem;                 ///< why runs cannot be counted on
  std::vector<std::chrono::nanoseconds> round_trips;  ///< by rank; zero: of rank 0, or none yet
  std::vector<int64_t> kept_bytes;  ///< of arrays in their memory, by rank; rank 0's are counted elsewhere
};

/// Facts about the process for the open routes.
struct ProcessFacts {
  std::string version;
  std::string commit;            ///< that the build was made of; empty: nobody knows
  std::string security_contact;  ///< a URI for /.well-known/security.txt; empty: there is none
  core::SteadyTime started;
  std::function<bool()> is_recovered;  ///< jobs and models of before the start have been taken up again
  std::function<bool()> is_draining;
  std::function<ServerMetrics()> metrics;
  std::function<int64_t()> dropped_log_lines;
  std::function<std::pair<int64_t, int64_t>()> spans;   ///< exported to a collector of traces, and dropped; empty: off
  std::function<std::vector<HistorySample>()> history;  ///< of the last hour, oldest first; empty: there is none
  std::function<StorageSample()> storage;               ///< the last check of the disk; never waits for it
  std::function<RankFacts()> ranks;                     ///< empty: the server is one process
};

/// What the routes of principals use beside the services.
struct PrincipalFacts {
  quotas::Limits limits;                         ///< of each principal
  std::function<std::set<std::string>()> names;  ///< of the tokens file
  std::function<size_t()> reload_tokens;         ///< how many there are; throws invalid_request
  /// Copies all data into a new folder of this name and returns where it is; throws conflict, disk_full.
  std::function<std::string(const std::string& name)> back_up;
};

/// The documents that routes read and write, those inside of others left out: what openapi.yaml is compared with.
using Schemas = std::vector<const SchemaBase*>;
Schemas array_schemas();
Schemas call_schemas();
Schemas callback_schemas();
Schemas document_schemas();
Schemas explain_schemas();
Schemas gradient_schemas();
Schemas health_schemas();
Schemas job_schemas();
Schemas mesh_schemas();
Schemas model_schemas();
Schemas principal_schemas();
Schemas program_schemas();
Schemas queue_schemas();
Schemas session_schemas();
Schemas session_mesh_schemas();
Schemas webhook_schemas();

std::vector<Route> mesh_routes(Services& services);
std::vector<Route> array_routes(Services& services);
std::vector<Route> array_part_routes(Services& services);
std::vector<Route> array_archive_routes(Services& services);
std::vector<Route> zarr_routes(Services& services);
std::vector<Route> call_routes();
std::vector<Route> program_routes(Services& services);
std::vector<Route> explain_routes(Services& services);
std::vector<Route> gradient_routes(Services& services);
std::vector<Route> session_routes(Services& services);
std::vector<Route> session_mesh_routes(Services& services);
std::vector<Route> queue_routes(Services& services);
std::vector<Route> callback_routes(Services& services);
std::vector<Route> job_routes(Services& services);
std::vector<Route> webhook_routes(Services& services);
std::vector<Route> health_routes(Services& services, const ProcessFacts& facts);
std::vector<Route> model_routes(Services& services, const ProcessFacts& facts);
std::vector<Route> principal_routes(Services& services, const PrincipalFacts& facts);
std::vector<Route> document_routes(Services& services, const ProcessFacts& facts);

/// What a stored byte of a row takes while its document is made: the row, its values, and their text.
inline constexpr int64_t kMemoryPerStoredByte = 6;
/// The same without text, and with text of base64.
inline constexpr int64_t kMemoryPerShownByte = 2;
inline constexpr int64_t kMemoryPerBase64Byte = 4;
/// Bounds a page by its bytes: at most 4 MiB of what is stored, or one row, and no more than request.memory has for its
/// document. One thread; the request outlives it.
class PageBudget {
 public:
  explicit PageBudget(Request& request, int64_t memory_per_byte = kMemoryPerStoredByte)
      : request_(request), memory_per_byte_(memory_per_byte) {}
  /// Whether a row of so many stored bytes belongs to the page. Throws memory_full when there is no room for the first.
  bool admit(int64_t stored_bytes);
  /// A row did not belong to it: there is a next page.
  [[nodiscard]] bool is_full() const { return is_full_; }

 private:
  Request& request_;
  int64_t memory_per_byte_;
  int64_t stored_ = 0;
  bool is_empty_ = true, is_full_ = false;
};
/// The page of a list request, bounded by bytes: ?limit= and ?cursor=. Parameters that are neither these nor in
/// `others` are refused. For as long as the request is there.
storage::PageRequest page_of(Request& request, std::initializer_list<std::string_view> others = {});
/// ?encoding= of routes that show effects: json, base64 or none.
ValueEncoding encoding_of(const Request& request);
/// Link: rel="next" where there is another page (`next` is not empty). `cursor` is the query parameter that takes it.
void note_next(Response& response, const Request& request, const std::string& next, std::string_view cursor);
/// A page that is written, with Link as note_next says.
Response list_response(const Request& request, std::string page, const std::string& next,
                       std::string_view cursor = "cursor");
template <typename T>
Response list_response(const Request& request, const Page<T>& page, std::string_view cursor = "cursor") {
  return list_response(request, to_json(page), page.next, cursor);
}
/// A document as the body of a response.
template <typename T>
Response json_of(int status, const T& document) {
  return json(status, to_json(document));
}
/// The text of a body up to the policy's limit; request.memory holds it.
std::string body_text(Request& request, BodyPolicy policy);
/// A body's text as JSON, with the limits of the policy; request.memory holds the values. Throws malformed_json.
Json parse_body(Request& request, std::string text, BodyPolicy policy);
/// The body as JSON, with the limits of the policy; request.memory holds text and values. Throws malformed_json.
Json body_json(Request& request, BodyPolicy policy);
/// The same for operations that may have no body: {} then.
Json optional_body_json(Request& request, BodyPolicy policy);
/// The body of a request that is a document. Throws malformed_json, and `code` with every mistake.
template <typename T>
T read_body(Request& request, core::ErrorCode code = "invalid_request") {
  return read_json<T>(body_json(request, BodyPolicy::kJson), code);
}

}  // namespace meshd::api
