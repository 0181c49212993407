// The gate as a function of a head. Over HTTP it is tried by tests/http/browsers_test.py.
#include <gtest/gtest.h>

#include "api/fields/cors.h"
#include "api/fields/media_type.h"
#include "api/fields/site_policy.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

using Fields = std::vector<Headers::Field>;

Head head(std::string method, std::string path, std::string host, const Fields& fields = {}) {
  Head out;
  out.method = std::move(method);
  out.path = std::move(path);
  out.authority = std::move(host);
  for (const auto& [name, value] : fields) out.headers.add(name, value);
  return out;
}

/// "", or the code of the refusal.
std::string verdict(const SitePolicy& policy, const Head& request) {
  try {
    (void)policy.admit(request);
    return {};
  } catch (const core::Error& error) {
    EXPECT_FALSE(error.detail().empty());
    return std::string(error.code().word());
  }
}

std::string host_verdict(const SitePolicy& policy, const std::string& host) {
  return verdict(policy, head("GET", "/v1/info", host));
}

SitePolicy at(std::string_view address, SiteOptions options = {}) { return {address, options}; }

TEST(SitePolicy, loopback_server_goes_by_loopback_names_only) {
  const SitePolicy policy = at("127.0.0.1");
  for (const std::string host : {"localhost", "LocalHost:99", "a.localhost", "127.8.8.8", "[::1]:8080", ""})
    EXPECT_EQ("", host_verdict(policy, host)) << host;
  for (const std::string host :
       {"example.org", "localhost.example.org", "192.168.1.5", "0.0.0.0", "[::]", "2130706433"})
    EXPECT_EQ("host_not_allowed", host_verdict(policy, host)) << host;
}

TEST(SitePolicy, server_on_an_address_goes_by_it) {
  const SitePolicy policy = at("192.168.1.5");
  EXPECT_EQ("", host_verdict(policy, "192.168.1.5:8080"));
  EXPECT_EQ("", host_verdict(policy, "[::ffff:192.168.1.5]"));
  EXPECT_EQ("host_not_allowed", host_verdict(policy, "192.168.1.6"));
  EXPECT_EQ("", host_verdict(at("2001:db8::1"), "[2001:0db8:0::1]"));
}

TEST(SitePolicy, server_on_all_addresses_goes_by_any_address_and_no_name) {
  for (const std::string_view all : {"0.0.0.0", "::"}) {
    const SitePolicy policy = at(all);
    EXPECT_EQ("", host_verdict(policy, "192.168.1.5"));
    EXPECT_EQ("", host_verdict(policy, "[2001:db8::1]"));
    EXPECT_EQ("host_not_allowed", host_verdict(policy, "example.org"));
  }
}

TEST(SitePolicy, allowed_hosts_hold_with_any_port_or_with_theirs) {
  const SitePolicy policy = at("127.0.0.1", {{"meshd.example.org", "other.example.org:8443"}, {}, false});
  EXPECT_EQ("", host_verdict(policy, "MESHD.example.org.:1"));
  EXPECT_EQ("", host_verdict(policy, "other.example.org:8443"));
  EXPECT_EQ("host_not_allowed", host_verdict(policy, "other.example.org"));
  EXPECT_EQ("host_not_allowed", host_verdict(policy, "x.meshd.example.org"));
}

TEST(SitePolicy, options_that_are_no_hosts_or_origins_are_refused) {
  for (const std::string text : {"", "*", "*.example.org", "http://a", "a/b", "a:99999"})
    EXPECT_THROW(at("127.0.0.1", {{text}, {}, false}), core::Error) << text;
  for (const std::string text : {"", "*", "null", "https://a/", "a", "https://*.example.org", "https://"})
    EXPECT_THROW(at("127.0.0.1", {{}, {text}, false}), core::Error) << text;
}

