// One run: its state is data (a stack of frames, a table of pointers), so that it can stop anywhere and continue on
// another thread.
//
// Invariant: exactly one thread drives a run at a time; `phase_` passes it on.
//
// 1. submit() queues it (Phase::kQueued).
// 2. The scheduler starts it: begin() allocates what was planned, one arena and the buffers that may leave.
// 3. drive() executes steps until the run is over, its time slice is over, it waits, or it left a step to several
//    threads (SharedStep).
// 4. A run that waits (for a callback reply, a message, a pause) is Phase::kWaiting; resume() continues it. For a reply
//    it steps aside. A resume() that comes first makes it kResumed, and drive() continues at once.
// 5. finish() takes the outputs, frees, lets others start, calls `done`.
//
// A time slice (`TimeSlice`) is the time for which a run holds its devices: at least 2 ms, and longer while no
// other run waits for them. It ends between two steps, where the run is data and needs no thread; or within one, at a
// checkpoint of each thread that works on the step, where the threads park until the next slice (run_time_slices.cpp).
//
// Example of frames: a loop is step 2 of the program, and step 1 of its body runs in the fourth iteration. In: frames
// [{block 0, index 2}, {the loop's body, index 1, iteration 3}]. A loop's condition and body share one frame; each
// iteration counts as a step.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "service/compile/plan/collective_parts.h"
#include "service/core/checkpoint.h"
#include "service/core/keep_trying.h"
#include "service/core/locked.h"
#include "service/device/active_set.h"
#include "service/device/engine.h"
#include "service/device/local_arena.h"
#include "service/device/scheduler.h"
#include "service/device/worker_pool.h"
#include "service/kernels/elementwise/nonfinite.h"
#include "service/kernels/product/packed_operand.h"

namespace meshd::device {

class RunImpl;
class RunCheckpoint;
class SharedStep;
struct ShardWhile;

/// What runs need of their engine.
struct EngineShared {
  EngineShared(EngineOptions engine_options, std::shared_ptr<tensor::BufferPool> pool, int thread_count)
      : options(std::move(engine_options)),
        buffers(std::move(pool)),
        shared_scheduler(std::make_shared<Scheduler>(
            options.device_count, options.memory_limit_bytes,
            options.transport == nullptr || options.rank == 0 ? Scheduler::Order::kFair : Scheduler::Order::kTickets,
            options.on_memory_back)),
        scheduler(*shared_scheduler),
        workers(thread_count) {}

  const EngineOptions options;
  const std::shared_ptr<tensor::BufferPool> buffers;
  const std::shared_ptr<Scheduler> shared_scheduler;  ///< with the memory that results have (ResultMemory)
  Scheduler& scheduler;
  struct Counters {
    int64_t runs_done = 0;
    int64_t runs_failed = 0;
    std::vector<std::chrono::nanoseconds> device_busy;
  };
  core::Locked<Counters> counters;
  /// Runs that have been submitted and whose `done` has not returned; the engine's end waits for none.
  std::atomic<int64_t> live{0};
  void leave() {
    // notify before the last read of `live` could destroy the engine: under the lock that its end takes.
    const std::lock_guard held(live_mutex);
    live.fetch_sub(1, std::memory_order_acq_rel);
    is_quiet.notify_all();
  }
  std::mutex live_mutex;
  std::condition_variable is_quiet;
  WorkerPool workers;  // last: its threads use the rest
};

/// Starts the time slice of each.
void start_all(const std::vector<QueueEntryRef>& entries);

class RunImpl final : public Run, public Work, public QueueEntry, public std::enable_shared_from_this<RunImpl> {
 public:
  RunImpl(EngineShared& engine, RunRequest request, std::function<void(RunOutcome)> done);

  void resume() override;
  void cancel(core::Error reason) override;
  [[nodiscard]] RunProgress progress() const override;

  /// On a thread of the pool: begins, or continues.
  void work() override;
  /// The run has its devices: it, or the threads of its step that are parked, are queued for the pool.
  void start_slice();
  /// Called once the scheduler has the run in its queue: a run that was cancelled meanwhile needs no devices.
  void withdraw_if_cancelled();
  /// In submit(), when the run may start at once and the caller lends its thread.
  void lend();
  /// Bytes that the scheduler admits it with.
  [[nodiscard]] int64_t planned_bytes() const { return planned_bytes_; }
  void set_timer(std::unique_ptr<Timer> timer) { timer_ = std::move(timer); }

