#include "api/routes/repeated.h"

#include <fmt/core.h>

#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::api {

std::string idempotency_key_of(const Request& request) {
  const auto key = request.headers.get("Idempotency-Key");
  if (!key) return {};
  // Proxies differ in which of them they keep: a repeat that came another way would count as a new request.
  if (request.headers.joined("Idempotency-Key") != *key)
    throw core::Error("malformed_request", "Idempotency-Key is given more than once");
  if (key->empty() || key->size() > 255)
    throw core::Error("invalid_request", "Idempotency-Key: expected 1 to 255 characters");
  return std::string(*key);
}

RepeatedRequest::RepeatedRequest(const Request& request, Services& services, std::string_view content) {
  std::string key = idempotency_key_of(request);
  if (key.empty()) return;
  const std::string fingerprint = core::sha256_hex(fmt::format("{}\n{}", request.target, content));
  const std::string& route = request.route->operation_id;
  if (const auto known = services.keys.find(request.principal, route, key, fingerprint)) made_ = known->made;
  key_ = {request.principal, route, std::move(key), fingerprint, "", services.clock.wall()};
}

Response RepeatedRequest::again(const std::function<Response()>& read) {
  try {
    return read().with("Idempotency-Replayed", "true");
  } catch (const core::Error& error) {
    if (error.code() != core::ErrorCode("not_found")) throw;
    throw core::Error("not_found",
                      error.detail() +
                          ": the first request with this Idempotency-Key made it, and it was deleted since, or was not "
                          "complete when its time was up or the server ended; use a new key for a new request");
  }
}

std::string content_facts(const Request& request) {
  std::string facts;
  for (const char* name : {"Content-Type", "Content-Length", "Content-Encoding", "Repr-Digest", "Content-Digest"})
    facts += std::string(request.headers.get(name).value_or("")) + "\n";
  return facts;
}

}  // namespace meshd::api
