// The front as good clients see it: writes, methods, many connections, limits, and going down.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "service/core/error.h"
#include "tests/http/front_fixture.h"

namespace meshd::http_test {

namespace {

using std::chrono::milliseconds;

TEST_F(Front, small_answer_leaves_in_one_write) {
  start();
  RawClient client = connect();
  for (int i = 0; i < 20; ++i) {
    client.send(get(i % 2 == 0 ? "/health" : "/worker"));
    ASSERT_EQ(200, client.receive().value_or(Answer()).status);
  }
  EXPECT_TRUE(eventually([&] { return server_->metrics().socket_writes >= 20; }));
  EXPECT_EQ(20, server_->metrics().socket_writes);
  EXPECT_EQ(20, client.receives());
}

TEST_F(Front, keep_alive_get_waits_for_no_delayed_acknowledgement) {
  start();
  RawClient client = connect();
  std::vector<std::chrono::steady_clock::duration> took;
  for (int i = 0; i < 21; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    client.send(get("/health"));
    ASSERT_TRUE(client.receive().has_value());
    took.push_back(std::chrono::steady_clock::now() - begin);
  }
  std::nth_element(took.begin(), took.begin() + 10, took.end());
  // A delayed acknowledgement is 40 ms on every one of them; a busy machine delays some.
  EXPECT_LT(took[10], milliseconds(20));
}

TEST_F(Front, head_is_get_without_body) {
  start();
  for (const char* target : {"/health", "/worker", "/large", "/generated?size=100"}) {
    const Answer whole = ask(get(target));
    RawClient client = connect();
    client.send("HEAD " + std::string(target) + " HTTP/1.1\r\nHost: t\r\n\r\n" + get("/health"));
    const Answer head = client.receive(true).value_or(Answer());
    EXPECT_EQ(200, head.status);
    EXPECT_EQ(whole.header("Content-Length"), head.header("Content-Length")) << target;
    EXPECT_EQ(whole.header("Content-Type"), head.header("Content-Type"));
    EXPECT_EQ(200, client.receive().value_or(Answer()).status) << "bytes of a body after the head";
  }
}

TEST_F(Front, other_methods_get_405_with_allow) {
  start();
  EXPECT_EQ("GET, HEAD, DELETE, OPTIONS", ask("PUT /things/1 HTTP/1.1\r\nHost: t\r\n\r\n").header("Allow"));
  EXPECT_EQ("POST, OPTIONS", ask(get("/things/1:move")).header("Allow"));
  const Answer options = ask("OPTIONS /bulk HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(204, options.status);
  EXPECT_EQ("POST, PUT, OPTIONS", options.header("Allow"));
  EXPECT_EQ(404, ask("OPTIONS /nothing HTTP/1.1\r\nHost: t\r\n\r\n").status);
}

TEST_F(Front, captures_reach_the_handler_decoded) {
  start();
  EXPECT_NE(std::string::npos, ask(get("/things/a%20b")).body.find("capture id=a b\n"));
  const std::string tree = ask(get("/tree/v12/x/y%2B/z?q=1+2&q=3")).body;
  EXPECT_NE(std::string::npos, tree.find("capture n=12\ncapture rest=x/y+/z\nquery q=1 2\nquery q=3\n")) << tree;
  EXPECT_NE(std::string::npos, ask("POST /things/7:move HTTP/1.1\r\nHost: t\r\n\r\n").body.find("capture id=7\n"));
}

TEST_F(Front, post_without_length_is_an_empty_body_at_once) {
  start();
  const auto begin = std::chrono::steady_clock::now();
  const Answer answer = ask("POST /show HTTP/1.1\r\nHost: t\r\nAccept: */*\r\n\r\n");
  EXPECT_EQ(200, answer.status);
  EXPECT_TRUE(answer.body.ends_with("body \n")) << answer.body;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1000));
}

TEST_F(Front, request_id_is_echoed_if_it_is_one) {
  start();
  EXPECT_EQ("abc-1._Z", ask(get("/health", "X-Request-Id: abc-1._Z\r\n")).header("X-Request-Id"));
  EXPECT_TRUE(ask(get("/health", "X-Request-Id: a b\r\n")).header("X-Request-Id").starts_with("req-"));
  const Answer problem = ask(get("/nothing", "X-Request-Id: mine\r\n"));
  EXPECT_NE(std::string::npos, problem.body.find(R"("instance":"mine")")) << problem.body;
}

TEST_F(Front, refused_credentials_are_401_with_a_challenge) {
  api::ServerHooks hooks;
  hooks.authenticate = [](api::Request& request) {
    if (request.headers.get("Authorization") != "Bearer good") throw core::Error("unauthorized", "a token is needed");
    request.principal = "somebody";
  };
  std::atomic<int> finished{0};
  hooks.finish = [&](const api::Request&, api::Response& response) {
    ++finished;
    response.headers.set("Server-Timing", "run;dur=1");
  };
  start({}, hooks);
  const Answer refused = ask(get("/secret"));
  EXPECT_EQ(401, refused.status);
  EXPECT_TRUE(refused.header("WWW-Authenticate").starts_with("Bearer"));
  EXPECT_EQ("run;dur=1", refused.header("Server-Timing"));
  EXPECT_EQ(200, ask(get("/secret", "Authorization: Bearer good\r\n")).status);
  EXPECT_EQ(200, ask(get("/health")).status);
  EXPECT_EQ(3, finished.load());
}

TEST_F(Front, thread_of_the_sockets_that_hangs_is_not_responsive) {
  std::promise<void> go_on;
  const std::shared_future<void> going_on = go_on.get_future().share();
  std::atomic<bool> hangs{false};
  api::ServerHooks hooks;
  hooks.authenticate = [&](api::Request& request) {
    hangs = true;
    going_on.wait();
    request.principal = "somebody";
  };
  start({}, hooks);
  EXPECT_TRUE(server_->is_responsive(milliseconds(10'000)));
  RawClient client = connect();
  client.send(get("/secret"));
  EXPECT_TRUE(eventually([&] { return hangs.load(); }));
  EXPECT_FALSE(server_->is_responsive(milliseconds(50)));
  go_on.set_value();
  EXPECT_TRUE(server_->is_responsive(milliseconds(10'000)));
  EXPECT_EQ(200, client.receive().value_or(Answer()).status);
}

TEST_F(Front, thousand_idle_and_hundred_dripping_clients_delay_nobody) {
  start();
  std::vector<RawClient> idle;
  for (int i = 0; i < 1000; ++i) idle.push_back(connect());
  std::vector<RawClient> dripping;
  for (int i = 0; i < 100; ++i) {
    dripping.push_back(connect());
    // Heads, documents and uploads that do not end.
    dripping.back().send(i % 3 == 0   ? "GET /health HTTP/1.1\r\nHo"
                         : i % 3 == 1 ? "POST /worker HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\nabc"
                                      : "PUT /bulk HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\nabc");
  }
  ASSERT_TRUE(eventually([&] { return server_->metrics().connections_idle == 1000; }));
  std::vector<std::chrono::steady_clock::duration> took;
  for (int i = 0; i < 30; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(200, ask(get(i % 2 == 0 ? "/health" : "/worker")).status);
    took.push_back(std::chrono::steady_clock::now() - begin);
    for (RawClient& client : dripping) client.send("x");
  }
  std::nth_element(took.begin(), took.begin() + 15, took.end());
  EXPECT_LT(took[15], milliseconds(50));
  // Documents that are not whole wait without a thread; uploads are limited to threads of their own.
  EXPECT_LE(server_->metrics().worker_threads, 16 + 48);
}

TEST_F(Front, requests_are_counted_by_operation) {
  start();
  ask(get("/things/1"));
  ask(get("/things/2"));
  ask(get("/nothing"));
  ASSERT_TRUE(eventually([&] { return server_->metrics().requests.size() == 2; }));
  const api::ServerMetrics metrics = server_->metrics();
  EXPECT_EQ(2, metrics.requests.at({"getThing", 200}));
  EXPECT_EQ(1, metrics.requests.at({"unmatched", 404}));
  EXPECT_EQ(2, metrics.durations.at("getThing").count());
  EXPECT_EQ(1, metrics.rejected.at("not_found"));
  EXPECT_EQ(3, metrics.connections_accepted);
  EXPECT_EQ(0, metrics.in_flight);
}

TEST_F(Front, answers_that_ask_to_come_again_are_counted_by_error_code) {
  start();
  EXPECT_EQ(429, ask(get("/busy")).status);
  EXPECT_EQ(429, ask(get("/busy?answers=1")).status) << "a problem that the handler returns";
  ask(get("/nothing"));
  ASSERT_TRUE(eventually([&] { return server_->metrics().requests.size() == 2; }));
  ASSERT_TRUE(eventually([&] { return server_->metrics().in_flight == 0; }));
  EXPECT_EQ((std::map<std::string, int64_t>{{"queue_full", 2}}), server_->metrics().refused);
}

TEST_F(Front, full_queue_is_503_with_retry_after) {
  api::ServerOptions options;
  options.workers = options.workers_max = 2;
  options.worker_queue = 2;
  start(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(connect());
    clients.back().send(get("/wait?ms=300"));
  }
  int served = 0;
  int refused = 0;
  for (RawClient& client : clients) {
    const Answer answer = client.receive().value_or(Answer());
    served += answer.status == 200 ? 1 : 0;
    refused += answer.status == 503 && !answer.header("Retry-After").empty() ? 1 : 0;
  }
  EXPECT_EQ(12, served + refused);
  EXPECT_GE(served, 4);
  EXPECT_GE(refused, 6);
  EXPECT_TRUE(eventually([&] { return server_->metrics().refused["overloaded"] == refused; })) << "before a handler";
  EXPECT_EQ(200, ask(get("/health")).status);
}

TEST_F(Front, handler_learns_that_the_client_is_gone) {
  api::ServerHooks hooks;
  std::atomic<int> over{0};
  hooks.access = [&](const api::AccessRecord& record) { over += record.target.starts_with("/wait") ? 1 : 0; };
  start({}, hooks);
  {
    RawClient client = connect();
    client.send(get("/wait?ms=60000"));
    ASSERT_TRUE(eventually([&] { return server_->metrics().handlers == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return over == 1; }));
}

TEST_F(Front, second_server_on_the_port_is_refused) {
  start();
  api::ServerOptions options;
  options.port = server_->port();
  api::Server second(options, api::Router());
  EXPECT_THROW(second.start(), core::Error);
}

TEST_F(Front, accepting_pauses_at_the_limit_and_goes_on) {
  if (is_over_tls()) GTEST_SKIP() << "a client that is not accepted gets no handshake";
  api::ServerOptions options;
  options.connections = 3;
  start(options);
  std::vector<RawClient> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(connect());
    held.back().send(get("/health"));
    ASSERT_TRUE(held.back().receive().has_value());
  }
  RawClient waiting = connect();
  waiting.send(get("/health"));
  EXPECT_FALSE(waiting.receive(false, milliseconds(200)).has_value());
  held.pop_back();
  EXPECT_TRUE(waiting.receive().has_value());
}

TEST_F(Front, no_descriptors_left_is_said_and_passes) {
  if (is_over_tls()) GTEST_SKIP() << "a client that is not accepted gets no handshake";
  start();
  std::vector<RawClient> clients(3);
  // Descriptors are limited by their number: all numbers below the limit are taken.
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(clients.back().fd()) + 1;
  setrlimit(RLIMIT_NOFILE, &tight);
  std::vector<int> fillers;
  for (int fd = dup(0); fd >= 0; fd = dup(0)) fillers.push_back(fd);
  for (RawClient& client : clients) client.connect(server_->port());
  std::vector<int> statuses;
  for (RawClient& client : clients)
    statuses.push_back(client.receive(false, milliseconds(2000)).value_or(Answer()).status);
  for (const int fd : fillers) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(std::vector<int>({503, 503, 503}), statuses);
  // Each failure is followed by a rest: accepting does not spin.
  EXPECT_GE(server_->metrics().accept_errors, 3);
  EXPECT_LE(server_->metrics().accept_errors, 40);
  EXPECT_TRUE(eventually([&] { return ask(get("/health")).status == 200; }));
}

/// An address of this machine that is not loopback, or "".
std::string outer_address() {
  ifaddrs* list = nullptr;
  std::string found;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const auto& address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    if ((ntohl(address.s_addr) >> 24) == 127) continue;
    char text[INET_ADDRSTRLEN];
    found = inet_ntop(AF_INET, &address, text, sizeof text);
  }
  freeifaddrs(list);
  return found;
}

TEST_F(Front, connections_of_one_address_are_limited_but_for_loopback) {
  const std::string address = outer_address();
  if (address.empty()) GTEST_SKIP() << "this machine has only loopback";
  api::ServerOptions options;
  options.address = "0.0.0.0";
  options.connections_per_address = 4;
  start(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(server_->port(), address);
    clients.back().send(get("/health"));
    ASSERT_TRUE(clients.back().receive().has_value());
  }
  RawClient fifth;
  fifth.connect_socket(server_->port(), address);
  if (is_over_tls()) {
    EXPECT_THROW(fifth.start_tls(), std::runtime_error) << "a handshake to say no would cost more than the answer";
  } else {
    EXPECT_EQ(429, fifth.receive().value_or(Answer()).status);
  }
  for (int i = 0; i < 8; ++i) EXPECT_EQ(200, ask(get("/health")).status);
  EXPECT_EQ(1, server_->metrics().connections_refused);
}

TEST_F(Front, drain_answers_what_was_accepted_and_ends) {
  api::ServerOptions options;
  options.accept_after_drain = milliseconds(150);
  start(options);
  RawClient idle = connect();
  idle.send(get("/health"));
  ASSERT_TRUE(idle.receive().has_value());
  RawClient busy = connect();
  busy.send(get("/wait?ms=600"));
  ASSERT_TRUE(eventually([&] { return server_->metrics().handlers == 1; }));

  server_->begin_drain();
  EXPECT_TRUE(server_->draining());
  // Balancers still get through for a while, on connections that do not live on.
  const Answer late = ask(get("/health"));
  EXPECT_EQ(200, late.status);
  EXPECT_EQ("close", late.header("Connection"));

  std::atomic<bool> whole{false};
  std::thread stopper([&] { whole = server_->stop(); });
  EXPECT_TRUE(idle.closed());
  const Answer answer = busy.receive().value_or(Answer());
  EXPECT_EQ(200, answer.status);
  EXPECT_EQ("close", answer.header("Connection"));
  stopper.join();
  EXPECT_TRUE(whole);
  EXPECT_THROW(connect(), std::runtime_error);
}

TEST_F(Front, drain_that_takes_too_long_breaks_off) {
  api::ServerOptions options;
  options.accept_after_drain = milliseconds(0);
  options.drain_timeout = milliseconds(200);
  start(options);
  RawClient busy = connect();
  busy.send(get("/wait?ms=60000"));
  // A handshake counts as work, too.
  ASSERT_TRUE(eventually([&] { return server_->metrics().handlers == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(server_->stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(5000));
  EXPECT_FALSE(busy.receive().has_value());
}

TEST_F(Front, stopping_under_load_leaves_no_request_half_answered) {
  api::ServerOptions options;
  options.accept_after_drain = milliseconds(20);
  start(options);
  const uint16_t port = server_->port();
  std::atomic<int> answered{0};
  std::atomic<int> half{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      try {
        while (true) {
          RawClient client(port);
          for (int k = 0; k < 50; ++k) {
            client.send(get(i % 2 == 0 ? "/health" : "/worker"));
            const std::string head = client.receive_until("\r\n\r\n");
            if (head.empty()) break;
            if (client.receive_bytes(88).size() != 88) ++half;
            ++answered;
            if (head.find("Connection: close") != std::string::npos) break;
          }
        }
      } catch (const std::runtime_error&) {
        // The listener is gone.
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return answered > 200; }));
  EXPECT_TRUE(server_->stop());
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(0, half.load());
}

}  // namespace

}  // namespace meshd::http_test
