#include "tests/bench/raw_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace meshd::bench {

namespace {

constexpr size_t kPiece = size_t{1} << 20;

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

int listen_on(uint16_t& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(fd, 1024) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen");
  }
  port = ntohs(address.sin_port);
  return fd;
}

int connect_to(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect");
  }
  no_delay(fd);
  return fd;
}

bool send_all(int fd, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(fd, bytes.data(), std::min(bytes.size(), kPiece), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool receive_all(int fd, std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = recv(fd, bytes.data(), std::min(bytes.size(), kPiece), 0);
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

RawServer::RawServer(std::string answer) : answer_(std::move(answer)), listener_(listen_on(port_)) {
  thread_ = std::thread([this] { run(); });
}

RawServer::~RawServer() {
  stopped_ = true;
  close(connect_to(port_));  // wakes it
  thread_.join();
  close(listener_);
}

void RawServer::run() {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{EPOLLIN, {.fd = listener_}};
  epoll_ctl(poll, EPOLL_CTL_ADD, listener_, &event);
  std::array<epoll_event, 128> events{};
  std::array<char, 4096> buffer{};
  while (!stopped_) {
    const int count = epoll_wait(poll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == listener_) {
        const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        no_delay(client);
        event = {EPOLLIN, {.fd = client}};
        epoll_ctl(poll, EPOLL_CTL_ADD, client, &event);
      } else if (recv(fd, buffer.data(), buffer.size(), 0) <= 0 ||
                 send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL) < 0) {
        close(fd);
      }
    }
  }
  close(poll);
}

}  // namespace meshd::bench
