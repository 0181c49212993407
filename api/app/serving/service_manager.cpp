#include "api/app/serving/service_manager.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace meshd::api {
namespace {

std::optional<int64_t> positive_number(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value <= 0) return std::nullopt;
  return value;
}

}  // namespace

ServiceManager::ServiceManager(const char* socket, const char* watchdog_usec, const char* watchdog_pid)
    : socket_(socket == nullptr ? "" : socket) {
  if (watchdog_pid != nullptr && positive_number(watchdog_pid) != ::getpid()) return;
  if (const auto period = positive_number(watchdog_usec)) watchdog_ = std::chrono::microseconds(*period);
}

bool ServiceManager::ready(const std::string& status) const { return tell(fmt::format("READY=1\nSTATUS={}", status)); }

bool ServiceManager::reloading() const {
  // With the time, systemd 253 and later know for which signal this is the answer (Type=notify-reload).
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return tell(
      fmt::format("RELOADING=1\nMONOTONIC_USEC={}", int64_t{now.tv_sec} * 1'000'000 + int64_t{now.tv_nsec} / 1000));
}

bool ServiceManager::stopping(std::chrono::seconds patience) const {
  return tell(
      fmt::format("STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC={}", std::chrono::microseconds(patience).count()));
}

bool ServiceManager::alive() const { return tell("WATCHDOG=1"); }

bool ServiceManager::tell(const std::string& lines) const {
  if (socket_.empty()) return true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The longest path has no room for its zero byte, and needs none.
  if ((socket_[0] != '/' && socket_[0] != '@') || socket_.size() > sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const ssize_t sent =
      ::sendto(descriptor, lines.data(), lines.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
  ::close(descriptor);
  return sent == static_cast<ssize_t>(lines.size());
}

}  // namespace meshd::api
