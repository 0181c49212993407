// Runs jobs, from the request to the commit.
//   Accept:  reserves donated arrays and writes the job's row, with its number in the session (job_admission.cpp).
//   Execute: binds arguments, runs on the engine, serves effects (job_execute.cpp, job_serve.cpp).
//   Commit:  result blobs first, then arrays, effects, donation and the job's end in one transaction; then results are
//            visible (job_commit.cpp). Effects for outgoing queues are committed while the run continues.
// A job without session, key, stored result, update and donated durable array writes no row.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "service/core/histogram.h"
#include "service/core/memory_ledger.h"
#include "service/core/waits/waiter.h"
#include "service/core/waits/waiter_list.h"
#include "service/device/engine.h"
#include "service/effects/callback_store.h"
#include "service/effects/effect_log.h"
#include "service/effects/infeed_queues.h"
#include "service/jobs/execution/machine_limits.h"
#include "service/jobs/job_request.h"
#include "service/jobs/queue/fair_queue.h"
#include "service/jobs/queue/fiber_pool.h"
#include "service/jobs/queue/queue_places.h"
#include "service/registry/registry.h"
#include "service/sessions/session_store.h"
#include "storage/store.h"

namespace meshd::jobs {

/// A program made ready for devices that it was not ready for before (behaviour S39).
struct CompileNote {
  std::string function;  ///< name of the module
  int64_t devices = 1;
  std::string arguments;  ///< types, tokens left out: "4x4xf32, f32"
};

/// A job that is over. References last for the call.
struct JobEnd {
  const storage::JobRow& row;
  bool in_background = false;
  JobTimings timings;                  ///< as far as it came
  double job_ms = 0;                   ///< from accepted to over
  const core::Error* error = nullptr;  ///< null: done
  std::string_view traceparent = {};   ///< of the request that it came with; empty: none, or from before a restart
};

struct RunnerOptions {
  core::MemoryLedgerRef memory = nullptr;  ///< for effects that jobs hold back; null: not counted
  std::string build;                       ///< what names this build, for the environment that jobs record
  QueueLimits queue;                       ///< background jobs that wait to be started
  int background_threads = 4;              ///< that commit
  /// Slots of background jobs that run at once. A principal without a running job may always start one more, and a job
  /// that waited for the jobs before it or for its client, which releases the slot, takes one again without waiting:
  /// the count may exceed the limit.
  int background_jobs = 4;
  int started_limit = 64;        ///< background jobs of one principal that have started, are not over and not held
  int foreground_waits = 256;    ///< requests that may wait, at once, for infeeds and replies of their clients
  int64_t step_budget = 0;       ///< steps a job may execute; 0: any number
  int64_t operation_budget = 0;  ///< operations a job may execute, by the plan's estimate; 0: any number
  int64_t byte_budget = 0;       ///< bytes its steps may read and write, by the plan's estimate; 0: any number
  std::chrono::milliseconds longest{std::chrono::hours(1)};  ///< a job without a deadline of its own ends here
  /// Called for each compilation, on the compiling thread; may be null.
  std::function<void(const CompileNote&)> on_compile = nullptr;
  /// Called at the end of each job, on the thread that ended it; may be null.
  std::function<void(const JobEnd&)> on_end = nullptr;
};

/// What a job waits for from its client.
struct ClientWait {
  std::string queue;    ///< an entry of this queue; or
  int64_t request = 0;  ///< the reply to the callback request of this number
};

/// A job as GET shows it.
struct JobView {
  storage::JobRow row;
  std::optional<device::RunProgress> progress;  ///< while it is queued or running in this process
  int64_t effect_count = 0;                     ///< so far, committed or not
  std::optional<ClientWait> waits = std::nullopt;

  [[nodiscard]] bool is_over() const { return storage::is_over(row.state); }
};

inline constexpr double kEffectBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 1};
inline constexpr double kJobBounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 60, 600};

/// Jobs that ended, by how, and how long they took: for metrics.
struct JobCounters {
  int64_t done = 0, failed = 0, cancelled = 0;
  int64_t running = 0, waiting = 0;
  /// Of jobs that are done: in the queues of their devices, on them, in the commit, and from accepted to acknowledged.
  core::Histogram queue_seconds{kJobBounds}, run_seconds{kJobBounds}, commit_seconds{kJobBounds},
      job_seconds{kJobBounds};
  int64_t effects_appended = 0;
  /// Of batches of effects that jobs stream: from the first effect to the commit.
  core::Histogram streamed_seconds{kEffectBounds};
};

/// How many more background jobs of a principal may wait, of how many, and how many of its jobs wait.
struct QueueRoom {
  int64_t left = 0, limit = 0, waiting = 0;
};