 private:
  friend class SharedStep;
  friend class RunCheckpoint;

  // Bits of attention_, beside kWanted.
  static constexpr uint32_t kCancelled = 2;
  static constexpr uint32_t kAway = 4;  // others have the devices: the step's threads park

  enum class Phase : uint8_t { kQueued, kRunning, kResumed, kWaiting, kDone };
  enum class Next : uint8_t { kGoOn, kFinished, kSuspended, kYield, kHandedOff };

  // A block being executed.
  struct Frame {
    compile::BlockId block = 0;
    size_t index = 0;
    const compile::Step* control = nullptr;  // the loop or branch it belongs to; null: the program
    bool is_condition = false;
    bool is_outer_loop = false;             // no loop is around it
    bool is_by_steps = false;               // loop: its form as one step cannot end it within the budgets
    int64_t iteration = 0;                  // loop: iteration
    int64_t branch = 0;                     // case
    std::vector<int64_t> branch_of_device;  // case, where devices differ
    std::shared_ptr<ActiveSet> active;
    std::shared_ptr<ActiveSet> outer;  // case: the active set around the branches
  };

  // Messages of one collective in flight.
  struct Exchange {
    int64_t visit = 0;
    std::atomic<int64_t> missing{1};  // not arrived, or not sent from this run's memory; one until all are posted
    std::map<std::pair<int64_t, int64_t>, tensor::BufferRef> received;  // by shard of the step and source
    // Shards of the step that several ranks make in parts, and these ranks, ascending
    // (compile/plan/collective_parts.h).
    std::map<int64_t, std::vector<int>> in_parts;
    bool is_made = false;    // our parts are
    bool is_gather = false;  // the messages are parts of results
  };

  // ---- life (run_life.cpp)
  void work_here();
  void close_segment();
  void begin();
  void allocate();
  void bind_argument(size_t number, const compile::Slot& slot);
  /// Of a run that is_cancelled().
  [[nodiscard]] core::Error cancel_reason();
  void drive();
  /// By the thread that owns the run's phase: another thread drives it, as soon as it has its devices.
  void go_on();
  /// Between two steps, when the slice is over: false when others have the devices, or another thread drives the run.
  bool goes_on_after_yield();
  void finish(std::optional<core::Error> error);
  std::vector<std::vector<tensor::BufferRef>> take_outputs();
  /// Of the time that its threads worked, the part of each flat device: by bytes and work of the shards of ours.
  [[nodiscard]] std::vector<std::chrono::nanoseconds> device_busy() const;
  [[nodiscard]] std::vector<int64_t> overwritten() const;
  /// Of the planned bytes those that the results go on to hold.
  [[nodiscard]] int64_t kept_bytes(const RunOutcome& outcome) const;

  // ---- time slices (run_time_slices.cpp)
  void begin_slice_clock();
  [[nodiscard]] bool is_slice_over(core::SteadyTime now) const;
  [[nodiscard]] std::chrono::nanoseconds slice_time() const;
  [[nodiscard]] bool has_to_attend() const {
    return attention_.load(std::memory_order_relaxed) != 0 || engine_.workers.waiting() > 0;
  }
  /// Within a step, on any of its threads.
  void attend(RunCheckpoint& thread);
  void leave_slice(RunCheckpoint& thread);
  void wait_for_slice(RunCheckpoint& thread);
  void throw_if_cancelled() const {
    if (is_cancelled()) throw core::Cancelled();
  }

