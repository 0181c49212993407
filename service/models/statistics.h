// What a version of a model has done, as Triton counts it: https://github.com/triton-inference-server/server,
// docs/protocol/extension_statistics.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "service/core/clock.h"

namespace meshd::models {

/// How often, and how long together.
struct DurationCount {
  int64_t count = 0;
  int64_t nanoseconds = 0;

  void add(std::chrono::nanoseconds time, int64_t times = 1) {
    count += times;
    nanoseconds += time.count() * times;
  }
};

/// Durations of the parts of one batch; each of its requests took as long.
struct BatchTimes {
  std::chrono::nanoseconds input{0};   ///< rows of the requests joined
  std::chrono::nanoseconds infer{0};   ///< the run
  std::chrono::nanoseconds output{0};  ///< results gathered and divided
};

/// Counters only grow. Not synchronised.
struct ModelStatistics {
  int64_t inference_count = 0;  ///< rows of requests that succeeded; a request without batch dimension is one
  int64_t execution_count = 0;  ///< batches that ran
  std::optional<core::WallTime> last_inference;
  DurationCount success, fail, queue, input, infer, output;  ///< of requests
  struct OfSize {
    DurationCount input, infer, output;
  };
  std::map<int64_t, OfSize> batches;  ///< by rows

  void add_batch(int64_t rows, const BatchTimes& times) {
    OfSize& size = batches[rows];  // may throw: before anything is counted
    ++execution_count;
    size.input.add(times.input);
    size.infer.add(times.infer);
    size.output.add(times.output);
  }
  void add_success(int64_t rows, std::chrono::nanoseconds all, std::chrono::nanoseconds waited,
                   const BatchTimes& times) {
    inference_count += rows;
    success.add(all);
    queue.add(waited);
    input.add(times.input);
    infer.add(times.infer);
    output.add(times.output);
  }
};

}  // namespace meshd::models
