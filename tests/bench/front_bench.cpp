// front_bench: the HTTP front against what the machine can do: a raw epoll server for small answers, plain sockets for
// bulk. Prints ratios: rate and median of small requests, uploads and downloads of raw loopback, a new request beside
// 1,000 idle clients. Client and server share the machine's cores.
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/server/server.h"
#include "tests/bench/raw_server.h"
#include "tests/bench/stopwatch.h"

namespace meshd::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBulk = size_t{256} << 20;
constexpr int kRounds = 5;
constexpr std::chrono::milliseconds kRoundTime{1000};
const std::string kRequest = "GET /health HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Load {
  double per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
};

/// `clients` connections, each asks again as soon as it is answered.
Load load(uint16_t port, int clients) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<Clock::time_point> asked(4096);
  std::vector<int> fds;
  for (int i = 0; i < clients; ++i) {
    const int fd = connect_to(port);
    epoll_event event{EPOLLIN, {.fd = fd}};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
    fds.push_back(fd);
  }
  const auto ask = [&](int fd) {
    asked[static_cast<size_t>(fd)] = Clock::now();
    send_all(fd, kRequest);
  };
  for (const int fd : fds) ask(fd);
  std::vector<double> took;
  std::array<epoll_event, 128> events{};
  std::array<char, 4096> buffer{};
  const auto start = Clock::now();
  while (Clock::now() - start < kRoundTime) {
    const int count = epoll_wait(poll, events.data(), static_cast<int>(events.size()), 100);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (recv(fd, buffer.data(), buffer.size(), 0) <= 0) return {};
      took.push_back(seconds_since(asked[static_cast<size_t>(fd)]) * 1e6);
      ask(fd);
    }
  }
  const double seconds = seconds_since(start);
  for (const int fd : fds) close(fd);
  close(poll);
  std::sort(took.begin(), took.end());
  return {static_cast<double>(took.size()) / seconds, took[took.size() / 2], took[took.size() * 99 / 100]};
}

void compare_load(uint16_t raw, uint16_t ours, int clients) {
  std::vector<double> rate;
  std::vector<double> wait;
  Load last_raw;
  Load last_ours;
  for (int i = 0; i < kRounds; ++i) {
    last_raw = load(raw, clients);
    last_ours = load(ours, clients);
    rate.push_back(last_ours.per_second / last_raw.per_second);
    wait.push_back(last_ours.p50_us / last_raw.p50_us);
  }
  std::printf(
      "small GET, %3d clients: rate %.2f of raw epoll, p50 %.2f of it (last round: %.0f/s, p50 %.0f us, p99 %.0f us; "
      "raw %.0f/s)\n",
      clients, median(rate), median(wait), last_ours.per_second, last_ours.p50_us, last_ours.p99_us,
      last_raw.per_second);
}

/// GB/s of one transfer in each direction without HTTP: a thread at the other end of a socket.
double raw_transfer(std::vector<char>& from, std::vector<char>& to) {
  uint16_t port = 0;
  const int listener = listen_on(port);
  const int out = connect_to(port);
  const int in = accept(listener, nullptr, nullptr);
  const auto start = Clock::now();
  std::thread receiver([&] { receive_all(in, to); });
  send_all(out, from);
  receiver.join();
  const double seconds = seconds_since(start);
  close(in);
  close(out);
  close(listener);
  return static_cast<double>(kBulk) / seconds / 1e9;
}

double upload(uint16_t port, const std::vector<char>& from) {
  const int fd = connect_to(port);
  const std::string head =
      "PUT /bulk HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(kBulk) + "\r\n\r\n";
  std::array<char, 4096> answer{};
  const auto start = Clock::now();
  const bool whole = send_all(fd, head) && send_all(fd, from) && recv(fd, answer.data(), answer.size(), 0) > 0;
  const double seconds = seconds_since(start);
  close(fd);
  return whole && std::string_view(answer.data()).starts_with("HTTP/1.1 201")
             ? static_cast<double>(kBulk) / seconds / 1e9
             : 0;
}

