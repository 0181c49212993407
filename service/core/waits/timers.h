// Timers: call functions at given times, such as deadlines of waits (service/core/waits/fiber.h). One thread for all of
// them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "service/core/clock.h"

namespace meshd::core {

/// Any thread, but for the destructor.
class Timers {
 public:
  /// Names a timer that was set; 0 names none.
  using Id = uint64_t;

  /// Of the system's clock.
  Timers();
  /// A clock of tests moves on its own (Clock::on_move) and is never behind the system's, by which waits end.
  explicit Timers(const Clock& clock);
  /// Functions whose time has not come are not called any more.
  ~Timers();
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  /// Calls `call` once at `time`, on the timers' thread and under no lock; it must not block and must not throw.
  Id at(SteadyTime time, std::function<void()> call);
  /// After it returns the function is not begun any more; one that has begun is not waited for.
  void cancel(Id id);

 private:
  void run();

  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<SteadyTime, Id>, std::function<void()>> calls_;
  std::map<Id, SteadyTime> times_;
  Id last_ = 0;
  bool stopping_ = false;
  std::thread thread_;
  std::shared_ptr<const void> moves_;  ///< of the clock: the first call may be due by then
};

}  // namespace meshd::core
