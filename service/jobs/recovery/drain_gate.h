// Counts requests that wait for their jobs, and jobs that are executed. Once it is closed no request begins to wait; a
// stop waits until both counts are zero.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace meshd::jobs {

/// Any thread.
class DrainGate {
 public:
  /// One of those that are counted, until it is destroyed.
  class Counted {
   public:
    ~Counted();
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    friend class DrainGate;
    Counted(DrainGate& gate, int64_t& count) : gate_(gate), count_(count) {}
    DrainGate& gate_;
    int64_t& count_;
  };
  /// A request that waits for its job, from before that is accepted. Throws draining when it is closed.
  [[nodiscard]] Counted enter();
  /// A job that is executed, accepted before or after it was closed.
  [[nodiscard]] Counted run();

  /// No request enters from now on.
  void close();
  [[nodiscard]] bool is_closed() const;
  /// False: some are still counted when the time is up.
  bool wait_until_empty(std::chrono::milliseconds time);
  /// Jobs that are executed.
  [[nodiscard]] int64_t running() const;

 private:
  mutable std::mutex mutex_;  ///< a leaf
  std::condition_variable changed_;
  int64_t entered_ = 0;
  int64_t running_ = 0;
  bool closed_ = false;
};

}  // namespace meshd::jobs