  // ---- control flow (run_control.cpp)
  Next advance();
  Next execute(const compile::Step& step);
  Next end_of_block();
  Next end_of_condition();
  static void start_body(Frame& frame, const compile::Step& step);
  Next end_of_body();
  void enter_loop(const compile::Step& step);
  /// The condition of the loop in the last frame is false everywhere.
  Next leave_loop(const compile::Step& step);
  Next enter_case(const compile::Step& step);
  bool next_branch(Frame& frame, int64_t from);
  void exchange_slots(const compile::Step& step, ActiveSet& active);
  Next step_done(const compile::Step& step);
  /// Between two steps: whether others get the thread.
  [[nodiscard]] Next look_at_slice() const;
  /// How many times `each` is not more than what is left of a budget.
  static int64_t at_most(double left, double each);
  /// How many iterations the budgets allow beyond what is executed; the condition that ends the loop is paid, too.
  [[nodiscard]] int64_t affordable_iterations(const compile::LoopCost& end, const compile::LoopCost& each) const;
  /// Counts what was executed in one go.
  void note_cost(const compile::LoopCost& cost, int64_t times);
  void note_iterations(const compile::LoopCost& condition, const compile::LoopCost& iteration, int64_t iterations,
                       bool is_over);
  /// At the condition of a loop that can be executed as one step.
  [[nodiscard]] bool is_at_small_while(const Frame& frame) const;
  /// As many iterations as the time slice and the budgets allow.
  Next run_small_while();
  void note_small_while(const compile::Step& step, int64_t iterations, bool is_over);
  /// An integer held by each active shard of `table`; nothing while messages are missing.
  std::optional<std::vector<int64_t>> read_control(const compile::Step& step, bool is_bool);
  [[noreturn]] void fail_at(const compile::Step& step, core::ErrorCode code, const std::string& message) const;

  // ---- kernels and collectives (run_steps.cpp)
  // A lent thread leaves longer steps to the pool, so that its lender gets it back.
  static constexpr double kLentStepNs = 2'000'000;
  Next execute_kernel(const compile::Step& step);
  Next execute_collective(const compile::Step& step);
  Next execute_shards(const compile::Step& step, std::span<const int32_t> shards);
  struct WorkItems {
    int64_t shard = 0;
    int64_t begin = 0;
    int64_t end = 0;
    double estimated_ns = 0;
  };
  /// The scratch of one of the threads that execute a step, and what its kernel has left there.
  struct Lane {
    int64_t scratch_at = 0;
    kernels::PackedOperand* kept = nullptr;  ///< null: nothing stays
    std::byte* const* pointers = nullptr;    ///< instead of the run's
  };
  /// Cut into work groups, a checkpoint behind each.
  void run_work_groups(const compile::Step& step, const WorkItems& work_items, Lane lane, core::Checkpoint& checkpoint);
  void run_work_items(const compile::Step& step, const WorkItems& work_items, Lane lane, core::Checkpoint& checkpoint);
  /// Several shards have the operand that the step's kernel packs, and all at the same place.
  [[nodiscard]] bool shares_packed_operand(const compile::Step& step, std::span<const int32_t> shards);
  void charge(const compile::Step& step, size_t shard_count);
  /// Those that this rank executes.
  [[nodiscard]] WorkItems work_items_of(const compile::Step& step, int64_t shard) const;
  /// Behind all shards of a step, or of a sequence.
  Next shards_done(std::span<const compile::Step> steps);
  void check_members(const compile::Step& step, std::span<const int32_t> shards) const;

  // ---- shared between threads, shard by shard (run_shared.cpp)
  /// How many threads may share a step, how many of them now without being woken, and from what time on that pays.
  struct Sharing {
    int threads;
    int awake;
    double worth_ns;
  };
  [[nodiscard]] Sharing sharing() const;
  /// Nothing looks at each step.
  [[nodiscard]] bool can_skip_steps() const { return !profiler_ && !seeks_nonfinite() && !request_.pause_before; }
  /// Whether threads that take so many shards one by one wait for each other only briefly.
  [[nodiscard]] bool is_even(int64_t shards) const;
  /// By several threads; nothing: that is not worth it.
  std::optional<Next> share(std::span<const compile::Step> steps, std::span<const int32_t> shards, double estimated_ns,
                            std::shared_ptr<ShardWhile> loop = nullptr);
  /// On the thread that finishes the last part of a shared step.
  void go_on_after(const SharedStep& shared, std::span<const compile::Step> steps);
  /// Whether the step and those of its sequence are to be executed shard by shard.
  [[nodiscard]] bool goes_by_shard(const compile::Step& step);
  Next execute_sequence(std::span<const compile::Step> steps);
  /// The steps of a sequence on each of these shards in turn.
  void run_shards(std::span<const compile::Step> steps, std::span<const int32_t> shards, Lane lane,
                  core::Checkpoint& checkpoint);

