// The clock interface, which tests replace. Wall time is for documents and logs, steady time for deadlines.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace meshd::core {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
using SteadyTime = std::chrono::steady_clock::time_point;

/// What the process takes for time. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual WallTime wall() const = 0;
  [[nodiscard]] virtual SteadyTime steady() const = 0;
  /// Calls `call` each time that steady time has moved without the system's having passed, until the result is
  /// destroyed: for whoever waits for a time. Only clocks of tests move so; null for others.
  [[nodiscard]] virtual std::shared_ptr<const void> on_move(std::function<void()> /*call*/) const { return nullptr; }
};

/// The system's clocks.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] WallTime wall() const override;
  [[nodiscard]] SteadyTime steady() const override;
};

/// RFC 3339 in UTC with milliseconds: 2026-03-01T12:30:00.125Z.
std::string to_rfc3339(WallTime time);

inline double milliseconds_between(SteadyTime start, SteadyTime end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

}  // namespace meshd::core
