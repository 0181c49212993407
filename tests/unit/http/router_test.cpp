// The route table: precedence, captures, and what follows from it.
#include <gtest/gtest.h>

#include "api/http/near_paths.h"
#include "api/http/router.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

Route row(const std::string& method, const std::string& path) {
  return {method,
          path,
          method + path,
          BodyPolicy::kNone,
          RunOn::kReactor,
          Access::kOpen,
          [](Request&) { return no_content(); }};
}

Router table() {
  Router router;
  for (const char* path : {"/", "/v1/arrays", "/v1/arrays/{id}", "/v1/arrays/{id}:move", "/v1/arrays/{id}/data",
                           "/v1/arrays/{id}/{what}", "/v1/arrays/{id}/v{n}/zarr/{path...}", "/v1/arrays/local"}) {
    router.add(row("GET", path));
  }
  router.add(row("DELETE", "/v1/arrays/{id}"));
  router.add(row("POST", "/v1/arrays"));
  return router;
}

std::string found(const Router& router, const std::string& path) {
  const RouteMatch match = router.match("GET", path);
  std::string out(match.path_template);
  for (const auto& [name, value] : match.captures) out += " " + name + "=" + value;
  return out;
}

TEST(Router, most_literal_template_wins) {
  const Router router = table();
  EXPECT_EQ("/", found(router, "/"));
  EXPECT_EQ("/v1/arrays/local", found(router, "/v1/arrays/local"));
  EXPECT_EQ("/v1/arrays/{id} id=lokal", found(router, "/v1/arrays/lokal"));
  EXPECT_EQ("/v1/arrays/{id}:move id=a", found(router, "/v1/arrays/a:move"));
  EXPECT_EQ("/v1/arrays/{id}/data id=a", found(router, "/v1/arrays/a/data"));
  EXPECT_EQ("/v1/arrays/{id}/{what} id=a what=x", found(router, "/v1/arrays/a/x"));
  EXPECT_EQ("/v1/arrays/{id}/v{n}/zarr/{path...} id=a n=3 path=c/0.0", found(router, "/v1/arrays/a/v3/zarr/c/0.0"));
}

TEST(Router, escapes_are_decoded_after_the_path_is_cut) {
  const Router router = table();
  EXPECT_EQ("/v1/arrays/{id} id=\xc3\xa9", found(router, "/v1/arrays/%C3%A9"));
  EXPECT_EQ("/v1/arrays/local", found(router, "/v1/%61rrays/local"));
  EXPECT_EQ("", found(router, "/v1/arrays/a%2Fdata"));
  EXPECT_THROW(found(router, "/v1/arrays/%2e%2E"), core::Error);
}

TEST(Router, names_with_slashes_end_at_the_literals_behind_them) {
  Router router;
  router.add(row("GET", "/by-name/{name...}"));
  router.add(row("GET", "/by-name/{name...}/data"));
  EXPECT_EQ("/by-name/{name...} name=a/b:c", found(router, "/by-name/a/b:c"));
  EXPECT_EQ("/by-name/{name...}/data name=a/b", found(router, "/by-name/a/b/data"));
  EXPECT_EQ("/by-name/{name...} name=a/data", found(router, "/by-name/a%2Fdata"));
  EXPECT_EQ("/by-name/{name...}/data name=a/data", found(router, "/by-name/a%2Fdata/data"));
  EXPECT_EQ("/by-name/{name...} name=data", found(router, "/by-name/data"));
  EXPECT_EQ("", found(router, "/by-name/"));
  EXPECT_EQ("", found(router, "/by-name//data"));
}

TEST(Router, names_with_slashes_may_have_a_verb_behind_them) {
  Router router;
  router.add(row("GET", "/z/{name...}"));
  router.add(row("GET", "/z/{name...}:commit"));
  EXPECT_EQ("/z/{name...}:commit name=a/b", found(router, "/z/a/b:commit"));
  EXPECT_EQ("/z/{name...}:commit name=a:commit/b", found(router, "/z/a:commit/b:commit"));
  EXPECT_EQ("/z/{name...} name=a:commit/b", found(router, "/z/a:commit/b"));
  EXPECT_EQ("/z/{name...} name=:commit", found(router, "/z/:commit"));
}

TEST(Router, unknown_paths_match_nothing) {
  const Router router = table();
  for (const char* path : {"/v1", "/v1/arrays/", "/v1/arrays/a/", "/v1//a", "/v1/arrays/:move", "/v1/arrays/a:fly",
                           "/v1/arrays/a/v/zarr/x", "/v1/arrays/a/v3/zarr", "/v1/arrays/a/v3/zarr/"}) {
    EXPECT_EQ("", found(router, path)) << path;
    EXPECT_EQ("", router.match("GET", path).allow) << path;
  }
}

TEST(Router, allow_lists_the_methods_of_the_path) {
  const Router router = table();
  EXPECT_EQ("GET, HEAD, DELETE, OPTIONS", router.match("PUT", "/v1/arrays/a").allow);
  EXPECT_EQ("GET, HEAD, POST, OPTIONS", router.match("OPTIONS", "/v1/arrays").allow);
  EXPECT_EQ("GET", router.match("HEAD", "/v1/arrays").route->method);
  EXPECT_EQ(nullptr, router.match("get", "/v1/arrays").route);
}

TEST(Router, broken_rows_are_refused) {
  Router router = table();
  EXPECT_THROW(router.add(row("GET", "/v1/arrays")), core::Error);
  EXPECT_THROW(router.add(row("HEAD", "/x")), core::Error);
  EXPECT_THROW(router.add(row("GET", "x")), core::Error);
  EXPECT_THROW(router.add(row("GET", "/{a}{b}")), core::Error);
  EXPECT_THROW(router.add(row("GET", "/{a...}/{b...}")), core::Error);
  EXPECT_THROW(router.add(row("GET", "/b{a...}")), core::Error);
  EXPECT_THROW(router.add(row("GET", "/{a...}:b/c")), core::Error);
  EXPECT_THROW(router.add(row("GET", "/{}")), core::Error);
  EXPECT_THROW(router.add(row("GET", "/a//b")), core::Error);
}

TEST(Router, long_paths_are_refused_before_they_are_read) {
  EXPECT_THROW((void)table().match("GET", "/" + std::string(2048, 'a')), core::Error);
}

TEST(Router, near_paths_are_suggested_with_their_methods) {
  const Router router = table();
  EXPECT_EQ("; did you mean '/v1/arrays' (GET, POST)?", path_advice(router, "/v1/array"));
  EXPECT_EQ("; did you mean '/v1/arrays' (GET, POST)?", path_advice(router, "/arrays/"));
  EXPECT_EQ("; did you mean '/v1/arrays/{id}' (GET, DELETE)?", path_advice(router, "/v1/aarys/a"));
  EXPECT_EQ("; did you mean '/v1/arrays/{id}:move' (GET)?", path_advice(router, "/v1/arrays/a:mvoe"));
  EXPECT_EQ("; did you mean '/v1/arrays/{id}:move' (GET)?", path_advice(router, "/v1/arrays/a:movement"));
  EXPECT_EQ("; did you mean '/v1/arrays/{id}/data' (GET)?", path_advice(router, "/v1/array/a/data"));
  for (const std::string& path : {std::string("/"), std::string("/v1/nothing"), std::string("/v1/arrays/a:fly"),
                                  "/" + std::string(1500, 'a'), std::string(1500, '/'), std::string("/wp-admin")})
    EXPECT_EQ("", path_advice(router, path)) << path.substr(0, 20);
}

}  // namespace
}  // namespace meshd::api
