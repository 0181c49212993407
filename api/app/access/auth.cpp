#include "api/app/access/auth.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr std::string_view kScheme = "Bearer ";

std::shared_ptr<const TokenTable> read_table(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) throw core::Error("invalid_request", "the tokens file cannot be read: " + path);
  return std::make_shared<const TokenTable>(TokenTable::parse(text));
}

// Empty when the request has none.
std::string token_of(const Request& request) {
  if (const auto header = request.headers.get("Authorization")) {
    if (!header->starts_with(kScheme) || header->size() == kScheme.size()) {
      throw core::Error("unauthorized", "Authorization: expected Bearer and a token");
    }
    return std::string(header->substr(kScheme.size()));
  }
  return std::string(request.headers.get("X-Api-Key").value_or(""));
}

}  // namespace

Authenticator::Authenticator(std::string tokens_file) : tokens_file_(std::move(tokens_file)) {
  if (is_required()) reload();
}

size_t Authenticator::reload() {
  if (!is_required()) return 0;
  std::shared_ptr<const TokenTable> fresh = read_table(tokens_file_);
  const size_t count = fresh->token_count();
  table_.with([&](std::shared_ptr<const TokenTable>& held) { held = std::move(fresh); });
  return count;
}

std::shared_ptr<const TokenTable> Authenticator::table() const {
  return table_.with([](const std::shared_ptr<const TokenTable>& held) { return held; });
}

std::set<std::string> Authenticator::principals() const {
  return is_required() ? table()->principals() : std::set<std::string>();
}

void Authenticator::operator()(Request& request) const {
  const std::string token = token_of(request);
  if (!is_required()) {
    request.principal = token.empty() ? std::string() : nameless_principal(token);
    request.role = Role::kUser;
    return;
  }
  if (token.empty()) throw core::Error("unauthorized", "send -H 'Authorization: Bearer TOKEN'");
  auto identity = table()->find(token);
  if (!identity) throw core::Error("unauthorized", "the token is not known");
  request.principal = std::move(identity->principal);
  request.role = identity->role;
}

}  // namespace meshd::api
