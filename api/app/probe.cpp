#include "api/app/probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>

namespace meshd::api {
namespace {

constexpr timeval kPatience{2, 0};

int connect_to(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &list) != 0) return -1;
  int connected = -1;
  for (const addrinfo* entry = list; entry != nullptr && connected < 0; entry = entry->ai_next) {
    const int fd = socket(entry->ai_family, entry->ai_socktype, entry->ai_protocol);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    if (connect(fd, entry->ai_addr, entry->ai_addrlen) == 0) {
      connected = fd;
    } else {
      close(fd);
    }
  }
  freeaddrinfo(list);
  return connected;
}

}  // namespace

bool probe(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "8080" : address.substr(colon + 1);
  const int fd = connect_to(host, port);
  if (fd < 0) {
    std::printf("nobody listens at %s\n", address.c_str());
    return false;
  }
  const std::string request = "GET /readyz HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  std::string answer;
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char piece[512];
    for (ssize_t got = recv(fd, piece, sizeof(piece), 0); got > 0; got = recv(fd, piece, sizeof(piece), 0))
      answer.append(piece, static_cast<size_t>(got));
  }
  close(fd);
  std::printf("%s\n", answer.substr(0, answer.find('\r')).c_str());
  return answer.starts_with("HTTP/1.1 200");
}

}  // namespace meshd::api
