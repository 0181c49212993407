// Every attack in three positions: on a fresh connection, after a good request, and behind a good request in the same
// bytes.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "api/server/server.h"
#include "service/core/error.h"
#include "tests/http/attack_cases.h"
#include "tests/http/raw_client.h"
#include "tests/http/toy_routes.h"
#include "tests/http/transport.h"

namespace meshd::http_test {

namespace {

constexpr const char* kGood = "GET /health HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr int kClients = 12;
// Twelve handshakes at once on a busy machine, under a sanitizer, must fit in it.
constexpr std::chrono::milliseconds kDeadline{1200};
constexpr std::chrono::milliseconds kPatience{6000};
constexpr int64_t kMostGrowth = 32LL << 20;

enum class Position { kFresh, kAfterGood, kPipelined };

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}

class Attacks : public ::testing::Test {
 protected:
  Attacks() {
    api::ServerOptions options;
    options.head_deadline = kDeadline;
    options.idle_deadline = std::chrono::milliseconds(3000);
    options.rate_grace = kDeadline;
    options.site.allowed_hosts = {"t"};
    api::ServerHooks hooks;
    hooks.authenticate = [](api::Request&) { throw core::Error("unauthorized", "no credentials"); };
    hooks.access = [this](const api::AccessRecord& record) {
      std::lock_guard held(mutex_);
      if (record.target == kSmuggled && record.status != 0) smuggled_ = true;
      if (record.status >= 500 && record.status != 505) failed_.insert(record.target);
    };
    if (is_over_tls()) options.tls = server_certificate();
    server_ = std::make_unique<api::Server>(options, toy_router(std::make_shared<ToyState>(), 1 << 20), hooks);
    server_->start();
  }

  void run_all(Position position) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&] {
        for (size_t k = next++; k < cases_.size(); k = next++) {
          SCOPED_TRACE(cases_[k].name);
          run(cases_[k], position);
        }
      });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_FALSE(smuggled_) << "a request hidden in another one was run";
    EXPECT_TRUE(failed_.empty()) << "5xx for " << *failed_.begin();
    expect_health();
  }

  void run(const AttackCase& attack, Position position) {
    RawClient client(server_->port());
    if (position == Position::kAfterGood) {
      client.send(kGood);
      ASSERT_EQ(200, client.receive().value_or(Answer()).status);
    }
    // Whatever arrives after the server has closed is of no interest, so failing to send is right.
    client.send(position == Position::kPipelined ? kGood + attack.bytes : attack.bytes);
    if (position == Position::kPipelined) {
      ASSERT_EQ(200, client.receive(false, kPatience).value_or(Answer()).status) << "the request before the attack";
    }
    for (const int status : attack.statuses) {
      const std::optional<Answer> answer = client.receive(attack.bytes.starts_with("HEAD"), kPatience);
      ASSERT_TRUE(answer.has_value()) << "no answer, expected " << status;
      ASSERT_EQ(status, answer->status) << answer->body;
      EXPECT_EQ("", answer->header("X-Injected"));
      if (status >= 400 && !attack.bytes.starts_with("HEAD")) {
        EXPECT_EQ("application/problem+json", answer->header("Content-Type"));
      }
    }
    if (attack.after == After::kCloses) {
      EXPECT_TRUE(client.closed(kPatience)) << "the connection should have ended";
    } else {
      ASSERT_TRUE(client.send(kGood));
      const std::optional<Answer> again = client.receive(false, kPatience);
      ASSERT_TRUE(again.has_value()) << "the connection should have been kept";
      EXPECT_EQ(200, again->status);
      EXPECT_TRUE(again->body.starts_with(R"({"status":"ok")")) << again->body;
    }
  }

  void expect_health() {
    RawClient client(server_->port());
    client.send(kGood);
    EXPECT_EQ(200, client.receive().value_or(Answer()).status);
  }

  const std::vector<AttackCase> cases_ = attack_cases();
  std::mutex mutex_;
  bool smuggled_ = false;
  std::set<std::string> failed_;
  std::unique_ptr<api::Server> server_;
};