/// Any thread but the engine's. Calls that wait take a waiter (service/core/waits/waiter.h): a thread's or a request
/// fiber's.
class JobRunner {
 public:
  JobRunner(storage::Store& store, arrays::ArrayStore& arrays, compile::Compiler& compiler, device::Executor& engine,
            sessions::SessionStore& sessions, effects::EffectLog& log, effects::InfeedQueues& infeeds,
            effects::CallbackStore& callbacks, const core::Clock& clock, RunnerOptions options);
  /// Stops: jobs that wait stay queued for the next start, running ones are cancelled after their commit is impossible.
  ~JobRunner();

  /// Runs a job and returns its results. `encode` makes the document that the row keeps (with a session or key). A job
  /// without a row is cancelled when the waiter is abandoned; others continue. Throws the job's error; an accepted job
  /// is then failed.
  JobResult run(JobRequest request, const ResultEncoder& encode, const core::WaiterRef& waiter);
  /// Accepts a job and returns its id; it runs in the background. Throws precondition_failed when the id that the
  /// request chose is taken, queue_full when too many wait.
  std::string start(JobRequest request, ResultEncoder encode);

  storage::Page<storage::JobRow> list(std::string_view principal, const storage::JobFilter& filter,
                                      const storage::PageRequest& page);
  /// The job of an earlier request with this idempotency key; nothing for a new one. Throws idempotency_key_reused when
  /// that request had another fingerprint, not_found when its job was deleted.
  std::optional<JobView> find_repeated(std::string_view principal, std::string_view route, std::string_view key,
                                       std::string_view fingerprint, core::MemoryReservation& memory);
  /// The progress of the session's jobs that run, by number; of their rows only the ids. Reads no row: for readers that
  /// look again and again.
  std::vector<JobView> running(const std::string& session) const;
  /// `memory` holds what the answer takes, here and in find_repeated() and wait(). Throws not_found, memory_full.
  JobView view(const std::string& id, std::string_view principal, core::MemoryReservation& memory);
  /// The array that is, or is to be, a result of a background job of a session. Throws not_found where there is no such
  /// job, invalid_request where it makes no such array, dependency_failed where it did not, or cannot any more.
  std::string result_array(const std::string& id, int64_t result, std::string_view principal);
  /// Waits until the job is over, the time is up, the waiter is abandoned or the server stops. No time: what is shown
  /// agrees with the effects that are visible, where view() may show a job that has just committed as running.
  JobView wait(const std::string& id, std::string_view principal, std::chrono::milliseconds time,
               const core::WaiterRef& waiter, core::MemoryReservation& memory);
  /// Cancels a job that is not over, and deletes one that is, with its answer. Its effects stay in the log. A
  /// cancellation is durable when this returns: of it and the job's commit, the transaction that comes first wins. One
  /// that waits to be started is over at once. Throws not_found.
  enum class Removal : uint8_t { kCancelled, kDeleted };
  Removal cancel_or_delete(const std::string& id, std::string_view principal);
  /// Waits until everything accepted in the session so far is over (behaviour E10). Throws overloaded when it is not
  /// when the time is up, session_halted when some are held, draining when the server stops, cancelled when the waiter
  /// is abandoned.
  void barrier(const std::string& session, std::chrono::milliseconds time, const core::WaiterRef& waiter);
  /// A halted session goes on with the jobs that it held. Throws not_found, session_closed.
  void resume_session(const std::string& session, std::string_view principal);
  /// Closes a session: ends jobs that wait for their client or are held, waits for the others as barrier() does, and
  /// forgets it. One that has been waited for in vain stays closed; closing it again waits again. Throws not_found.
  void close_session(const std::string& session, std::string_view principal, std::chrono::milliseconds time,
                     const core::WaiterRef& waiter);

  /// What jobs need beside their rows: those of before a restart, and those whose requests have left memory.
  struct Recovery {
    registry::ProgramRegistry& programs;
    mesh::Processes processes;  ///< labels of the server's devices
    std::function<ResultEncoder(const ResultForm&)> encoder;
    /// Reads a row that was written before there was a stored form (JobRow::request_version 0).
    std::function<JobRequest(const storage::JobRow&)> read_old_row;
  };
  /// Jobs that a crash or a stop left queued run again, in the order of their sessions. Once, at start.
  void recover(const Recovery& recovery);
  /// No new jobs from now on (503); waits until running ones are over or the time is up, and cancels those that are
  /// left. What was accepted and is not over runs again after the next start, and nothing is counted against it. False:
  /// a run did not end a second after it was cancelled; its job is put back all the same.
  bool drain(std::chrono::milliseconds time);

