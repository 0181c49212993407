// What the results of a run hold of the engine's memory once the run is over.
#pragma once

#include <cstdint>
#include <memory>

namespace meshd::device {

class Scheduler;

/// Bytes of results that stay among the planned ones until it is destroyed; runs that wait for memory may start then.
/// Whoever keeps the results keeps it beside them, or counts them elsewhere. Moves. One thread at a time, any thread;
/// it may outlive the engine.
///
/// Example: four clients have results of 240 MB written to disk by an engine with 800 MB. The runs of three of them are
/// done when the fourth asks: its run starts when the first result is written.
class ResultMemory {
 public:
  ResultMemory() = default;
  ResultMemory(std::shared_ptr<Scheduler> scheduler, int64_t bytes);
  ~ResultMemory();
  ResultMemory(ResultMemory&& other) noexcept;
  ResultMemory& operator=(ResultMemory&& other) noexcept;

  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Scheduler> scheduler_;
  int64_t bytes_ = 0;
};

}  // namespace meshd::device
