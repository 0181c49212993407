// What the machine can do at most: a server of a page that looks at nothing, and transfers without HTTP.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>

namespace meshd::bench {

/// Answers whatever arrives with the same bytes, by epoll on one thread.
class RawServer {
 public:
  explicit RawServer(std::string answer);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;
  [[nodiscard]] uint16_t port() const { return port_; }

 private:
  void run();

  std::string answer_;
  uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

/// A socket that is connected to a port of loopback.
int connect_to(uint16_t port);
/// Sends or receives all of `bytes` in pieces of 1 MiB; false if the other side ends.
bool send_all(int fd, std::span<const char> bytes);
bool receive_all(int fd, std::span<char> bytes);
/// A listening socket on a free port of loopback.
int listen_on(uint16_t& port);

}  // namespace meshd::bench
