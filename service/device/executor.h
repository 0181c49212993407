// Where runs are submitted: the engine of one process (engine.h), or what spreads a run over several processes
// (service/hosts/coordinator.h). Whoever has runs to execute knows this interface alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "service/tensor/buffer.h"

namespace meshd::device {

class Run;
struct EngineOptions;
struct RunOutcome;
struct RunRequest;

struct EngineStats {
  int64_t queued = 0;
  int64_t running = 0;
  int64_t planned_bytes = 0;  ///< of running runs, of results that are still in use, and lent
  int64_t runs_done = 0;
  int64_t runs_failed = 0;
  std::vector<int64_t> device_queue;  ///< runs in each device's queue, the running one included
  std::vector<std::chrono::nanoseconds> device_busy;
};

/// Any thread.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Queues a run. `done` is called once, on a thread of the executor (or in submit() with on_callers_thread); it must
  /// not block. Throws, and then never calls `done`: invalid_argument (counts, sizes), too_few_devices (a device id out
  /// of range), memory_exceeded (planned bytes can never fit).
  virtual std::shared_ptr<Run> submit(RunRequest request, std::function<void(RunOutcome)> done) = 0;

  /// A run is about to be submitted: a thread that sleeps may wake up meanwhile. A hint.
  virtual void expect_run() {}

  [[nodiscard]] virtual const EngineOptions& options() const = 0;
  [[nodiscard]] virtual int threads() const = 0;
  [[nodiscard]] virtual EngineStats stats() const = 0;
  /// So many devices, those with the shortest queues first, among equal ones by id. Throws too_few_devices.
  [[nodiscard]] virtual std::vector<int64_t> least_loaded(int64_t count) const = 0;
  [[nodiscard]] virtual const std::shared_ptr<tensor::BufferPool>& pool() const = 0;
  /// So many of the bytes that runs plan, for somebody else, where they are free. Whoever has them gives them back.
  [[nodiscard]] virtual bool try_lend(int64_t bytes) = 0;
  virtual void take_back(int64_t bytes) = 0;
  /// A run on these devices keeps them while it waits for its client: it cannot step aside, because other processes
  /// execute it, too.
  [[nodiscard]] virtual bool keeps_devices(std::span<const int64_t> devices) const = 0;
};

}  // namespace meshd::device
