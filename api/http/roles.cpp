#include "api/http/roles.h"

#include <fmt/core.h>

#include <array>
#include <string>

#include "api/http/http.h"
#include "api/http/router.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr std::array<std::string_view, 3> kWords = {"reader", "user", "admin"};

}  // namespace

std::string_view to_string(Role role) { return kWords[static_cast<size_t>(role)]; }

std::optional<Role> role_from_word(std::string_view word) {
  for (size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i] == word) return static_cast<Role>(i);
  }
  return std::nullopt;
}

void require_role(const Request& request) {
  const std::optional<Role> needed = role_needed(request.route->access);
  if (!needed || request.role >= *needed) return;
  throw core::Error(
      "forbidden",
      fmt::format("{} needs the role {}, this token has the role {}; the server's file of tokens says who has which "
                  "(meshd serve --tokens FILE; without one, nobody is an admin)",
                  request.route->operation_id, to_string(*needed), to_string(request.role)));
}

}  // namespace meshd::api
