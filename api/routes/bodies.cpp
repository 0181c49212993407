#include "api/routes/routes.h"

namespace meshd::api {

Json parse_body(Request& request, std::string text, BodyPolicy policy) {
  const JsonLimits limits = policy == BodyPolicy::kInline ? kInlineLimits : JsonLimits{};
  return Json::parse(std::move(text), limits, &request.memory);
}

std::string body_text(Request& request, BodyPolicy policy) {
  return request.body().read_all(body_limit(policy), request.memory);
}

Json body_json(Request& request, BodyPolicy policy) { return parse_body(request, body_text(request, policy), policy); }

Json optional_body_json(Request& request, BodyPolicy policy) {
  std::string text = body_text(request, policy);
  return parse_body(request, text.empty() ? "{}" : std::move(text), policy);
}

}  // namespace meshd::api