TEST(SitePolicy, probes_and_options_are_exempt) {
  const SitePolicy policy = at("127.0.0.1");
  const Fields evil = {{"Origin", "https://example.org"}, {"Sec-Fetch-Site", "cross-site"}};
  for (const std::string path : {"/livez", "/readyz", "/startupz", "/health", "/metrics"})
    EXPECT_EQ("", verdict(policy, head("GET", path, "example.org", evil))) << path;
  EXPECT_EQ("", verdict(policy, head("OPTIONS", "/v1/run", "example.org", evil)));
  EXPECT_NE("", verdict(policy, head("GET", "/livez/", "example.org", evil)));
  EXPECT_NE("", verdict(policy, head("GET", "/docs", "localhost", evil)));
}

TEST(SitePolicy, own_origin_is_scheme_host_and_port_of_host) {
  const SitePolicy policy = at("127.0.0.1");
  const auto ask = [&](const std::string& host, const Fields& fields) {
    return verdict(policy, head("POST", "/v1/run", host, fields));
  };
  EXPECT_EQ("", ask("127.0.0.1:8080", {{"Origin", "http://127.0.0.1:8080"}}));
  EXPECT_EQ("", ask("localhost", {{"Origin", "http://LOCALHOST:80"}}));
  for (const std::string origin :
       {"http://127.0.0.1:3000", "http://127.0.0.1", "https://127.0.0.1:8080", "http://localhost:8080", "null",
        "file://", "http://127.0.0.1:8080@example.org", ""}) {
    EXPECT_EQ("cross_site", ask("127.0.0.1:8080", {{"Origin", origin}})) << origin;
  }
  EXPECT_EQ("cross_site", ask("127.0.0.1", {{"Origin", "http://127.0.0.1"}, {"Origin", "http://127.0.0.1"}}));
  EXPECT_EQ("cross_site", ask("", {{"Origin", "http://127.0.0.1"}}));
}

