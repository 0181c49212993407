// What waits in the queue of the log, which spdlog bounds by lines alone, and what was lost.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace meshd::api {

/// Any thread.
class QueueAccount {
 public:
  QueueAccount(int64_t most_lines, int64_t most_bytes) : most_lines_(most_lines), most_bytes_(most_bytes) {}

  /// False, and the line is counted as lost, when so many bytes more do not fit.
  bool enter(int64_t bytes) {
    const std::lock_guard held(mutex_);
    if (lines_ == most_lines_ || bytes_ + bytes > most_bytes_) {
      ++lost_;
      return false;
    }
    ++lines_;
    bytes_ += bytes;
    return true;
  }
  /// Lines that have entered are written, or lost.
  void leave(int64_t lines, int64_t bytes) {
    const std::lock_guard held(mutex_);
    bytes_ -= bytes;
    lines_ -= lines;
    if (lines_ == 0) empty_.notify_all();
  }
  void wait_until_empty(std::chrono::seconds patience) {
    std::unique_lock held(mutex_);
    empty_.wait_for(held, patience, [this] { return lines_ == 0; });
  }
  /// Lines could not be written.
  void add_lost(int64_t lines) {
    const std::lock_guard held(mutex_);
    lost_ += lines;
  }
  [[nodiscard]] int64_t lost() const {
    const std::lock_guard held(mutex_);
    return lost_;
  }

 private:
  const int64_t most_lines_, most_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  int64_t lines_ = 0, bytes_ = 0, lost_ = 0;
};

}  // namespace meshd::api
