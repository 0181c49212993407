// Roles of principals: what a token may do. The route table has the role that an operation needs (Access in
// api/http/router.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshd::api {

struct Request;

/// Each role may do what the roles before it may.
enum class Role : uint8_t {
  kReader,  ///< reads the principal's data and makes requests that change nothing
  kUser,    ///< makes, changes and deletes the principal's data, and runs programs
  kAdmin,   ///< the operations on the server itself
};

/// "reader", "user", "admin".
std::string_view to_string(Role role);
/// Nothing for any other word.
std::optional<Role> role_from_word(std::string_view word);

/// Throws forbidden, naming the role that the request's route needs, when the request's token has a lesser one. Any
/// thread.
void require_role(const Request& request);

}  // namespace meshd::api
