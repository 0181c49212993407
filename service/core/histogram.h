// Counts of durations by size, as Prometheus has them. Not synchronised: whoever owns one guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace meshd::core {

class Histogram {
 public:
  /// Upper bounds in seconds, ascending, of all buckets but the last. They must outlive the histogram.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void add(double seconds) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), seconds) - bounds_.begin();
    ++counts_[static_cast<size_t>(bucket)];
    ++count_;
    sum_ += seconds;
  }

  [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
  /// Durations in each bucket (not cumulative); the last has those above all bounds.
  [[nodiscard]] const std::vector<int64_t>& counts() const { return counts_; }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace meshd::core