TEST(SitePolicy, https_page_behind_a_proxy_is_own_when_the_browser_says_so) {
  const SitePolicy policy = at("127.0.0.1", {{"meshd.example.org"}, {}, false});
  const auto ask = [&](const Fields& fields) {
    return verdict(policy, head("POST", "/v1/run", "meshd.example.org", fields));
  };
  EXPECT_EQ("", ask({{"Origin", "https://meshd.example.org"}, {"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_EQ("cross_site", ask({{"Origin", "https://meshd.example.org"}}));
  EXPECT_EQ("cross_site", ask({{"Origin", "https://other.example.org"}, {"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_EQ(
      "", verdict(at("127.0.0.1", {{}, {}, true}), head("POST", "/", "localhost", {{"Origin", "https://localhost"}})));
}

TEST(SitePolicy, links_of_other_sites_may_be_followed_and_nothing_else) {
  const SitePolicy policy = at("127.0.0.1");
  const auto ask = [&](const std::string& method, Fields fields) {
    fields.emplace_back("Sec-Fetch-Site", "cross-site");
    return verdict(policy, head(method, "/docs", "localhost", fields));
  };
  const Fields link = {{"Sec-Fetch-Mode", "navigate"}, {"Sec-Fetch-Dest", "document"}};
  EXPECT_EQ("", ask("GET", link));
  EXPECT_EQ("", ask("HEAD", link));
  EXPECT_EQ("cross_site", ask("POST", link));
  EXPECT_EQ("cross_site", ask("DELETE", link));
  for (const std::string dest : {"iframe", "frame", "object", "embed"})
    EXPECT_EQ("cross_site", ask("GET", {{"Sec-Fetch-Mode", "navigate"}, {"Sec-Fetch-Dest", dest}})) << dest;
  EXPECT_EQ("cross_site", ask("GET", {{"Sec-Fetch-Mode", "no-cors"}, {"Sec-Fetch-Dest", "image"}}));
  EXPECT_EQ("cross_site", ask("GET", {}));
}

TEST(SitePolicy, own_pages_and_typed_addresses_are_fine) {
  const SitePolicy policy = at("127.0.0.1");
  for (const std::string site : {"same-origin", "none", "something-new"})
    EXPECT_EQ("", verdict(policy, head("POST", "/v1/run", "localhost", {{"Sec-Fetch-Site", site}}))) << site;
  EXPECT_EQ("cross_site", verdict(policy, head("GET", "/v1/info", "localhost", {{"Sec-Fetch-Site", "same-site"}})));
}

TEST(SitePolicy, second_field_does_not_hide_the_first) {
  const SitePolicy policy = at("127.0.0.1");
  const auto ask = [&](const Fields& fields) { return verdict(policy, head("GET", "/v1/info", "localhost", fields)); };
  EXPECT_EQ("cross_site", ask({{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_EQ("cross_site", ask({{"Origin", "http://evil.example"}, {"Origin", "http://localhost"}}));
}

TEST(SitePolicy, named_origins_come_in_and_only_they) {
  const SitePolicy policy = at("127.0.0.1", {{}, {"https://app.example.org"}, false});
  const auto admitted = [&](const Fields& fields) {
    return policy.admit(head("POST", "/v1/run", "localhost", fields));
  };
  EXPECT_EQ("https://app.example.org",
            admitted({{"Origin", "https://app.example.org"}, {"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_EQ("", admitted({}));
  for (const std::string origin :
       {"http://app.example.org", "https://app.example.org.evil.example", "https://app.example.org:444"})
    EXPECT_THROW(admitted({{"Origin", origin}}), core::Error) << origin;
  // A name that was made to resolve here is no way around: Host comes first.
  EXPECT_EQ("host_not_allowed",
            verdict(policy, head("POST", "/v1/run", "app.example.org", {{"Origin", "https://app.example.org"}})));
}

TEST(Cors, preflight_lists_the_methods_of_the_path) {
  Headers headers;
  Response response = no_content().with("Allow", "GET, HEAD, DELETE, OPTIONS").with("Vary", "Accept");
  answer_preflight(headers, response);
  EXPECT_FALSE(response.headers.has("Access-Control-Allow-Methods"));
  headers.add("Access-Control-Request-Method", "DELETE");
  answer_preflight(headers, response);
  allow_origin("https://app.example.org", response);
  EXPECT_EQ("GET, HEAD, DELETE, OPTIONS", response.headers.get("Access-Control-Allow-Methods"));
  EXPECT_EQ("https://app.example.org", response.headers.get("Access-Control-Allow-Origin"));
  EXPECT_EQ("Accept, Access-Control-Request-Method, Access-Control-Request-Headers, Origin",
            response.headers.get("Vary"));
  EXPECT_FALSE(response.headers.has("Access-Control-Allow-Credentials"));
}

TEST(MediaType, json_routes_take_json_or_no_type) {
  const auto taken = [](const Fields& fields) {
    Headers headers;
    for (const auto& [name, value] : fields) headers.add(name, value);
    try {
      require_json(headers);
      return true;
    } catch (const core::Error& error) {
      EXPECT_EQ("unsupported_media_type", error.code().word());
      EXPECT_NE(std::string::npos, error.detail().find("-H 'Content-Type: application/json'"));
      return false;
    }
  };
  EXPECT_TRUE(taken({}));
  EXPECT_TRUE(taken({{"Content-Type", "application/json"}}));
  EXPECT_TRUE(taken({{"Content-Type", "Application/JSON ; charset=utf-8"}}));
  for (const std::string type :
       {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "text/json",
        "application/jsonp", "application/problem+json", "text/plain; application/json", "text/plain, application/json",
        "application/json, text/plain", "*/*"}) {
    EXPECT_FALSE(taken({{"Content-Type", type}})) << type;
  }
  EXPECT_FALSE(taken({{"Content-Type", "application/json"}, {"Content-Type", "text/plain"}}));
}

}  // namespace
}  // namespace meshd::api
