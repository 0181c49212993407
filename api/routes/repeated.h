// POSTs that a client may repeat under an Idempotency-Key: what the first one made is answered again, for a day, over
// restarts, too. (Runs and jobs: jobs.cpp, which answers with the job.)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/http/http.h"
#include "api/routes/services.h"

namespace meshd::api {

/// The request's Idempotency-Key, empty for none. Throws invalid_request; malformed_request for more than one field.
std::string idempotency_key_of(const Request& request);

/// Example:
///   const RepeatedRequest repeated(request, services, body);
///   if (repeated.made())
///     return repeated.again([&] { return json_of(201, services.sessions.get(*repeated.made(), ...)); });
///   ... services.sessions.create(..., repeated.key()) ...
class RepeatedRequest {
 public:
  /// `content`: what else has to be the same beside path and query; of a body that streams, nothing but its type and
  /// length. Throws idempotency_key_reused.
  RepeatedRequest(const Request& request, Services& services, std::string_view content);

  /// What the first request with this key has made; nothing: this is the first, or has no key.
  [[nodiscard]] const std::optional<std::string>& made() const { return made_; }
  /// To be inserted with what this request makes; nothing: it has no key.
  [[nodiscard]] const std::optional<storage::IdempotencyRow>& key() const { return key_; }
  /// The answer that `read` makes of it, marked as repeated. Where that throws not_found, what the first request has
  /// made is gone, and the error says so.
  [[nodiscard]] static Response again(const std::function<Response()>& read);

 private:
  std::optional<storage::IdempotencyRow> key_;
  std::optional<std::string> made_;
};

/// What stands for the body of an upload.
std::string content_facts(const Request& request);

}  // namespace meshd::api