TEST_F(Attacks, list_is_long_enough_and_names_are_unique) {
  std::set<std::string> names;
  for (const AttackCase& attack : cases_) names.insert(attack.name);
  EXPECT_EQ(cases_.size(), names.size());
  EXPECT_GE(cases_.size(), 150U);
}

TEST_F(Attacks, on_a_fresh_connection_are_answered_as_listed) { run_all(Position::kFresh); }

TEST_F(Attacks, after_a_good_request_are_answered_as_listed) { run_all(Position::kAfterGood); }

TEST_F(Attacks, behind_a_good_request_in_the_same_bytes_are_answered_as_listed) { run_all(Position::kPipelined); }

TEST_F(Attacks, leave_no_memory_behind) {
  run_all(Position::kFresh);
  const int64_t before = resident_bytes();
  run_all(Position::kFresh);
  EXPECT_LE(resident_bytes() - before, kMostGrowth);
}

TEST_F(Attacks, silent_connection_is_closed_without_a_word) {
  RawClient client(server_->port());
  EXPECT_TRUE(client.closed(std::chrono::milliseconds(6000)));
}

TEST_F(Attacks, dripping_head_is_cut_at_the_deadline_of_the_whole_head) {
  RawClient client(server_->port());
  const std::string head = "GET /show HTTP/1.1\r\nHost: t\r\nA: " + std::string(1000, 'b');
  const auto start = std::chrono::steady_clock::now();
  size_t sent = 0;
  std::optional<Answer> answer;
  while (sent < head.size() && !answer) {
    if (!client.send(head.substr(sent++, 1))) break;
    answer = client.receive(false, std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(408, answer->status);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kDeadline * 5);
}

TEST_F(Attacks, header_values_reach_handlers_as_they_were_sent) {
  RawClient client(server_->port());
  client.send(
      "GET /show HTTP/1.1\r\nHost: t\r\nIf-Match: \"a%20b\"\r\nREMOTE_ADDR: 10.9.9.9\r\nX_Y: z\r\nEmpty:\r\n\r\n");
  const std::string body = client.receive().value_or(Answer()).body;
  EXPECT_NE(std::string::npos, body.find("header If-Match=\"a%20b\"\n")) << body;
  EXPECT_NE(std::string::npos, body.find("header Empty=\n")) << body;
  EXPECT_EQ(std::string::npos, body.find("REMOTE_ADDR")) << body;
  EXPECT_EQ(std::string::npos, body.find("X_Y")) << body;
}

TEST_F(Attacks, answer_cannot_be_split_and_exceptions_stay_inside) {
  RawClient client(server_->port());
  client.send("GET /inject?v=a%0d%0aX-Injected:%201 HTTP/1.1\r\nHost: t\r\n\r\n");
  std::optional<Answer> answer = client.receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(500, answer->status);
  EXPECT_EQ("", answer->header("X-Injected"));
  client.send("GET /broken HTTP/1.1\r\nHost: t\r\n\r\n");
  answer = client.receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(500, answer->status);
  EXPECT_EQ(std::string::npos, answer->body.find("secret text"));
  for (const auto& [name, value] : answer->headers) EXPECT_EQ(std::string::npos, value.find("secret")) << name;
}

TEST_F(Attacks, ten_overlapping_ranges_of_a_large_body_are_one_body) {
  RawClient client(server_->port());
  client.send("GET /large HTTP/1.1\r\nHost: t\r\nRange: bytes=0-,0-,0-,0-,0-,0-,0-,0-,0-,0-\r\n\r\n");
  const std::optional<Answer> answer = client.receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(200, answer->status);
  EXPECT_EQ(size_t{1} << 20, answer->body.size());
}

}  // namespace

}  // namespace meshd::http_test
