#include "api/app/auth.h"

#include <fstream>

#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::api {

Authenticator::Authenticator(const std::string& tokens_file) : required_(!tokens_file.empty()) {
  if (!required_) return;
  std::ifstream file(tokens_file);
  if (!file) throw core::Error("internal", "the file of tokens cannot be read: " + tokens_file);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) digests_.insert(core::sha256_hex(line));
  }
}

void Authenticator::operator()(Request& request) const {
  std::string token;
  if (const auto header = request.headers.get("Authorization")) {
    constexpr std::string_view kScheme = "Bearer ";
    if (!header->starts_with(kScheme) || header->size() == kScheme.size()) {
      throw core::Error("unauthorized", "Authorization: expected Bearer and a token");
    }
    token = std::string(header->substr(kScheme.size()));
  } else if (const auto key = request.headers.get("X-Api-Key")) {
    token = std::string(*key);
  }
  if (token.empty()) {
    if (required_) throw core::Error("unauthorized", "send -H 'Authorization: Bearer TOKEN'");
    request.principal.clear();
    return;
  }
  // Looked up by digest: how long a comparison takes says nothing about the token.
  const std::string digest = core::sha256_hex(token);
  if (required_ && !digests_.contains(digest)) throw core::Error("unauthorized", "the token is not known");
  request.principal = "tok_" + digest.substr(0, 32);
}

}  // namespace meshd::api
