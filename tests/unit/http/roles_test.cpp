// What a role may call: the column of the route table against the role of the token.
#include <gtest/gtest.h>

#include "api/http/http.h"
#include "api/http/router.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

std::string refusal(Access access, Role role) {
  Route route;
  route.operation_id = "doIt";
  route.access = access;
  Request request;
  request.route = &route;
  request.role = role;
  try {
    require_role(request);
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
  return {};
}

TEST(Roles, each_role_may_do_what_lesser_ones_may) {
  EXPECT_EQ("", refusal(Access::kOpen, Role::kReader));
  EXPECT_EQ("", refusal(Access::kReader, Role::kReader));
  EXPECT_EQ("", refusal(Access::kUser, Role::kUser));
  EXPECT_EQ("", refusal(Access::kReader, Role::kAdmin));
  EXPECT_EQ("", refusal(Access::kUser, Role::kAdmin));
  EXPECT_EQ("", refusal(Access::kAdmin, Role::kAdmin));
}

TEST(Roles, lesser_role_is_refused_with_the_role_that_is_needed) {
  EXPECT_TRUE(refusal(Access::kUser, Role::kReader).starts_with("forbidden: doIt needs the role user, "));
  EXPECT_TRUE(refusal(Access::kAdmin, Role::kUser).starts_with("forbidden: doIt needs the role admin, "));
  EXPECT_NE("", refusal(Access::kAdmin, Role::kReader));
}

TEST(Roles, words_are_read_as_they_are_written) {
  for (const Role role : {Role::kReader, Role::kUser, Role::kAdmin}) EXPECT_EQ(role, role_from_word(to_string(role)));
  EXPECT_FALSE(role_from_word("owner"));
  EXPECT_FALSE(role_from_word("Admin"));
}

}  // namespace
}  // namespace meshd::api
