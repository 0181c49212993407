// A rank that is not 0: an engine and a compiler, no HTTP and no database. It makes the plans that rank 0 names, takes
// part in the runs that rank 0 begins, and gives it their effects and results.
//
// 1. kWelcome: it makes its engine with the settings of all ranks, and answers whether it can take part.
// 2. kPrepare: compiles the plan's recipe and answers with the plan's digest.
// 3. kBegin: for each argument's shard that its devices hold, takes the entry that rank 0 names (residents.h), reads it
//    from its disk, or expects it from rank 0, and submits the run at once, so that all ranks queue runs in one order.
//    The run waits until the last shard is there.
// 4. An effect goes to rank 0. Where it has results, the run waits for the reply; others follow each other, some at
//    once.
// 5. When the run is over, it sends the shards of results that rank 0 has from it, and then how the run ended. Results
//    that rank 0 may want to store or to keep here stay until kRelease.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/device/engine.h"
#include "service/hosts/messages.h"
#include "service/hosts/own_disk.h"
#include "service/hosts/protocol.h"

namespace meshd::hosts {

struct WorkerOptions {
  int threads = 0;          ///< EngineOptions::threads
  std::string environment;  ///< Welcome::environment, of this process
  size_t cache_entries = 512;
  int64_t cache_bytes = int64_t{1} << 30;  ///< of the compiler
  int64_t array_bytes = 0;                 ///< of arrays that it keeps in memory
  int64_t with_runs_bytes = 0;             ///< of these and of running runs
  std::string data = {};                   ///< the data folder, with its own in it; empty: it has no disk
  storage::FatalHandler fatal = {};        ///< with a disk
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
  /// For how long rank 0, which pings, has not been heard of (Messages::silence). Any thread; it may be called when the
  /// worker is gone.
  [[nodiscard]] std::function<std::chrono::nanoseconds()> silence() const;

 private:
  class WorkerRun;
  /// A shard of an array that rank 0 has told it to keep.
  struct Entry {
    tensor::BufferRef buffer;
    bool is_there = false;
    std::optional<core::Error> error;  ///< why it has not come, until rank 0, which may name it still, drops it
    std::vector<std::shared_ptr<WorkerRun>> waiting;
  };
  using EntryRef = std::shared_ptr<Entry>;
  void on_control(int peer, Control kind, std::string_view text);
  void welcome(const Welcome& welcome);
  void prepare(const Prepare& prepare);
  void begin(const Begin& begin);
  /// The run's arguments, of the shards that its devices hold.
  std::vector<device::RunArgument> find_arguments(const std::shared_ptr<WorkerRun>& run,
                                                  const std::vector<ArgumentShard>& shards);
  /// What the run gets of an argument's shard.
  tensor::BufferRef find_shard(const std::shared_ptr<WorkerRun>& run, const ArgumentShard& how,
                               const device::MessageKey& key, int64_t bytes);
  void read_shard(const std::shared_ptr<WorkerRun>& run, const ArgumentShard& how, const tensor::BufferRef& buffer,
                  int64_t bytes);
  EntryRef new_entry(const std::shared_ptr<WorkerRun>& run, uint64_t number, const tensor::BufferRef& buffer);
  /// Its bytes have come, or cannot be read.
  void has_come(uint64_t number, const EntryRef& entry, const std::optional<core::Error>& error);
  /// Of a run that could not begin: entries that it was to begin with are lost, those that it was to take are gone.
  void settle_entries(const std::vector<ArgumentShard>& shards);
  /// Sends the run's results that rank 0 has from here, and how it ended.
  void ended(const WorkerRun& run, const std::vector<device::ResultPlace>& places, device::RunOutcome outcome);
  void drop(const std::vector<uint64_t>& entries);
  void became(const Became& message);
  void serve_disk(DiskRequest request);
  std::shared_ptr<WorkerRun> find(uint64_t run);
  void over(uint64_t run);

  Network& network_;
  const WorkerOptions options_;
  const std::shared_ptr<tensor::BufferPool> pool_;

  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::deque<std::function<bool()>> work_;  // for serve(); false: it is the last
  std::map<uint64_t, compile::LoweredRef> plans_;
  std::map<uint64_t, std::shared_ptr<WorkerRun>> runs_;
  std::map<uint64_t, EntryRef> entries_;
  struct Held {
    compile::LoweredRef lowered;
    std::vector<std::vector<tensor::BufferRef>> results;
    device::ResultMemory memory;  ///< of `results`, unless they wait for other runs (RunRequest::results_wait)
  };
  std::map<uint64_t, Held> held_;  // by run

  // Made in welcome(), before the first run.
  std::vector<int> rank_of_device_;
  std::unique_ptr<compile::Compiler> compiler_;
  std::shared_ptr<Messages> messages_;
  std::unique_ptr<storage::FileSystem> files_;
  std::unique_ptr<OwnDisk> disk_;
  std::unique_ptr<device::Engine> engine_;  // last: its threads use the rest
};

}  // namespace meshd::hosts