  // ---- loops shard by shard (run_shard_while.cpp)
  /// How many iterations, from here on, are a chunk that is worth being executed shard by shard; 0: none is.
  [[nodiscard]] int64_t worthwhile_iterations(const Frame& frame) const;
  /// At the condition of a loop that can be executed shard by shard, and is worth it.
  [[nodiscard]] bool is_at_shard_while(const Frame& frame) const;
  /// As many iterations as are worth a meeting of the threads and the budgets allow.
  Next run_shard_while();
  /// The iterations of `loop`, for each of these shards in turn; `lane`: which of the threads.
  void run_iterations(ShardWhile& loop, std::span<const int32_t> shards, int lane_number, Lane lane,
                      core::Checkpoint& checkpoint);
  /// Behind all shards.
  Next iterations_done(const ShardWhile& loop);

  // ---- loops as bound calls (run_bound_while.cpp)
  /// At the condition of a loop that can be executed as bound calls, and has no steps that are worth several threads.
  [[nodiscard]] bool is_at_bound_while(const Frame& frame) const;
  /// As many iterations as the time slice and the budgets allow.
  Next run_bound_while();

  // ---- the first NaN or infinity (run_nonfinite.cpp)
  [[nodiscard]] bool seeks_nonfinite() const { return request_.nonfinite.is_on() && !stats_.first_nonfinite; }
  /// In one of the value's own shards.
  kernels::Nonfinite find_nonfinite(const compile::PlanValue& value, int64_t shard);
  /// The shard of the value that shard `shard` of the step uses.
  [[nodiscard]] int64_t own_shard(const compile::Step& step, const compile::PlanValue& value, int64_t shard) const;
  /// Before a step, which may overwrite them.
  void look_at_operands(const compile::Step& step, std::span<const int32_t> shards);
  /// What came from other ranks for a collective.
  void look_at_messages(const compile::Step& step);
  void look_at_results(const compile::Step& step);

  // ---- other ranks (run_messages.cpp)
  bool exchange_sources(const compile::Step& step);
  void post_source(const compile::Step& step, const MessageKey& key, const std::vector<int>& peers);
  /// The ranks that make parts of the step's shard; empty: each that needs it makes the whole.
  [[nodiscard]] std::vector<int> ranks_of_parts(const compile::Step& step, int64_t shard) const;
  /// Of the shard's bytes and work items, those that the rank makes.
  [[nodiscard]] compile::CollectivePart part_of(const compile::Step& step, int64_t shard, int rank) const;
  /// Behind the shards of a collective: parts go to the other ranks. The step is done when theirs are there.
  Next gather_parts(const compile::Step& step);
  /// What owns a pointer's memory; null: the plan.
  [[nodiscard]] tensor::BufferRef memory_of(size_t pointer) const;
  [[nodiscard]] std::shared_ptr<const void> keep_until_sent(const std::byte* bytes, tensor::BufferRef memory);
  bool exchange_bytes(compile::TableId table, const compile::SlotRef& ref, int64_t bytes,
                      std::vector<std::vector<std::byte>>& out);
  void expect(int peer, const MessageKey& key, std::span<std::byte> bytes, tensor::BufferRef memory);
  bool all_arrived();
  [[nodiscard]] std::vector<int> other_ranks() const;
  [[nodiscard]] int rank_of(int64_t device) const { return owners_.rank_of_device[static_cast<size_t>(device)]; }
  /// No device of the run is this process's.
  [[nodiscard]] bool is_elsewhere() const { return !owners_.is_member; }

  // ---- effects (run_effects.cpp)
  Next execute_effect(const compile::Step& step);
  bool emit(const compile::Step& step, int64_t shard);
  EffectKey effect_key(int64_t shard) const;
  bool exchange_results(const compile::Step& step, int64_t holder);

