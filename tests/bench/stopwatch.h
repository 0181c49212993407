// Two sides timed in one run. Prints nothing; one thread.
#pragma once

#include <time.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace meshd::bench {

/// Time of this thread on a processor: a busy machine then blurs the caches only.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Mean of `repeats` runs, in this thread's seconds.
inline double seconds_of(const std::function<void()>& run, int repeats = 1) {
  const double start = thread_seconds();
  for (int i = 0; i < repeats; ++i) run();
  return (thread_seconds() - start) / repeats;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Median seconds of both, measured in turn so that a busy neighbour disturbs both alike; `repeats` runs a round, or as
/// many as take 20 ms.
inline std::pair<double, double> compare(const std::function<void()>& ours, const std::function<void()>& peer,
                                         int rounds = 7, int repeats = 0) {
  ours();
  peer();
  if (repeats == 0) repeats = std::max(1, static_cast<int>(0.02 / std::max(1e-7, seconds_of(ours))));
  std::vector<double> a;
  std::vector<double> b;
  for (int round = 0; round < rounds; ++round) {
    a.push_back(seconds_of(ours, repeats));
    b.push_back(seconds_of(peer, repeats));
  }
  return {median(a), median(b)};
}

}  // namespace meshd::bench