  [[nodiscard]] JobCounters counters() const;
  [[nodiscard]] QueueRoom queue_room(const std::string& principal) const;
  /// Memory of results that are sent as they are, as the ledger shows its accounts; named "files".
  [[nodiscard]] core::MemoryLedger::Stats file_memory() const;
  /// The server is shutting down: waits should end.
  [[nodiscard]] bool is_stopping() const;

 private:
  struct ServeNotes;
  struct RunEnd;
  struct Job;
  struct Outputs;
  using JobRef = std::shared_ptr<Job>;

  using JobName = std::pair<std::string, std::string>;  ///< principal and id

  JobRef prepare(JobRequest request);
  /// Null: it is over, or never was.
  JobRef find_live(const std::string& id, std::string_view principal) const;
  class Claim;
  /// A request that waits for its job, from before that is accepted. Throws draining when the server stops.
  class Entered {
   public:
    explicit Entered(JobRunner& runner);
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    JobRunner& runner_;
  };
  static void check_updates(Job& job);
  void enqueue(const JobRef& job);
  JobRef recover_job(const storage::JobRow& row, const Recovery& recovery);
  void accept(const JobRef& accepted, bool background);
  /// The sharding of a result on the job's devices; nothing: one device, unsharded.
  static std::optional<sharding::TensorSharding> result_sharding(const Job& job, size_t result);
  /// `type`: of the result; one whose size depends on data has it only after the run.
  static arrays::NewArray result_array(const Job& job, size_t result, tensor::TensorType type);
  /// Gives the arrays that the job is to make their ids, those of its row where that has them.
  void promise_results(Job& job);
  /// Of a job that ends without a commit.
  void withdraw_results(Job& job, const std::string& how);
  /// Throws dependency_failed where a job whose result it names has failed, conflict where that is not over.
  void require_dependencies(const Job& job) const;
  JobResult execute(const JobRef& job, const core::WaiterRef& waiter);
  /// Buffers in the order of the plan; donated arrays give theirs up for the time being.
  std::vector<device::RunArgument> bind_arguments(Job& job, core::Checkpoint& checkpoint);
  device::RunArgument bind_array(Job& job, size_t i);
  void give_files(device::RunArgument& bound, const arrays::ArrayRef& array,
                  const arrays::ArrayStore::Referred& referred, const compile::PlanParameter& wanted);
  device::ApartShards find_apart(const Job& job) const;
  void store_left(Outputs& outputs, device::HeldResults& held);
  device::RunOutcome run_on_engine(Job& job, device::RunRequest run, const core::WaiterRef& waiter);
  device::RunOutcome serve(Job& job, const core::WaiterRef& waiter, RunEnd& end);
  /// What ends a job from outside: cancelled, disconnected client of a job without a row, deadline, stop of the server.
  std::optional<core::Error> end_of(Job& job, const core::Waiter& waiter) const;
  /// Throws for a job that waits for its session in vain: an earlier one was put back, or the session closes halted.
  static void throw_if_never_next(const Job& job);
  /// What a client sees of a run that goes on. The caller holds the job's mutex.
  static void show_run(const Job& job, JobView& view);
  /// Waits until `is_there` of the job's session queue; throws what ends the job before.
  void wait_for_session(Job& job, core::Waiter& waiter, const std::function<bool()>& is_there);
  void wait_idle(sessions::SessionQueue& queue, std::chrono::milliseconds time, const core::WaiterRef& waiter);
  /// Supplies what the run waits for. False: it is not there yet, and the job waits.
  bool get_for(Job& job, effects::EffectRecorder& recorder, const effects::Wants& wants, ServeNotes& notes);
  /// True when the run waited for it.
  bool commit_effects(Job& job, effects::EffectRecorder& recorder);
  /// A streaming job whose program failed leaves what it did before: it waits for the jobs before it, unless something
  /// else ends it. Throws what does where that is a stop of the server or a cancellation.
  void wait_to_leave_effects(Job& job, const core::Error& error, core::Waiter& waiter);
  /// Releases the job's slot for a wait that may take long; a job that is held does not count as started either.
  void give_slot(Job& job);
  void take_slot(Job& job);
  /// How a background job counts against the limits: not at all while it waits to start or is held, as started while it
  /// waits for the jobs before it or for its client, as running with a slot.
  enum class Counted : uint8_t { kNo, kStarted, kRunning };
  /// Under the lock.
  void count(Job& job, Counted how);
  void begin_wait(Job& job, ClientWait wait);
  void end_wait(Job& job);
  void commit(Job& job, device::RunOutcome& outcome, JobResult& result, core::Waiter& waiter);
  Outputs lay_out(const Job& job, device::RunOutcome& outcome, JobResult& result);
  /// Until nothing of its session is before it in what it commits.
  void wait_to_commit(Job& job, core::Waiter& waiter);
  /// The one transaction. False: the session was halted in the meantime, and nothing is written.
  bool write_commit(Job& job, const arrays::ArrayStore::Prepared& prepared,
                    const std::vector<arrays::ArrayStore::Update>& updates, JobResult& result);
  static void note_logged(const Job& job, const std::vector<storage::EffectRow>& rows, JobResult& result);
  /// Of a streaming job that has failed: what it did since its last commit, if it may enter the log.
  static std::vector<storage::EffectRow> effects_to_leave(Job& job, const core::Error& error);
  /// Donated arrays get back what the run did not overwrite; the others are spoilt.
  void return_taken(Job& job);
  [[nodiscard]] std::string why_it_differs(const Job& job, const core::Error& error) const;
  JobResult finish(const JobRef& job, const core::WaiterRef& waiter);
  void fail(Job& job, const core::Error& error);
  /// Counts a job that is over, before anybody who waits for it sees that; null: it is done.
  void note_end(const Job& job, const core::Error* error, int64_t effects);
  /// Counts what a background job holds while it waits; where there is no room, its request will leave memory. False:
  /// it cannot.
  bool hold_request(Job& job, int64_t stored_bytes);
  /// Of its program and plan, though others may have the same.
  static int64_t program_bytes(const Job& job);
  /// What is in the job's row leaves memory, if it has to.
  static void unload_request(Job& job);
  /// It comes back.
  void load_request(Job& job, core::Waiter& waiter);
  /// Waits until the job is next in its session, unless there is room for its results until then.
  void wait_for_room(Job& job, core::Waiter& waiter);
  bool try_hold_results(Job& job) const;
  /// Holds memory for the text of the answer. Throws memory_exceeded; memory_full for a job of a request, while one in
  /// the background waits.
  void hold_answer(Job& job, JobResult& result, core::Waiter& waiter);
  /// Puts the request into the job's row in its stored form. The blobs are to be kept once the row is durable.
  storage::PendingBlobs keep_request(Job& job, bool background);
  /// Clients find the job from here on, and the end of the server ends it.
  void list_live(const JobRef& job);
  void keep_arguments(Job& job);
  void free_arguments(Job& job);
  /// kQueued: it runs again after a restart, and no later job of its session overtakes it.
  enum class Leave : uint8_t { kOver, kQueued };
  void leave(Job& job, Leave how);
  /// Starts waiting jobs as long as one may start.
  void start_ready();
  void run_in_background(const JobRef& job, const core::WaiterRef& waiter);
  /// Of a job that waits to be started. Under the lock.
  void set_deadline_timer(const JobRef& job);
  /// The time of a job that waited to be started is up.
  void end_late(const JobRef& job);
  /// Ends a job that has not started; false: it has.
  bool end_waiting(const JobRef& job, const core::Error& reason);
  enum class Stop : uint8_t { kAll, kWaiting };  ///< kWaiting: those that wait for their clients
  void stop_running(Stop which);
  void put_back_running();

