// The profile of a run: what each step took, and when its executions began and ended. Of a loop or a branch, the steps
// inside of it are in its time, too. Steps of a loop that is executed as one step are counted and have no time of their
// own.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "service/core/clock.h"

namespace meshd::device {

/// All executions of one step together.
struct StepStats {
  int32_t step = 0;  ///< Step::number
  int64_t count = 0;
  std::chrono::nanoseconds time{0};
};

/// One execution.
struct StepEvent {
  int32_t step = 0;
  std::chrono::nanoseconds start{0};  ///< from the begin of the run
  std::chrono::nanoseconds time{0};
};

struct RunProfile {
  std::vector<StepStats> steps;   ///< by Step::number
  std::vector<StepEvent> events;  ///< of the first kMostEvents executions that ended, in the order of their ends
  int64_t dropped_events = 0;
  int64_t page_faults = 0;  ///< of the whole process from the begin of the run to its end
  int64_t wake_ups = 0;     ///< threads of the pool that were told of work meanwhile, for this run and others
};

/// Counts of the process that a profile takes the difference of.
struct ProcessCounts {
  int64_t page_faults = 0, wake_ups = 0;
};

/// Measures a run's steps. One thread at a time: that which has the run.
class StepProfiler {
 public:
  static constexpr size_t kMostEvents = 10'000;

  StepProfiler(int64_t step_count, core::SteadyTime run_start, const ProcessCounts& before)
      : run_start_(run_start), before_(before) {
    profile_.steps.resize(static_cast<size_t>(step_count));
    for (size_t i = 0; i < profile_.steps.size(); ++i) profile_.steps[i].step = static_cast<int32_t>(i);
  }

  /// The step is executed from now on. Again, after it was suspended: nothing changes.
  void begin(int32_t step) {
    if (open_.empty() || open_.back().first != step) open_.emplace_back(step, std::chrono::steady_clock::now());
  }
  /// The step that was begun last, of those that have not ended, ends.
  void end() {
    const auto [step, start] = open_.back();
    open_.pop_back();
    const auto time = std::chrono::steady_clock::now() - start;
    StepStats& stats = profile_.steps[static_cast<size_t>(step)];
    ++stats.count;
    stats.time += time;
    if (profile_.events.size() < kMostEvents) {
      profile_.events.push_back({step, start - run_start_, time});
    } else {
      ++profile_.dropped_events;
    }
  }
  /// Executions whose time is that of the loop around them.
  void count(int32_t step, int64_t executions) { profile_.steps[static_cast<size_t>(step)].count += executions; }
  /// At the end of the run.
  RunProfile take(const ProcessCounts& now) {
    profile_.page_faults = now.page_faults - before_.page_faults;
    profile_.wake_ups = now.wake_ups - before_.wake_ups;
    return std::move(profile_);
  }

 private:
  const core::SteadyTime run_start_;
  const ProcessCounts before_;
  RunProfile profile_;
  std::vector<std::pair<int32_t, core::SteadyTime>> open_;  ///< steps around the current one, and it
};

}  // namespace meshd::device