  [[nodiscard]] const compile::Plan& plan() const { return *request_.plan; }
  [[nodiscard]] std::byte*& pointer(const compile::SlotRef& ref, int64_t shard) {
    return pointers_[static_cast<size_t>(ref.first + plan().slot_shard(ref, shard))];
  }
  [[nodiscard]] std::span<const int32_t> active_shards(ActiveSet& active, compile::TableId table);
  /// How many shards active devices of any rank hold: what one process would execute.
  [[nodiscard]] size_t shard_count_everywhere(ActiveSet& active, compile::TableId table);
  [[nodiscard]] bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }

  EngineShared& engine_;
  RunRequest request_;
  std::function<void(RunOutcome)> done_;
  Ownership owners_;
  std::optional<LocalArena> local_arena_;  // where other ranks have devices of the run
  int64_t planned_bytes_ = 0;
  std::unique_ptr<Timer> timer_;

  std::atomic<Phase> phase_{Phase::kQueued};
  std::atomic<bool> is_cancelled_{false};
  core::Locked<std::optional<core::Error>> cancel_reason_;
  std::atomic<int64_t> steps_done_{0};
  std::atomic<const compile::Step*> current_{nullptr};
  std::atomic<const compile::Step*> outer_loop_{nullptr};  // the outermost loop that the run is in
  std::atomic<int64_t> outer_iteration_{0};
  std::atomic<core::SteadyTime::rep> begun_{0};

  // Touched only by the thread that drives.
  bool has_begun_ = false;
  std::vector<Frame> frames_;
  std::vector<std::byte*> pointers_;       // by slot, then shard
  std::vector<int32_t> owner_of_pointer_;  // which buffer of `held_` the pointer points into; -1: arena or constant
  std::vector<tensor::BufferRef> held_;    // arguments and own buffers
  tensor::BufferRef arena_;
  std::byte* scratch_ = nullptr;
  std::vector<int32_t> counting_;  // 0, 1, 2, ...: all shards of any table
  std::shared_ptr<Exchange> exchange_;
  int64_t visit_ = 0;  // collectives so far: names messages
  int64_t effect_visit_ = 0;
  size_t effect_cursor_ = 0;  // shards of the current effect that are done
  int64_t paused_at_ = -1;
  core::SteadyTime submitted_;
  core::SteadyTime started_;
  double operations_ = 0;  // executed, by the plan's estimate
  double bytes_ = 0;
  std::optional<StepProfiler> profiler_;
  core::SteadyTime segment_start_;   // time on a thread is counted from here
  bool is_lent_ = false;             // on the thread of submit()'s caller
  bool waits_outside_ = false;       // stopped for a callback reply
  bool gave_way_ = false;            // it stepped aside; written under phase_
  bool operands_are_finite_ = true;  // of the current step, where the run seeks what is not
  RunStats stats_;
  std::atomic<int64_t> helper_ns_{0};

  // Any thread that works on the current step.
  std::atomic<core::SteadyTime::rep> slice_begin_{0};
  struct TimeSlice {
    enum class Where : uint8_t {
      kHere,
      kLeaving,  ///< a thread gives the devices back; those that want them meanwhile park
      kLeft,     ///< a library call continues without the devices
      kWaiting,  ///< the run waits for them in the scheduler's queues
    };
    Where where = Where::kHere;
    std::vector<std::shared_ptr<ParkedThread>> parked;
  };
  core::Locked<TimeSlice> slice_;
};

/// Throws invalid_argument unless there is a buffer for each shard that the plan takes, large enough.
void check_arguments(const EngineOptions& options, const RunRequest& request);

/// The checkpoints of one thread in one step, or while the run binds its arguments.
class RunCheckpoint final : public core::Checkpoint {
 public:
  RunCheckpoint(RunImpl& run, bool is_lent)
      : Checkpoint(run.attention_, run.engine_.workers.waiting_count()), run_(run), is_lent_(is_lent) {}

