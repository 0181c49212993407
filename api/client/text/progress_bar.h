// A line on a terminal that tells how far a transfer or a job is. Nothing is written where standard error is no
// terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace meshd::client {

/// "1.5 GiB", "312 B".
std::string bytes_text(int64_t bytes);

/// Erased at its end. One thread.
class ProgressBar {
 public:
  /// `is_wanted`: not --quiet, not --json.
  ProgressBar(std::string label, bool is_wanted);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `total` below 0: not known.
  void bytes(int64_t done, int64_t total);
  /// A line of the caller's: `percent` below 0 is not known.
  void show(double percent, const std::string& text);
  void clear();

 private:
  std::string label_;
  bool is_on_;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point began_, last_;
};

}  // namespace meshd::client
