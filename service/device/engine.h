// The execution engine: runs plans on logical devices, many runs at once, on one pool of threads.
//
// Invariant: at most one run holds a device at a time, and the planned bytes of admitted runs, with those of results
// that are still in use, stay within the limit.
//
// 1. submit() checks the request and queues the run (scheduler.h).
// 2. The run starts when it is the next in the fair order of all its devices and its planned bytes fit.
// 3. One thread drives it (run_impl.h); others help only with steps that are worth waking them.
// 4. Runs that share a device alternate in time slices. A run that waits (for a callback reply, a message, or its time
//    slice between two steps) is data and has no thread.
// 5. `done` gets the outcome: outputs, overwritten arguments, statistics, or the error.
//
// Example: devices 0 to 3; a on {0}, b on {0, 1}, c on {1} and d on {2} are submitted in this order, and none yields.
// In: four runs. Out: a and d run; b waits for device 0 and reserves device 1, so c waits too; device_queue is
// {2, 2, 1, 0}, queued 2. After a, b runs; after b, c.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "service/compile/plan/plan.h"
#include "service/core/checkpoint.h"
#include "service/core/clock.h"
#include "service/core/error.h"
#include "service/device/effect_sink.h"
#include "service/device/executor.h"
#include "service/device/held_results.h"
#include "service/device/result_memory.h"
#include "service/device/step_profile.h"
#include "service/device/transport.h"
#include "service/tensor/buffer.h"

namespace meshd::compile {
struct LoweredProgram;
}

namespace meshd::device {

struct EngineOptions {
  int64_t device_count = 8;
  int threads = 0;                 ///< 0: as many as cores
  int64_t memory_limit_bytes = 0;  ///< for all running runs' planned bytes; 0: no limit
  /// Called after some of them were given back, for those that try_lend() has refused: any thread, throws nothing; may
  /// be null.
  std::function<void()> on_memory_back = nullptr;
  /// Labels, by device id; empty: all 0. With a transport: the rank that owns the device.
  std::vector<int> process_of_device = {};
  /// Which of them this process is. Rank 0 orders runs fairly, as one process does; the others take the order of
  /// tickets, which rank 0 gives in the order in which its own runs begin.
  int rank = 0;
  std::shared_ptr<Transport> transport = nullptr;  ///< null: one process, every device is ours
};

/// An argument of a run: a buffer for each distinct shard, in the order of PlanParameter::table, each at least
/// shard_bytes long (local type, padded). Buffers of shards that other ranks own may be null.
struct RunArgument {
  std::vector<tensor::BufferRef> shards;
  /// The run may write these buffers and return them as results: they have no other reader. Only used where the plan
  /// donates; when it is false there, the run copies the argument first.
  bool may_overwrite = false;
  /// Which version of which array it is ("arr_X.v3"): the same bytes whenever it is the same. Empty: of none. For an
  /// executor with other processes, which may have shards of it already.
  std::string version = {};
  /// Shards that are null when the argument is bound, though this process or another one needs them: where they are (by
  /// shard, a name or none), and what reads one. Any thread; it may wait for a disk. The files stay while `load` is
  /// held, until the ranks that read them are told to.
  std::vector<ShardFile> files = {};
  std::function<tensor::BufferRef(int64_t shard)> load = {};
};

/// What a run looks for in the results of its steps.
struct NonfiniteSearch {
  bool nans = false;
  bool infinities = false;
  [[nodiscard]] bool is_on() const { return nans || infinities; }
};

/// The first step that made one of them of values that had none.
struct FirstNonfinite {
  bool is_nan = false;  ///< else an infinity
  std::string op;
  ir::Location location;
  int64_t device = 0;    ///< the first flat device that has it
  int64_t executed = 0;  ///< steps that the run had executed before it
  int32_t step = 0;      ///< Step::number
};

struct RunRequest {
  compile::PlanRef plan;
  /// What the plan is of: for an executor that has other processes make the same plan. The engine does not read it.
  std::shared_ptr<const compile::LoweredProgram> lowered = nullptr;
  std::vector<int64_t> devices;        ///< device id of each entry of the flat device list; empty: 0, 1, 2, ...
  std::vector<RunArgument> arguments;  ///< in the order of Plan::arguments
  /// In place of `arguments`: makes them once the run has its devices and its bytes, so that a queued run holds no
  /// argument in memory. Called at most once, on the thread that begins the run; what takes long there (reading files)
  /// has to be a core::UncheckedCall. What it throws ends the run. `planned_bytes`, what this process allocates or is
  /// given for the run, assume that the run may overwrite what its plan donates.
  std::function<std::vector<RunArgument>(core::Checkpoint&, int64_t planned_bytes)> bind;
  EffectSink* effects = nullptr;  ///< must outlive the run; null: an effect ends the run with effects_not_supported
  std::optional<core::SteadyTime> deadline;
  int64_t step_budget = 0;      ///< steps that may be executed; 0: any number
  double operation_budget = 0;  ///< operations that may be executed, by the plan's estimate; 0: any number
  double byte_budget = 0;       ///< bytes that steps may read and write, by the plan's estimate; 0: any number
  /// Who is charged for the devices' time: principals share it equally, then the sessions of each, then their runs.
  std::string principal;
  std::string session;
  uint64_t ticket = 0;     ///< order among runs with equal virtual time (lower first); 0: behind all that are queued
  uint64_t key = 0;        ///< names the run to other ranks: the same on every rank, never used twice
  ApartShards apart = {};  ///< for an executor with other processes: what it need not bring here
  /// Its results wait for other runs, which may need its memory: RunOutcome::memory is empty, and the caller counts
  /// them.
  bool results_wait = false;
  bool profile = false;  ///< RunStats::profile is filled
  NonfiniteSearch nonfinite;
  /// The caller lends its thread: a run that may start at once begins in submit() and continues there until it stops,
  /// ends, or has had its time slice. For small programs this saves two wake-ups.
  bool on_callers_thread = false;
  /// Called in submit() before the run can begin: a caller that lends its thread gets the run only later.
  std::function<void(const std::shared_ptr<class Run>&)> on_submit;
  /// Called before each step with the number of steps executed; true stops the run until Run::resume(). For tests and
  /// debuggers.
  std::function<bool(int64_t)> pause_before;
  /// Asked when the run has its devices and its bytes; false: its arguments are still on their way, and it waits for
  /// Run::resume(). Empty: they are there.
  std::function<bool()> may_begin;
  /// For a run none of whose devices are this process's: it binds its arguments, executes nothing, and waits for
  /// Run::resume() until this is true.
  std::function<bool()> is_over_elsewhere;
};

struct RunStats {
  int64_t steps = 0;      ///< executed
  double operations = 0;  ///< of these, by the plan's estimate
  double bytes = 0;       ///< that these read and wrote, by the plan's estimate
  int64_t kernel_calls = 0;
  int64_t handoffs = 0;         ///< times the run moved to another thread or shared a step with others
  int64_t peak_bytes = 0;       ///< measured: equals the plan's where every argument that it donates may be overwritten
  int64_t allocated_bytes = 0;  ///< by the run itself
  int64_t messages = 0;
  /// Where several processes took part: bytes of arguments that went to them, and of results that came from them.
  int64_t argument_bytes_sent = 0;
  int64_t result_bytes_received = 0;
  std::chrono::nanoseconds queue_time{0};
  std::chrono::nanoseconds run_time{0};   ///< from start to end, pauses included
  std::chrono::nanoseconds busy_time{0};  ///< on threads
  /// by flat device: its share of busy_time, by bytes and work of its shards
  std::vector<std::chrono::nanoseconds> device_busy;
  std::optional<RunProfile> profile;              ///< where RunRequest::profile asks
  std::optional<FirstNonfinite> first_nonfinite;  ///< where RunRequest::nonfinite asks
};

struct RunOutcome {
  std::optional<core::Error> error;
  /// In the order of Plan::results, a buffer for each distinct shard (null for other ranks' shards, and those that stay
  /// there). A result may be the very buffer of an argument (passed through or donated), and two results may share one:
  /// a later donation must check that the buffer has no other owner.
  std::vector<std::vector<tensor::BufferRef>> outputs;
  /// arguments whose buffers were written or given to a result, failed runs included
  std::vector<int64_t> overwritten;
  RunStats stats;
  ResultMemory memory = {};                     ///< of `outputs`, beside which it is kept
  std::shared_ptr<HeldResults> held = nullptr;  ///< where RunRequest::apart asks for it, and other processes have some
  [[nodiscard]] bool ok() const { return !error.has_value(); }
};

enum class RunState : uint8_t { kQueued, kRunning, kWaiting, kDone };

/// A loop while it runs.
struct RunLoop {
  int32_t line = 0;
  int64_t iterations_done = 0;
  std::optional<int64_t> iterations;  ///< of all; nothing: data decides
};

struct RunProgress {
  RunState state = RunState::kQueued;
  int64_t steps_done = 0;                   ///< an iteration of a loop counts as one more
  std::optional<int64_t> steps_total;       ///< nothing: data decides how many there are
  std::optional<RunLoop> loop;              ///< the outermost loop that it is in
  std::chrono::nanoseconds running_for{0};  ///< since it has its devices and its memory, pauses included
  bool has_loops = false;
  std::string op;  ///< current step
  int32_t line = 0;

