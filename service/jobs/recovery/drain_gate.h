// Who is inside of the runner: requests that wait for their jobs, and jobs that are executed. A stop lets nobody in any
// more, and waits until all have left.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace meshd::jobs {

/// Any thread.
class DrainGate {
 public:
  /// A request that waits for its job, from before that is accepted. Throws draining when the server stops.
  class Entered {
   public:
    explicit Entered(DrainGate& gate);
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    DrainGate& gate_;
  };
  /// A job that is executed, accepted before or behind the stop.
  class Running {
   public:
    explicit Running(DrainGate& gate);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    DrainGate& gate_;
  };

  /// Nobody enters from now on.
  void close();
  [[nodiscard]] bool is_closed() const;
  /// False: somebody is still inside when the time is up.
  bool wait_until_empty(std::chrono::milliseconds time);
  /// Jobs that are executed.
  [[nodiscard]] int64_t running() const;

 private:
  void leave(int64_t& count);

  mutable std::mutex mutex_;  ///< a leaf
  std::condition_variable changed_;
  int64_t entered_ = 0;
  int64_t running_ = 0;
  bool closed_ = false;
};

}  // namespace meshd::jobs
