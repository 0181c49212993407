// Rank 0 of several: an executor whose runs span the devices of all ranks. It has the engine of rank 0's own devices; a
// run on these alone goes there at once.
//
// A run of several ranks:
// 1. Each rank that owns one of its devices makes the plan from the recipe (a compile record), once; its digest has to
//    be that of rank 0's plan.
// 2. The run waits in the engine of rank 0 for all its devices and its bytes, in the fair order.
// 3. When it begins, rank 0 binds the arguments, gives the run the next ticket, tells the other ranks to begin, and
//    sends each the shards that its devices hold and it has not (residents.h). All ranks queue runs by ticket, so of
//    those that several ranks execute the earliest has what it needs on each of them: there is no circular wait.
// 4. Ranks exchange blocks without rank 0's help. Effects come to rank 0, which emits them in order
//    (ordered_effects.h).
// 5. The first error ends the run on all ranks. When each rank has ended it, results, figures and errors are put
//    together (run_outcome.h), and `done` gets what one process would give. Results that are to be stored may stay
//    where they are (rank_results.h).
//
// Locks: MultiRankRun's own, then `order_`, then those of messages; none is held during a call out.
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
#include <thread>
#include <vector>

#include "service/device/engine.h"
#include "service/hosts/messages.h"
#include "service/hosts/plans.h"
#include "service/hosts/protocol.h"
#include "service/hosts/rank_disks.h"
#include "service/hosts/residents.h"

namespace meshd::hosts {

struct CoordinatorOptions {
  device::EngineOptions engine;  ///< device_count, threads, memory_limit_bytes, on_memory_back; the rest is filled in
  std::vector<std::string> disabled_passes;  ///< of all ranks' plans
  std::string environment;                   ///< Welcome::environment
  std::string mesh;                          ///< Welcome::mesh
  std::chrono::milliseconds ping_every = std::chrono::seconds(1);
  std::chrono::milliseconds silence = std::chrono::seconds(5);     ///< Messages::silence() of a rank that hangs
  std::chrono::milliseconds patience = std::chrono::seconds(120);  ///< for all ranks to be ready, and to stop
};

class MultiRankRun;

/// Any thread.
class Coordinator final : public device::Executor {
 public:
  /// Waits until all ranks are ready. Throws internal with a line fit for a terminal when one cannot take part.
  /// `network` outlives it.
  Coordinator(Network& network, CoordinatorOptions options, std::shared_ptr<tensor::BufferPool> pool);
  /// Cancels runs that are left, and stops the other ranks.
  ~Coordinator() override;
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// As Executor; a run of several ranks ends later with what submit() would throw for one process. `lowered` is
  /// needed.
  std::shared_ptr<device::Run> submit(device::RunRequest request,
                                      std::function<void(device::RunOutcome)> done) override;
  [[nodiscard]] const device::EngineOptions& options() const override { return engine_->options(); }
  [[nodiscard]] int threads() const override { return engine_->threads(); }
  [[nodiscard]] device::EngineStats stats() const override;
  [[nodiscard]] std::vector<int64_t> least_loaded(int64_t count) const override { return engine_->least_loaded(count); }
  [[nodiscard]] const std::shared_ptr<tensor::BufferPool>& pool() const override { return engine_->pool(); }
  [[nodiscard]] bool try_lend(int64_t bytes) override { return engine_->try_lend(bytes); }
  void take_back(int64_t bytes) override { engine_->take_back(bytes); }
  [[nodiscard]] bool keeps_devices(std::span<const int64_t> devices) const override {
    return engine_->keeps_devices(devices);
  }

  /// The other ranks' disks, for the store of rank 0.
  [[nodiscard]] storage::RankBlobs& disks() { return *disks_; }
  /// An array has another version, or none: what ranks keep of it is of no use.
  void forget(std::string_view array);
  /// What each other rank keeps of arrays, by rank.
  [[nodiscard]] std::vector<Residents::Held> kept_arrays() const;

  /// Why runs cannot be counted on: "rank 2 has not answered for 7 s"; nothing when all ranks answer.
  [[nodiscard]] std::optional<std::string> problem() const;
  /// The last round trip to each other rank, by rank; zero: none yet, or rank 0.
  [[nodiscard]] std::vector<std::chrono::nanoseconds> round_trips() const;

 private:
  friend class MultiRankRun;
  friend class RankLoan;
  friend class RankResults;
  struct Rank {
    bool is_ready = false;
    bool has_stopped = false;
    std::string problem;
    std::chrono::nanoseconds round_trip{0};
  };

  /// Where it throws std::bad_alloc it has done nothing, and may be called again.
  void on_control(int peer, Control kind, std::string_view text);
  /// On the coordinator's thread. Tasks throw nothing.
  void later(std::function<void()> task);
  void wait_until_ready();
  void work();
  void ping();
  /// Once no run is left: the other ranks end, as far as they answer.
  void stop();
  std::shared_ptr<MultiRankRun> find(uint64_t run);
  [[nodiscard]] uint64_t oldest_live() const;
  void over(uint64_t run, const device::RunStats& stats, const std::vector<int64_t>& devices);

  Network& network_;
  const CoordinatorOptions options_;
  std::vector<int> rank_of_device_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::condition_variable heard_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::vector<Rank> ranks_;
  std::map<uint64_t, std::shared_ptr<MultiRankRun>> runs_;
  uint64_t last_run_ = 0;
  std::vector<std::chrono::nanoseconds> busy_elsewhere_;  // by device id

  mutable std::mutex order_;  // all ranks are told to begin runs in one order, and what to keep
  uint64_t last_ticket_ = 0;
  Residents residents_;

  std::shared_ptr<Messages> messages_;
  std::unique_ptr<Plans> plans_;
  std::unique_ptr<RankDisks> disks_;
  std::unique_ptr<device::Engine> engine_;
  std::thread worker_;  // last: it uses the rest
};

}  // namespace meshd::hosts