  /// Gives its place in the pool to another thread, unless it has given it. A lent thread has none. False: there is no
  /// thread for it. It must not park then: if all threads did, nobody would be left to wake them.
  bool give_place() { return is_lent_ || gave_place_ || (gave_place_ = run_.engine_.workers.give_place()); }
  void take_place() {
    if (std::exchange(gave_place_, false)) run_.engine_.workers.take_place();
  }
  /// For the time that it parks; whoever wakes it gives it a place again, if it gave one.
  std::shared_ptr<ParkedThread> park() {
    const auto kind = gave_place_ ? ParkedThread::Kind::kWorker : ParkedThread::Kind::kLent;
    auto out = core::keep_trying([&] { return std::make_shared<ParkedThread>(run_.engine_.workers, kind); });
    gave_place_ = false;
    return out;
  }

 private:
  void attend() override { run_.attend(*this); }
  void leave() override { run_.leave_slice(*this); }
  void come_back() override { run_.wait_for_slice(*this); }
  void abandon() noexcept override { take_place(); }

  RunImpl& run_;
  const bool is_lent_;
  bool gave_place_ = false;
};

/// A step that several threads execute, or a sequence of steps or a loop shard by shard. The last to finish a part
/// continues the run.
///
/// Parts of a sequence or loop are ranges of shards. Those of a step are ranges of work items of one shard, in the
/// order of the kernel's barriers:
/// 1. A thread takes the next part that is not behind a closed barrier.
/// 2. The thread that finishes the last part before a barrier opens it, and calls threads that have left.
/// 3. A thread that finds only parts behind a closed barrier spins for the time of a wake-up, then leaves.
/// No thread blocks on another: whoever opens a barrier can take all parts behind it.
class SharedStep final : public Work, public std::enable_shared_from_this<SharedStep> {
 public:
  /// `loop`: of the one step, where it is a loop that is executed shard by shard.
  SharedStep(std::shared_ptr<RunImpl> run, std::span<const compile::Step> steps, std::span<const int32_t> shards,
             int lanes, double estimated_ns, double part_ns, std::shared_ptr<ShardWhile> loop);
  /// On the thread that drives the run: calls others and takes parts until none is left; true when it finished the last
  /// one. After false the run must not be touched.
  bool start(bool is_lent);
  /// On a helping thread.
  void work() override;
  [[nodiscard]] int64_t part_count() const { return static_cast<int64_t>(parts_.size()); }
  /// The first error of any part. Only after the last part is done.
  [[nodiscard]] const std::optional<core::Error>& error() const { return error_; }
  [[nodiscard]] const ShardWhile* loop() const { return loop_.get(); }

 private:
  void add_sequence();
  void add_step();
  void add_parts(const RunImpl::WorkItems& work_items, int64_t part_work_items);
  /// Each work item of all shards is before the next one of any.
  void order_by_work_item(size_t first_part);
  /// Up to one thread for each part that may be taken, the calling one included.
  void call_threads(size_t open_parts);
  /// As start(), without calling others at the beginning.
  bool take_parts(int lane, bool is_lent);
  std::optional<int> take_lane();
  void give_lane(int lane);
  /// Number of a part; nothing when none is left, or none that may be taken soon.
  std::optional<size_t> take_part();
  void run_part(const RunImpl::WorkItems& part, int lane, core::Checkpoint& checkpoint);

  const std::shared_ptr<RunImpl> run_;
  const std::span<const compile::Step> steps_;
  const std::span<const int32_t> shards_;
  const int lanes_;
  const double estimated_ns_;
  const double part_ns_;  ///< about how long a part takes at least
  const std::shared_ptr<ShardWhile> loop_;
  int64_t lane_scratch_bytes_ = 0;
  std::vector<RunImpl::WorkItems> parts_;     // of a sequence or loop: begin and end are positions in shards_
  std::vector<kernels::PackedOperand> kept_;  // by lane; empty: nothing stays in the scratch
  std::vector<size_t> ends_;                  // of the parts before each barrier, and of all parts
  std::atomic<size_t> open_end_{0};           // parts before it may be taken
  std::atomic<size_t> next_part_{0};
  std::atomic<size_t> done_parts_{0};
  std::atomic<bool> has_failed_{false};
  std::mutex mutex_;  // of what follows
  std::vector<int> free_lanes_;
  std::optional<core::Error> error_;
};

/// The error that an exception in a step ends the run with.
core::Error error_of(const std::exception_ptr& exception);

}  // namespace meshd::device
