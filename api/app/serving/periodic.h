// Calls a function again and again, on a thread of its own, for work that may wait for a disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace meshd::api {

/// The first call comes one period after the start, and each next one a period after the end of the one before. The
/// destructor waits for a running call.
class Periodic {
 public:
  /// An exception of `call` is passed to `failed`, which must not throw; the next call follows all the same.
  Periodic(std::chrono::milliseconds period, std::function<void()> call,
           std::function<void(const std::string&)> failed);
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  void run();

  const std::chrono::milliseconds period_;
  const std::function<void()> call_;
  const std::function<void(const std::string&)> failed_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace meshd::api
