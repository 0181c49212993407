// A running server with the toy routes, for the tests of the front.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "api/server/server.h"
#include "tests/http/raw_client.h"
#include "tests/http/toy_routes.h"
#include "tests/http/transport.h"
#include "tests/support/eventually.h"

namespace meshd::http_test {

inline constexpr size_t kLargeBytes = size_t{3} << 20;

inline std::string get(const std::string& target, const std::string& fields = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n";
}

using testing::eventually;

class Front : public ::testing::Test {
 protected:
  void start(api::ServerOptions options = {}, api::ServerHooks hooks = {}) {
    options.site.allowed_hosts = {"t"};
    if (is_over_tls()) options.tls = server_certificate();
    server_ = std::make_unique<api::Server>(options, toy_router(state_, kLargeBytes), hooks);
    server_->start();
  }
  RawClient connect() { return RawClient(server_->port()); }
  /// One request on a connection of its own; an empty answer if there is none.
  Answer ask(const std::string& request) {
    RawClient client = connect();
    client.send(request);
    return client.receive(request.starts_with("HEAD")).value_or(Answer());
  }

  std::shared_ptr<ToyState> state_ = std::make_shared<ToyState>();
  std::unique_ptr<api::Server> server_;
};

}  // namespace meshd::http_test
