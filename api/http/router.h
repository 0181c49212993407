// The table of routes: one row for each operation of the OpenAPI document. 404, 405, Allow, HEAD and OPTIONS follow
// from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/http.h"
#include "api/http/roles.h"

namespace meshd::api {

/// Which bodies a route takes. All but kBulk are limited by a number; small ones are taken in before the handler runs,
/// so that a slow client holds no thread.
enum class BodyPolicy {
  kNone,       ///< no body; one that comes is refused with 413 when it is not empty
  kJson,       ///< control document, at most 4 MiB
  kProgram,    ///< program text, at most 64 MiB
  kInline,     ///< documents with inline arrays, at most 256 MiB
  kForm,       ///< the same, or a form (multipart/form-data) with such a document and files
  kValues,     ///< the same, or a file of arrays alone; the handler holds it to its type
  kInference,  ///< of the Open Inference Protocol: JSON, or JSON with tensors behind it, at most 256 MiB
  kBulk,       ///< array bytes, limited by what the handler sets (quota)
};

/// Where the handler runs.
enum class RunOn {
  kWorker,   ///< may wait: files, database, jobs, bodies that stream
  kReactor,  ///< answered at once on the thread that read the request (saves 25 us); must never wait
};

/// Who may call it. The contract has the same as `x-role` of the operation.
enum class Access {
  kOpen,    ///< health, readiness: no credentials needed
  kReader,  ///< GETs, and callback requests that change nothing
  kUser,    ///< whatever makes, changes or runs something
  kAdmin,   ///< the server itself
};

/// The role that a token needs at least; nothing for kOpen.
constexpr std::optional<Role> role_needed(Access access) {
  switch (access) {
    case Access::kOpen:
      return std::nullopt;
    case Access::kReader:
      return Role::kReader;
    case Access::kUser:
      return Role::kUser;
    case Access::kAdmin:
      return Role::kAdmin;
  }
  return Role::kAdmin;
}

/// One row. `path` is a template: literal segments, "{name}", "{name}:verb", "v{name}", and one "{name...}",
/// which takes one segment or more, joined by '/', up to the literal segments behind it; "{name...}:verb" ends a
/// template. "{name}" never matches a segment with a ':' or an encoded '/'; in "{name...}" both are part of the name. A
/// literal path may end with '/'.
/// Example: of "/by-name/{name...}" and "/by-name/{name...}/data", "/by-name/a/data" matches the second with "a", and
/// "/by-name/a%2Fdata" the first with "a/data".
struct Route {
  std::string method;  ///< GET, POST, PUT, PATCH, DELETE; HEAD and OPTIONS are derived
  std::string path;
  std::string operation_id;
  BodyPolicy body = BodyPolicy::kNone;
  RunOn run_on = RunOn::kWorker;
  Access access = Access::kUser;
  std::function<Response(Request&)> handler;
  /// Of kWorker rows that take a body: whether this request is known to end within some 50 us without waiting. It then
  /// runs on the thread that read it when that serves nobody else. Must not wait, and is given the body; for a request
  /// that is not, it may tell others what is about to come.
  std::function<bool(const Request&, std::string_view)> is_brief = nullptr;
  /// Fields of the response to OPTIONS on the path.
  std::vector<std::pair<std::string, std::string>> options_fields = {};
};

/// The route of a method and a path.
struct RouteMatch {
  const Route* route = nullptr;  ///< null: no such path (allow empty) or not this method
  std::vector<std::pair<std::string, std::string>> captures;
  std::string allow;               ///< the methods of that path for Allow; empty when the path is unknown
  std::string_view path_template;  ///< of the path, even when the method is not allowed; empty when unknown
};

/// Built once, then immutable: any thread may match.
class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  /// Adds a row. Throws core::Error internal for a broken template, or a method and template that are already there.
  void add(Route route);
  /// All rows of several.
  void add(std::vector<Route> routes);

  /// `path` is raw (not decoded). The most literal template wins. HEAD matches GET's row; OPTIONS matches none but
  /// fills allow. Throws malformed_request for escapes that are broken and for "." and ".." segments, uri_too_long over
  /// 2 KiB.
  [[nodiscard]] RouteMatch match(std::string_view method, std::string_view path) const;

  /// The rows in the order of adding: the OpenAPI test and /docs read them. Pointers to rows stay valid.
  [[nodiscard]] const std::vector<std::unique_ptr<Route>>& routes() const;

 private:
  struct Table;
  std::unique_ptr<Table> table_;
};

/// The largest decoded body a policy allows; INT64_MAX for kBulk.
int64_t body_limit(BodyPolicy policy);

}  // namespace meshd::api
