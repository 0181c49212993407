// What systemd is told of a server that it started (Type=notify): when it is ready, reads its files again, stops, and
// that it still answers. One datagram each to the socket that $NOTIFY_SOCKET names, as sd_notify(3) documents;
// docs/decisions/service-manager.md says why without libsystemd. Where no manager waits for it, nothing is sent.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace meshd::api {

/// Any thread.
class ServiceManager {
 public:
  /// The values of NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, null where a variable is not set. The last two count
  /// only when WATCHDOG_PID is this process or is not set.
  ServiceManager(const char* socket, const char* watchdog_usec, const char* watchdog_pid);

  /// Requests are answered from now on, or again after reloading().
  [[nodiscard]] bool ready(const std::string& status) const;
  /// SIGHUP came; ready() tells the end.
  [[nodiscard]] bool reloading() const;
  /// The server stops, which may take as long as `patience`: the manager's own limit is moved so far.
  [[nodiscard]] bool stopping(std::chrono::seconds patience) const;
  /// To be called within each watchdog() period: who does not is killed and started again.
  [[nodiscard]] bool alive() const;

  /// How long the manager waits for the next alive(); none: it does not.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  /// False when a manager waits, and could not be told.
  [[nodiscard]] bool tell(const std::string& lines) const;

  std::string socket_;  ///< a path, or "@name" of the abstract namespace; empty: no manager
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace meshd::api