  /// By the steps that are done; nothing where their number is not known. Steps differ in length: the estimate is
  /// best for runs that spend their time in loops.
  [[nodiscard]] std::optional<double> fraction() const;
  /// As long as the steps that are left take if they take as long as those before. For runs with loops, whose
  /// iterations are alike, after the first second.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> remaining() const;
};

/// A submitted run. Any thread. Its outcome is delivered even without a holder.
class Run {
 public:
  virtual ~Run() = default;
  /// Continues after a pending effect or a pause. A call that comes too early is remembered, a needless one is
  /// harmless.
  virtual void resume() = 0;
  /// Ends the run with this error at its next checkpoint (in a step, some milliseconds away; README.md names the
  /// library calls that have none), or at once when it is queued or waiting.
  virtual void cancel(core::Error reason) = 0;
  [[nodiscard]] virtual RunProgress progress() const = 0;
};

/// Owns the pool of threads. Its destructor cancels what is left and waits for it.
class Engine final : public Executor {
 public:
  Engine(EngineOptions options, std::shared_ptr<tensor::BufferPool> pool);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::shared_ptr<Run> submit(RunRequest request, std::function<void(RunOutcome)> done) override;
  void expect_run() override;

  [[nodiscard]] const EngineOptions& options() const override;
  [[nodiscard]] int threads() const override;
  [[nodiscard]] EngineStats stats() const override;
  [[nodiscard]] std::vector<int64_t> least_loaded(int64_t count) const override;
  [[nodiscard]] bool try_lend(int64_t bytes) override;
  void take_back(int64_t bytes) override;
  [[nodiscard]] const std::shared_ptr<tensor::BufferPool>& pool() const override;
  [[nodiscard]] bool keeps_devices(std::span<const int64_t> devices) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::device