double download(uint16_t port, std::vector<char>& to) {
  const int fd = connect_to(port);
  const auto start = Clock::now();
  send_all(fd, std::string("GET /bulk HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  // The head lies in front of the data; its few bytes change nothing.
  const bool whole = receive_all(fd, to);
  const double seconds = seconds_since(start);
  close(fd);
  return whole ? static_cast<double>(kBulk) / seconds / 1e9 : 0;
}

void compare_bulk(uint16_t port, std::vector<char>& mine) {
  std::vector<char> theirs(kBulk, 'y');
  std::vector<double> raw;
  std::vector<double> up;
  std::vector<double> down;
  for (int i = 0; i < kRounds; ++i) {
    raw.push_back(raw_transfer(mine, theirs));
    up.push_back(upload(port, mine));
    down.push_back(download(port, theirs));
  }
  std::printf("256 MiB: raw loopback %.2f GB/s, upload %.2f (ratio %.2f), download %.2f (ratio %.2f)\n", median(raw),
              median(up), median(up) / median(raw), median(down), median(down) / median(raw));
}

double new_request_us(uint16_t port) {
  std::vector<double> took;
  for (int i = 0; i < 201; ++i) {
    std::array<char, 4096> answer{};
    const auto start = Clock::now();
    const int fd = connect_to(port);
    send_all(fd, kRequest);
    recv(fd, answer.data(), answer.size(), 0);
    took.push_back(seconds_since(start) * 1e6);
    close(fd);
  }
  return median(took);
}

long resident_kib() {
  long pages = 0;
  long resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * 4;
}

void compare_idle(uint16_t port) {
  constexpr int kIdle = 1000;
  const double alone = new_request_us(port);
  const long before = resident_kib();
  std::vector<int> idle;
  for (int i = 0; i < kIdle; ++i) {
    idle.push_back(connect_to(port));
    std::array<char, 4096> answer{};
    send_all(idle.back(), kRequest);
    recv(idle.back(), answer.data(), answer.size(), 0);
  }
  const long after = resident_kib();
  const double crowded = new_request_us(port);
  for (const int fd : idle) close(fd);
  std::printf("1,000 idle: new request %.0f us, %.0f us without (ratio %.2f); %.1f KiB each\n", crowded, alone,
              crowded / alone, static_cast<double>(after - before) / kIdle);
}

int run() {
  api::ServerOptions options;
  options.accept_after_drain = std::chrono::milliseconds(0);
  api::Router router;
  const std::string text = R"({"status":"ok","version":"0.1.0","devices":8,"note":"88 bytes, as in the limits' page"})";
  router.add({"GET", "/health", "getHealth", api::BodyPolicy::kNone, api::RunOn::kReactor, api::Access::kOpen,
              [&](api::Request&) { return api::json(200, text); }});
  // One buffer for all, as an array whose memory was used before.
  const auto array = std::make_shared<std::vector<char>>(kBulk, 'x');
  router.add({"PUT", "/bulk", "putBulk", api::BodyPolicy::kBulk, api::RunOn::kWorker, api::Access::kOpen,
              [&](api::Request& request) {
                request.body().read_exactly(std::as_writable_bytes(std::span(*array)));
                request.body().expect_end();
                return api::json(201, "{}");
              }});
  router.add(
      {"GET", "/bulk", "getBulk", api::BodyPolicy::kNone, api::RunOn::kReactor, api::Access::kOpen, [&](api::Request&) {
         return api::memory(200, "application/octet-stream", {{std::as_bytes(std::span(*array))}, array});
       }});
  api::Server server(options, std::move(router));
  server.start();
  const int probe = connect_to(server.port());
  send_all(probe, kRequest);
  std::array<char, 4096> answer{};
  const ssize_t size = recv(probe, answer.data(), answer.size(), 0);
  close(probe);
  const RawServer raw(std::string(answer.data(), static_cast<size_t>(size)));

  compare_load(raw.port(), server.port(), 1);
  compare_load(raw.port(), server.port(), 64);
  std::vector<char> mine(kBulk, 'z');
  compare_bulk(server.port(), mine);
  compare_idle(server.port());
  return server.stop() ? 0 : 1;
}

}  // namespace
}  // namespace meshd::bench

int main() { return meshd::bench::run(); }