  storage::Store& store_;
  arrays::ArrayStore& arrays_;
  compile::Compiler& compiler_;
  device::Executor& engine_;
  sessions::SessionStore& sessions_;
  effects::EffectLog& log_;
  effects::InfeedQueues& infeeds_;
  effects::CallbackStore& callbacks_;
  const core::Clock& clock_;
  const RunnerOptions options_;
  const core::MemoryLedgerRef unsent_;  ///< of results that are sent as they are, apart from all other answers
  MachineLimits machine_limits_;
  const int64_t environment_;         ///< of this process, for the rows of its jobs
  std::optional<Recovery> recovery_;  ///< what rows are read with; written by recover()

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  core::WaiterList watchers_;  ///< of waiting calls, notified when the server stops
  std::map<JobName, JobRef> live_;
  std::set<JobName> claimed_;  ///< ids that clients chose, while their jobs are accepted
  FairQueue<JobRef> waiting_;  ///< background jobs that have not started
  QueuePlaces places_;
  /// Background jobs of a principal by how they count: kStarted and kRunning together; kRunning.
  struct Share {
    int started = 0, running = 0;
  };
  std::map<std::string, Share> shares_;
  int running_background_ = 0;
  int waiting_foreground_ = 0;  ///< requests that wait for their clients
  int entered_ = 0;             ///< requests that wait for their jobs
  bool stopping_ = false;
  std::atomic<bool> all_end_ = false;  ///< the time of the drain is up: also for jobs that are not live_ yet
  JobCounters counters_;
  FiberPool background_;  ///< last: its bodies use all of the above
};

}  // namespace meshd::jobs
