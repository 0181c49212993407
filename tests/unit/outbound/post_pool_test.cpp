// Requests of the server itself, to a receiver in this process.
#include "service/outbound/post_pool.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <string_view>
#include <thread>

// Names of *.silent are asked for until a test has seen what it wanted to see: their server does not answer.
static std::promise<void>* silent_answers = nullptr;

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** out) {
  if (name != nullptr && std::string_view(name).ends_with(".silent")) {
    silent_answers->get_future().wait();
    return EAI_AGAIN;
  }
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, service, hints, out);
}

namespace meshd::outbound {
namespace {

/// Takes one connection, reads a request to the end of its body "ping", and answers with the text.
class Receiver {
 public:
  explicit Receiver(std::string answer) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] { serve(answer); });
  }
  ~Receiver() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  [[nodiscard]] std::string url(const std::string& host = "127.0.0.1") const {
    return "http://" + host + ":" + std::to_string(port_) + "/hook";
  }
  /// After an outcome.
  [[nodiscard]] const std::string& request() const { return request_; }

 private:
  void serve(const std::string& answer) {
    const int client = ::accept(fd_, nullptr, nullptr);
    if (client < 0) return;
    char bytes[4096];
    while (!request_.ends_with("ping")) {
      const ssize_t count = ::recv(client, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      request_.append(bytes, static_cast<size_t>(count));
    }
    ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    if (answer.empty()) ::recv(client, bytes, sizeof bytes, 0);  // until the sender gives up
    ::close(client);
  }

  int fd_;
  uint16_t port_ = 0;
  std::string request_;
  std::thread thread_;
};

const AddressGuard kLoopback({parse_network("127.0.0.0/8").value(), parse_network("::1").value()});

PostOutcome post(PostPool& pool, const std::string& url) {
  std::promise<PostOutcome> outcome;
  pool.post({url, {"X-Test: yes"}, "ping"}, [&](const PostOutcome& got) { outcome.set_value(got); });
  return outcome.get_future().get();
}

TEST(PostPool, posts_fields_and_body) {
  PostPool pool(kLoopback);
  Receiver receiver("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  const PostOutcome outcome = post(pool, receiver.url());
  EXPECT_EQ(outcome.status, 204) << outcome.error;
  EXPECT_TRUE(outcome.is_accepted());
  EXPECT_TRUE(receiver.request().starts_with("POST /hook HTTP/1.1\r\n")) << receiver.request();
  EXPECT_NE(receiver.request().find("X-Test: yes\r\n"), std::string::npos);
}

TEST(PostPool, a_name_is_judged_by_the_address_that_it_resolves_to) {
  PostPool pool{AddressGuard()};
  Receiver receiver("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  const PostOutcome outcome = post(pool, receiver.url("localhost"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.error.find("not a public one"), std::string::npos) << outcome.error;
  EXPECT_EQ(receiver.request(), "");
}

TEST(PostPool, redirects_are_not_followed) {
  PostPool pool(kLoopback);
  Receiver other("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  Receiver receiver("HTTP/1.1 307 Moved\r\nLocation: " + other.url() + "\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(post(pool, receiver.url()).status, 307);
  EXPECT_EQ(other.request(), "");
}

TEST(PostPool, long_answers_are_not_read) {
  PostPool pool(kLoopback);
  Receiver receiver("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + std::string(300'000, 'x'));
  EXPECT_EQ(post(pool, receiver.url()).status, 200);
}

TEST(PostPool, retry_after_is_told) {
  PostPool pool(kLoopback);
  Receiver receiver("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
  const PostOutcome outcome = post(pool, receiver.url());
  EXPECT_EQ(outcome.status, 503);
  EXPECT_EQ(outcome.retry_after, std::chrono::seconds(7));
}

TEST(PostPool, a_receiver_that_never_answers_is_given_up) {
  PostLimits limits;
  limits.whole = std::chrono::milliseconds(100);
  PostPool pool(kLoopback, limits);
  Receiver receiver("");
  const PostOutcome outcome = post(pool, receiver.url());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_FALSE(outcome.error.empty());
}

TEST(PostPool, a_name_that_nobody_resolves_does_not_keep_others_waiting) {
  std::promise<void> answers;
  silent_answers = &answers;
  PostLimits limits;
  limits.connecting = limits.whole = std::chrono::milliseconds(100);
  PostPool pool(kLoopback, limits);
  EXPECT_EQ(post(pool, "http://name.silent/hook").status, 0);
  Receiver receiver("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(post(pool, receiver.url()).status, 204);
  answers.set_value();
}

TEST(PostPool, stopping_ends_what_is_under_way_and_what_comes_later) {
  Receiver receiver("");
  PostPool pool(kLoopback);
  std::promise<PostOutcome> outcome;
  pool.post({receiver.url(), {}, "ping"}, [&](const PostOutcome& got) { outcome.set_value(got); });
  pool.stop();
  EXPECT_EQ(outcome.get_future().get().error, "the server stops");
  EXPECT_EQ(post(pool, receiver.url()).error, "the server stops");
}

}  // namespace
}  // namespace meshd::outbound
