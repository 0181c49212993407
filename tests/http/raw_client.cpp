#include "tests/http/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "api/http/characters.h"
#include "tests/http/transport.h"

namespace meshd::http_test {

std::string Answer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (api::equal_ignoring_case(key, name)) return value;
  }
  return {};
}

RawClient::RawClient() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) throw std::runtime_error("no socket");
}

void RawClient::connect(uint16_t port, const std::string& address) {
  connect_socket(port, address);
  if (is_over_tls()) start_tls();
}

void RawClient::connect_socket(uint16_t port, const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    throw std::runtime_error("cannot connect");
}

void RawClient::start_tls() { tls_ = std::make_shared<TlsClient>(fd_); }

RawClient::~RawClient() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawClient::send(std::string_view bytes) {
  if (tls_) return tls_->send(bytes);
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void RawClient::finish_sending() {
  if (tls_) tls_->finish_sending();
  ::shutdown(fd_, SHUT_WR);
}

ssize_t RawClient::read_some(char* destination, size_t size, std::chrono::steady_clock::time_point deadline) {
  if (tls_) return tls_->receive(destination, size, deadline);
  const auto left = std::chrono::duration_cast<Milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  pollfd wait{fd_, POLLIN, 0};
  if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0) return 0;
  const ssize_t count = ::recv(fd_, destination, size, 0);
  return count > 0 ? count : -1;
}

RawClient::More RawClient::read_more(std::chrono::steady_clock::time_point deadline) {
  pending_.erase(0, std::exchange(begin_, 0));
  const size_t before = pending_.size();
  constexpr size_t kStep = 256 * 1024;
  pending_.resize(before + kStep);
  const ssize_t count = read_some(pending_.data() + before, kStep, deadline);
  pending_.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (count == 0) return More::kTimeout;
  if (count < 0) return More::kEnd;
  ++receives_;
  return More::kBytes;
}

std::string RawClient::receive_until(std::string_view text, Milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    const size_t found = pending_.find(text, begin_);
    if (found != std::string::npos) return take(found + text.size() - begin_);
    if (read_more(deadline) != More::kBytes) return {};
  }
}

std::string RawClient::receive_bytes(size_t enough, Milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (pending_.size() - begin_ < enough && read_more(deadline) == More::kBytes) {
  }
  return take(std::min(enough, pending_.size() - begin_));
}

std::string RawClient::take(size_t size) {
  begin_ += size;
  return pending_.substr(begin_ - size, size);
}

std::optional<Answer> RawClient::receive(bool to_head, Milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const std::string head = receive_until("\r\n\r\n", patience);
  if (!head.starts_with("HTTP/1.1 ") || head.size() < 12) return std::nullopt;
  Answer answer;
  answer.status = std::atoi(head.c_str() + 9);
  for (size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
    const size_t end = head.find("\r\n", at);
    const std::string_view line = std::string_view(head).substr(at, end - at);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    answer.headers.emplace_back(line.substr(0, colon), api::trim(line.substr(colon + 1)));
    at = end + 2;
  }
  if (answer.status < 200) return answer;
  if (to_head || answer.status == 204 || answer.status == 304) return answer;
  const auto left = [&] {
    return std::chrono::duration_cast<Milliseconds>(deadline - std::chrono::steady_clock::now());
  };
  if (answer.header("Transfer-Encoding") == "chunked") {
    while (true) {
      const std::string line = receive_until("\r\n", left());
      if (line.empty()) return std::nullopt;
      const size_t size = std::strtoull(line.c_str(), nullptr, 16);
      const std::string chunk = receive_bytes(size + 2, left());
      if (chunk.size() != size + 2) return std::nullopt;
      if (size == 0) return answer;
      answer.body += chunk.substr(0, size);
    }
  }
  const std::string length = answer.header("Content-Length");
  if (length.empty()) {
    while (read_more(deadline) == More::kBytes) {
    }
    answer.body = take(pending_.size() - begin_);
    return answer;
  }
  const size_t size = std::strtoull(length.c_str(), nullptr, 10);
  answer.body = receive_bytes(size, left());
  return answer.body.size() == size ? std::optional(answer) : std::nullopt;
}

bool RawClient::closed(Milliseconds patience) {
  return begin_ == pending_.size() && read_more(std::chrono::steady_clock::now() + patience) == More::kEnd;
}

}  // namespace meshd::http_test
