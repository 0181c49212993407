// A rank that is not 0: an engine and a compiler, no HTTP and no database. It makes the plans that rank 0 names, takes
// part in the runs that rank 0 begins, and gives it their effects and results.
//
// 1. kWelcome: it makes its engine with the settings of all ranks, and answers whether it can take part.
// 2. kPrepare: compiles the plan's recipe and answers with the plan's digest.
// 3. kBegin: allocates a buffer for each argument's shard that its devices hold, expects them from rank 0, and submits
//    the run at once, so that all ranks queue runs in one order. The run waits until the last shard is there.
// 4. An effect goes to rank 0. Where it has results, the run waits for the reply; others follow each other, some at
//    once.
// 5. When the run is over, it sends the shards of results that rank 0 has from it, and then how the run ended.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "service/compile/pipeline.h"
#include "service/device/engine.h"
#include "service/hosts/messages.h"
#include "service/hosts/protocol.h"

namespace meshd::hosts {

struct WorkerOptions {
  int threads = 0;          ///< EngineOptions::threads
  std::string environment;  ///< Welcome::environment, of this process
  size_t cache_entries = 512;
  int64_t cache_bytes = int64_t{1} << 30;  ///< of the compiler
};

/// One thread serves; the rest is the network's and the engine's.
class Worker {
 public:
  /// `network` outlives it.
  Worker(Network& network, WorkerOptions options, std::shared_ptr<tensor::BufferPool> pool);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Until rank 0 says stop. Throws internal when it cannot take part.
  void serve();
  /// For how long rank 0, which pings, has said nothing. Any thread; it may be called when the worker is gone.
  [[nodiscard]] std::function<std::chrono::nanoseconds()> silence() const;

 private:
  class WorkerRun;
  void on_control(int peer, Control kind, std::string_view text);
  void welcome(const Welcome& welcome);
  void prepare(const Prepare& prepare);
  void begin(const Begin& begin);
  std::shared_ptr<WorkerRun> find(uint64_t run);
  void over(uint64_t run);

  Network& network_;
  const WorkerOptions options_;
  const std::shared_ptr<tensor::BufferPool> pool_;

  const std::shared_ptr<std::atomic<int64_t>> heard_ = std::make_shared<std::atomic<int64_t>>();  // of the steady clock
  std::mutex mutex_;                                                                              // of what follows
  std::condition_variable wake_;
  std::deque<std::function<bool()>> work_;  // for serve(); false: it is the last
  std::map<uint64_t, compile::LoweredRef> plans_;
  std::map<uint64_t, std::shared_ptr<WorkerRun>> runs_;

  // Made in welcome(), before the first run.
  std::vector<int> rank_of_device_;
  std::unique_ptr<compile::Compiler> compiler_;
  std::shared_ptr<Messages> messages_;
  std::unique_ptr<device::Engine> engine_;  // last: its threads use the rest
};

}  // namespace meshd::hosts
