// Jobs from the request to their end, in one process: runs do what the test says, and time passes when it says so.
#include "service/jobs/job_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "service/jobs/commit/retention.h"
#include "tests/support/held_writer.h"
#include "tests/support/long_program.h"
#include "tests/unit/jobs/runner_bench.h"

namespace meshd::testing {
namespace {

using namespace std::chrono_literals;
using RunRef = std::shared_ptr<FakeRun>;
using Removal = jobs::JobRunner::Removal;

/// How far a job has come when something happens to it.
enum class Stage {
  kQueued,      ///< another job has the only slot
  kRunning,     ///< its program runs
  kTaking,      ///< its program waits for an entry of its client
  kCommitting,  ///< its program is over, and the job before it in its session is not
};

std::string name_of(Stage stage) {
  constexpr const char* kNames[] = {"queued", "running", "taking", "committing"};
  return kNames[static_cast<size_t>(stage)];
}

/// One background job, brought to a stage in a session.
class JobRunner : public RunnerBench {
 protected:
  static jobs::RunnerOptions slots(int count) {
    jobs::RunnerOptions options;
    options.background_jobs = count;
    return options;
  }

  /// Starts it, after whatever has to be there before it.
  void bring_to(Stage stage, std::optional<std::chrono::milliseconds> deadline = std::nullopt) {
    reopen(slots(stage == Stage::kQueued ? 1 : 2));
    session_ = session();
    if (stage == Stage::kQueued) before_ = start_and_begin(request(kPlain));
    if (stage == Stage::kCommitting) before_ = start_and_begin(request(kLogs, session_));
    jobs::JobRequest wanted = stage == Stage::kQueued   ? request(kPlain)
                              : stage == Stage::kTaking ? request(kTakes, session_)
                                                        : request(kLogs, session_);
    wanted.deadline = deadline;
    id_ = start(std::move(wanted));
    if (stage == Stage::kQueued) return;
    run_ = engine_.next();
    ASSERT_TRUE(run_->begin());
    ASSERT_TRUE(eventually([&] { return row(id_).state == State::kRunning; })) << "written without waiting";
    if (stage == Stage::kTaking) {
      EXPECT_FALSE(run_->emit(0));
      ASSERT_TRUE(eventually([&] { return view(id_).waits.has_value(); }));
    }
    if (stage == Stage::kCommitting) {
      EXPECT_TRUE(run_->emit(1));
      run_->finish();
      wait_until_a_slot_is_free();
    }
  }
  RunRef start_and_begin(jobs::JobRequest wanted) {
    wanted.deadline = 24h * 365;
    before_id_ = start(std::move(wanted));
    RunRef run = engine_.next();
    EXPECT_TRUE(run->begin());
    return run;
  }
  /// The slots are all taken now; a job that waits for others gives its own away, and so another one starts.
  void wait_until_a_slot_is_free() {
    jobs::JobRequest probe = request(kPlain);
    probe.deadline = 24h * 365;
    const std::string id = start(std::move(probe));
    engine_.next()->fail(core::Error("invalid_argument", "it has done what it is for"));
    EXPECT_EQ(how_it_ended(id), "invalid_argument");
  }

  std::string session_;
  std::string before_id_;
  RunRef before_;  ///< of the job that it waits for
  std::string id_;
  RunRef run_;  ///< of the job, if it has begun
};

TEST_F(JobRunner, request_gets_the_results_of_its_run) {
  auto result = run(request(kPlain));
  const RunRef one = engine_.next();
  ASSERT_TRUE(one->begin());
  EXPECT_EQ(one->arguments().size(), 1U);
  one->finish(3);
  EXPECT_EQ(result.get().results.size(), 1U);
  EXPECT_EQ(runner().counters().done, 1);
}

// ---- deadlines ----

struct Late {
  Stage stage;
  bool has_deadline;  ///< else the time that is the longest for any job
};
void PrintTo(const Late& late, std::ostream* out) { *out << name_of(late.stage); }

class Deadline : public JobRunner, public ::testing::WithParamInterface<Late> {};

TEST_P(Deadline, ends_the_job_when_the_clock_says_so_and_not_before) {
  const auto [stage, has_deadline] = GetParam();
  const std::chrono::milliseconds time = has_deadline ? 10s : std::chrono::milliseconds(options_.longest);
  bring_to(stage, has_deadline ? std::optional(time) : std::nullopt);
  advance(time - 1ms);
  EXPECT_FALSE(view(id_).is_over());
  advance(1ms);
  EXPECT_EQ(how_it_ended(id_), "deadline_exceeded");
  EXPECT_EQ(row(id_).error_detail,
            stage == Stage::kQueued ? "the job's time was up before it started" : "the job's time was up");
  EXPECT_EQ(row(id_).started.has_value(), stage != Stage::kQueued);
  EXPECT_EQ(engine_.waiting(), 0U);
  EXPECT_EQ(log_of(session_), "");
}

INSTANTIATE_TEST_SUITE_P(Stages, Deadline,
                         ::testing::Values(Late{Stage::kQueued, true}, Late{Stage::kQueued, false},
                                           Late{Stage::kRunning, true}, Late{Stage::kRunning, false},
                                           Late{Stage::kTaking, true}, Late{Stage::kTaking, false},
                                           Late{Stage::kCommitting, true}, Late{Stage::kCommitting, false}),
                         [](const auto& given) {
                           return name_of(given.param.stage) + (given.param.has_deadline ? "_own" : "_longest");
                         });

TEST_F(JobRunner, request_without_a_row_ends_at_its_deadline) {
  jobs::JobRequest wanted = request(kPlain);
  wanted.deadline = 5s;
  auto result = run(std::move(wanted));
  const RunRef one = engine_.next();
  advance(5s);
  EXPECT_EQ(error_word([&] { result.get(); }), "deadline_exceeded");
  EXPECT_TRUE(one->is_over()) << "the run was cancelled";
}

// ---- cancellation ----

class Cancel : public JobRunner, public ::testing::WithParamInterface<Stage> {};

TEST_P(Cancel, ends_a_job_wherever_it_is) {
  bring_to(GetParam());
  EXPECT_EQ(runner().cancel_or_delete(id_, "ann"), Removal::kCancelled);
  EXPECT_EQ(how_it_ended(id_), "cancelled");
  EXPECT_EQ(engine_.waiting(), 0U) << "it does not start any more";
  EXPECT_EQ(log_of(session_), "") << "nor is anything of it in the log";
  EXPECT_EQ(runner().cancel_or_delete(id_, "ann"), Removal::kDeleted);
  EXPECT_EQ(error_word([&] { view(id_); }), "not_found");
}

INSTANTIATE_TEST_SUITE_P(Stages, Cancel,
                         ::testing::Values(Stage::kQueued, Stage::kRunning, Stage::kTaking, Stage::kCommitting),
                         [](const auto& given) { return name_of(given.param); });

/// Which of the two transactions comes first.
class CancelAndCommit : public JobRunner, public ::testing::WithParamInterface<bool> {};

TEST_P(CancelAndCommit, of_the_two_the_first_wins) {
  const bool is_commit_first = GetParam();
  bring_to(Stage::kRunning);
  EXPECT_TRUE(run_->emit(1));
  std::future<Removal> removal;
  {
    const HeldWriter held(catalog());
    const int64_t queued = catalog().counters().queued;
    const auto wait_for = [&](int64_t count) {
      ASSERT_TRUE(eventually([&] { return catalog().counters().queued == queued + count; }));
    };
    const auto cancel = [&] {
      removal = std::async(std::launch::async, [&] { return runner().cancel_or_delete(id_, "ann"); });
    };
    is_commit_first ? run_->finish() : cancel();
    wait_for(1);
    is_commit_first ? cancel() : run_->finish();
    wait_for(2);
  }
  EXPECT_EQ(removal.get(), Removal::kCancelled);
  EXPECT_EQ(how_it_ended(id_), is_commit_first ? "done" : "cancelled");
  EXPECT_EQ(log_of(session_), is_commit_first ? "1" : "");
}

INSTANTIATE_TEST_SUITE_P(Orders, CancelAndCommit, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "commit_first" : "cancel_first"; });

// ---- a row that somebody else has ended ----

class EndedElsewhere : public JobRunner, public ::testing::WithParamInterface<bool> {};

TEST_P(EndedElsewhere, row_stays_as_it_is_and_nothing_else_is_written) {
  const bool succeeds = GetParam();
  const std::string at = session(storage::OnError::kHalt);
  jobs::JobRequest wanted = request(kLogs, at);
  wanted.results = jobs::ResultMode::kArray;
  id_ = start(std::move(wanted));
  const std::string made = row(id_).result_arrays.at(0);
  run_ = engine_.next();
  ASSERT_TRUE(run_->begin());
  EXPECT_TRUE(run_->emit(1));
  catalog().write([&](storage::Transaction& t) {
    storage::JobRow other = t.job(id_, "ann").value();
    other.state = State::kFailed;
    other.error_code = "crashed";
    EXPECT_TRUE(t.update_job(other));
  });
  succeeds ? run_->finish() : run_->fail(core::Error("invalid_argument", "by the test"));
  ASSERT_TRUE(eventually([&] { return runner().counters().failed == 1; }));
  EXPECT_EQ(how_it_ended(id_), "crashed");
  EXPECT_EQ(log_of(at), "");
  EXPECT_EQ(server_->sessions.get(at, "ann").state, storage::SessionState::kOpen) << "it is not this end that halts it";
  EXPECT_FALSE(catalog().read([&](storage::Reader& r) { return r.array(made).has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(Ends, EndedElsewhere, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "commit" : "failure"; });

// ---- halt and resume ----

class Held : public JobRunner {
 protected:
  /// Until the jobs of the halted session that were due before have been looked at, where the background has one
  /// thread: one more job, due last, is over then.
  void pass_while_held(const std::string& session, std::chrono::milliseconds time) {
    jobs::JobRequest last = request(kLogs, session);
    last.deadline = time;
    const std::string id = start(std::move(last));
    advance(time);
    EXPECT_EQ(how_it_ended(id), "deadline_exceeded");
  }
};

class Halt : public Held, public ::testing::WithParamInterface<bool> {};

TEST_P(Halt, holds_what_is_behind_the_failure_until_the_session_is_resumed) {
  const bool has_begun = GetParam();  // the second job, when the first one fails
  jobs::RunnerOptions options = slots(has_begun ? 2 : 1);
  options.background_threads = 1;  // what is due ends in the order of time
  reopen(options);
  const std::string at = session(storage::OnError::kHalt);
  const RunRef first = start_and_begin(request(kLogs, at));
  id_ = start(request(kLogs, at));
  if (has_begun) {
    run_ = engine_.next();
    ASSERT_TRUE(run_->begin());
    EXPECT_TRUE(run_->emit(2));
    run_->finish();
  }
  EXPECT_TRUE(first->emit(1));
  first->fail(core::Error("invalid_argument", "by the test"));
  EXPECT_EQ(how_it_ended(before_id_), "invalid_argument");
  EXPECT_EQ(server_->sessions.get(at, "ann").state, storage::SessionState::kHalted);
  EXPECT_EQ(error_word([&] { run(request(kLogs, at)).get(); }), "session_halted") << "nobody waits for a client";
  wait_until_a_slot_is_free();
  pass_while_held(at, 3 * options_.longest);
  EXPECT_FALSE(view(id_).is_over()) << "it was given no time: it waits however long that takes";
  EXPECT_EQ(engine_.waiting(), 0U);
  runner().resume_session(at, "ann");
  if (!has_begun) {
    run_ = engine_.next();
    ASSERT_TRUE(run_->begin());
    EXPECT_TRUE(run_->emit(2));
    run_->finish();
  }
  EXPECT_EQ(how_it_ended(id_), "done");
  EXPECT_EQ(log_of(at), "2") << "atomic effects of the first are in no log";
}

INSTANTIATE_TEST_SUITE_P(Second, Halt, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "has_begun" : "waits"; });

TEST_F(JobRunner, held_job_with_a_deadline_of_its_own_ends_at_that) {
  reopen(slots(1));
  const std::string at = session(storage::OnError::kHalt);
  const RunRef first = start_and_begin(request(kLogs, at));
  jobs::JobRequest wanted = request(kLogs, at);
  wanted.deadline = 10s;
  id_ = start(std::move(wanted));
  first->fail(core::Error("invalid_argument", "by the test"));
  EXPECT_EQ(how_it_ended(before_id_), "invalid_argument");
  advance(10s);
  EXPECT_EQ(how_it_ended(id_), "deadline_exceeded");
}

TEST_F(Held, job_has_its_time_anew_when_it_was_up_while_the_job_was_held) {
  jobs::RunnerOptions options = slots(1);
  options.background_threads = 1;
  reopen(options);
  const std::string at = session(storage::OnError::kHalt);
  const RunRef first = start_and_begin(request(kLogs, at));
  id_ = start(request(kLogs, at));
  first->fail(core::Error("invalid_argument", "by the test"));
  EXPECT_EQ(how_it_ended(before_id_), "invalid_argument");
  const RunRef other = start_and_begin(request(kPlain));  // has the slot
  pass_while_held(at, options_.longest);
  runner().resume_session(at, "ann");
  advance(options_.longest - 1ms);
  EXPECT_FALSE(view(id_).is_over());
  advance(1ms);
  EXPECT_EQ(how_it_ended(id_), "deadline_exceeded") << "though it never got a slot";
}

// ---- memory ----

TEST_F(JobRunner, jobs_that_wait_for_memory_do_not_wake_each_other) {
  const auto ledger = core::MemoryLedger::create(int64_t{10} << 20);
  std::atomic<bool> lends = false;
  ledger->borrow_from({[&](int64_t) { return lends.load(); }, [](int64_t) {}});
  jobs::RunnerOptions options = slots(2);
  options.memory = ledger;
  reopen(options);
  const RunRef first = start_and_begin(request(kPlain)), second = start_and_begin(request(kPlain));
  core::MemoryReservation waiting(ledger, core::MemoryAccount::kWaiting);
  waiting.grow_regardless(waiting.limit_bytes());
  // Parsing them takes more memory than compiling takes uncounted.
  const std::string ids[] = {start(request(adding(2'000).c_str())), start(request(adding(2'001).c_str()))};
  // Their requests have left memory; so do their programs.
  for (int i = 0; i < 32; ++i) server_->compiler.lower(server_->compiler.parse("stablehlo", adding(3 + i)), {});
  server_->compiler.count_work({ledger});
  core::MemoryReservation others(ledger, core::MemoryAccount::kRequests);
  others.grow_regardless(2 * others.limit_bytes());
  const auto refused = [&] { return ledger->stats()[0].refused; };
  first->finish();
  second->finish();
  ASSERT_TRUE(eventually([&] { return refused() >= 3; }));
  std::this_thread::sleep_for(1500ms);  // what compiles waits for a second of the system's clock
  EXPECT_LT(refused(), 50) << "no time has passed since they were refused";
  lends = true;
  waiting = {};
  others = {};
  ASSERT_TRUE(eventually([&] {
    advance(20ms);
    return engine_.waiting() == 2;
  }));
  for (int i = 0; i < 2; ++i) {
    const RunRef run = engine_.next();
    ASSERT_TRUE(run->begin());
    run->finish();
  }
  for (const std::string& id : ids) EXPECT_EQ(how_it_ended(id), "done");
}

// ---- stop and start ----

class Drain : public JobRunner, public ::testing::WithParamInterface<Stage> {};

TEST_P(Drain, puts_jobs_back_and_the_next_start_runs_them_in_their_order) {
  bring_to(GetParam());
  EXPECT_TRUE(runner().drain(0ms)) << "no run is left";
  EXPECT_EQ(error_word([&] { start(request(kPlain)); }), "draining");
  EXPECT_EQ(error_word([&] { run(request(kPlain)).get(); }), "draining");
  for (const std::string& id : {before_id_, id_}) {
    if (id.empty()) continue;
    EXPECT_EQ(row(id).state, State::kQueued) << id;
    EXPECT_FALSE(row(id).started) << id;
    EXPECT_EQ(row(id).attempt, 1) << "a stop counts nothing against it";
  }
  options_ = slots(1);
  restart();
  effects::InfeedEntry entry;
  entry.queue = "in";
  entry.values = {floats({}, {1})};
  if (GetParam() == Stage::kTaking) server_->infeeds.append(session_, entry, std::nullopt);
  const int jobs = before_id_.empty() ? 1 : 2;
  for (int i = 1; i <= jobs; ++i) {
    const RunRef again = engine_.next();
    ASSERT_TRUE(again->begin());
    if (GetParam() == Stage::kTaking) {
      EXPECT_FALSE(again->emit(0));
      again->wait_until_resumed();
    }
    EXPECT_TRUE(again->emit(1)) << i;
    again->finish();
  }
  for (const std::string& id : {before_id_, id_}) {
    if (id.empty()) continue;
    EXPECT_EQ(how_it_ended(id), "done");
  }
  const bool is_logged = GetParam() != Stage::kTaking;
  EXPECT_EQ(log_of(session_), !is_logged ? "" : jobs == 1 ? "1" : "1 2");
}

INSTANTIATE_TEST_SUITE_P(Stages, Drain, ::testing::Values(Stage::kRunning, Stage::kTaking, Stage::kCommitting),
                         [](const auto& given) { return name_of(given.param); });

// It would wait for its session to be resumed until the stop's whole time is up.
TEST_F(JobRunner, job_that_becomes_held_during_a_stop_is_put_back) {
  reopen(slots(2));
  const std::string at = session(storage::OnError::kHalt);
  const RunRef first = start_and_begin(request(kLogs, at));
  id_ = start(request(kLogs, at));
  run_ = engine_.next();
  ASSERT_TRUE(run_->begin());
  EXPECT_TRUE(run_->emit(2));
  run_->finish();
  wait_until_a_slot_is_free();
  auto stopped = std::async(std::launch::async, [&] { return runner().drain(24h); });
  const auto refused = [&] { return error_word([&] { start(request(kPlain, "no session")); }); };
  ASSERT_TRUE(eventually([&] { return refused() == "draining"; }));
  first->fail(core::Error("invalid_argument", "by the test"));
  EXPECT_TRUE(stopped.get());
  EXPECT_EQ(row(before_id_).state, State::kFailed);
  EXPECT_EQ(row(id_).state, State::kQueued);
  EXPECT_EQ(log_of(at), "");
}

TEST_F(JobRunner, queued_jobs_of_before_a_stop_start_by_their_numbers) {
  reopen(slots(1));
  const std::string at = session();
  const RunRef first = start_and_begin(request(kLogs, at));
  std::vector<std::string> ids{before_id_};
  for (int i = 0; i < 3; ++i) ids.push_back(start(request(kLogs, at)));
  EXPECT_EQ(runner().counters().waiting, 3);
  restart();
  EXPECT_TRUE(first->is_over()) << "the stop has cancelled it";
  for (size_t i = 0; i < ids.size(); ++i) {
    const RunRef again = engine_.next();
    ASSERT_TRUE(again->begin());
    EXPECT_TRUE(again->emit(1));
    again->finish();
    EXPECT_EQ(how_it_ended(ids[i]), "done");
  }
  EXPECT_EQ(log_of(at), "1 2 3 4");
}

TEST_F(JobRunner, job_whose_server_is_killed_three_times_has_crashed_and_halts_its_session) {
  const std::string at = session(storage::OnError::kHalt);
  id_ = start(request(kLogs, at));
  const std::string behind = start(request(kLogs, at));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(row(id_).attempt, attempt);
    const RunRef one = engine_.next();
    const RunRef other = engine_.next();
    // What a kill leaves: the row as it was while the job ran.
    restart([&](storage::Transaction& t) {
      storage::JobRow running = t.job(id_, "ann").value();
      running.state = State::kRunning;
      EXPECT_TRUE(t.update_job(running));
    });
  }
  EXPECT_EQ(how_it_ended(id_), "crashed");
  EXPECT_EQ(server_->sessions.get(at, "ann").state, storage::SessionState::kHalted);
  EXPECT_EQ(engine_.waiting(), 0U);
  EXPECT_EQ(row(behind).state, State::kQueued);
  runner().resume_session(at, "ann");
  const RunRef last = engine_.next();
  ASSERT_TRUE(last->begin());
  last->finish();
  EXPECT_EQ(how_it_ended(behind), "done");
}

// ---- the order of a session ----

class Order : public JobRunner, public ::testing::WithParamInterface<storage::EffectMode> {};

TEST_P(Order, is_that_of_numbers_whichever_run_ends_first) {
  reopen(slots(2));
  const std::string at = session(storage::OnError::kContinue, GetParam());
  const RunRef first = start_and_begin(request(kLogs, at));
  id_ = start(request(kLogs, at));
  const RunRef second = engine_.next();
  ASSERT_TRUE(second->begin());
  EXPECT_TRUE(second->emit(2));
  EXPECT_TRUE(second->emit(2));
  second->finish();
  wait_until_a_slot_is_free();  // it waits for the first
  EXPECT_TRUE(first->emit(1));
  first->finish();
  EXPECT_EQ(how_it_ended(id_), "done");
  EXPECT_EQ(how_it_ended(before_id_), "done");
  EXPECT_EQ(log_of(at), "1 2 2");
}

INSTANTIATE_TEST_SUITE_P(Modes, Order, ::testing::Values(storage::EffectMode::kAtomic, storage::EffectMode::kStreaming),
                         [](const auto& given) { return std::string(storage::to_string(given.param)); });

// ---- streamed effects ----

TEST_F(JobRunner, streamed_effects_of_ten_milliseconds_are_one_batch) {
  const std::string at = session(storage::OnError::kContinue, storage::EffectMode::kStreaming);
  id_ = start(request(kLogs, at));
  run_ = engine_.next();
  ASSERT_TRUE(run_->begin());
  // The sum of the times from the first effect of a batch to its commit, which the clock tells to the millisecond.
  const auto waited = [&] { return runner().counters().streamed_seconds.sum(); };
  const auto batches = [&] { return runner().counters().streamed_seconds.count(); };
  EXPECT_TRUE(run_->emit(1));
  ASSERT_TRUE(eventually([&] { return batches() == 1; })) << "the first is committed at once";
  EXPECT_EQ(log_of(at), "1");
  EXPECT_EQ(waited(), 0);
  EXPECT_TRUE(run_->emit(2));
  advance(4ms);
  EXPECT_TRUE(run_->emit(3));
  advance(6ms);
  ASSERT_TRUE(eventually([&] { return batches() == 2; }));
  EXPECT_EQ(log_of(at), "1 1 1");
  EXPECT_DOUBLE_EQ(waited(), 0.010);
  advance(30min);
  EXPECT_TRUE(run_->emit(4));
  ASSERT_TRUE(eventually([&] { return batches() == 3; })) << "the last commit is long ago";
  EXPECT_DOUBLE_EQ(waited(), 0.010);
  EXPECT_TRUE(run_->emit(5));
  run_->finish();
  EXPECT_EQ(how_it_ended(id_), "done");
  EXPECT_EQ(log_of(at), "1 1 1 1 1") << "what is left is part of the job's own commit";
}

// ---- donations ----

class Donated : public JobRunner, public ::testing::WithParamInterface<storage::Durability> {
 protected:
  Donated() {
    jobs::JobRequest maker = request(kPlain);
    maker.results = jobs::ResultMode::kArray;
    maker.durability = GetParam();
    auto made = run(std::move(maker));
    const RunRef one = engine_.next();
    one->begin();
    one->finish(7);
    array_ = made.get().results.at(0).array;
    id_ = start(reads(true));
    run_ = engine_.next();
  }
  jobs::JobRequest reads(bool donates) {
    jobs::JobRequest out = request(kPlain);
    out.arguments[0] = jobs::ArrayArgument{array_, std::nullopt};
    if (donates) out.donate = {0};
    return out;
  }
  /// What a job is told that takes the array now; "": it is accepted, and runs.
  std::string told(bool donates) {
    return error_word([&] {
      auto result = run(reads(donates));
      if (result.wait_for(0s) != std::future_status::ready &&
          eventually([&] { return engine_.waiting() == 1 || result.wait_for(0s) == std::future_status::ready; }) &&
          engine_.waiting() == 1) {
        const RunRef one = engine_.next();
        one->begin();
        one->finish();
      }
      result.get();
    });
  }

  arrays::ArrayRef array_;
};

TEST_P(Donated, array_is_refused_to_others_until_the_job_is_over_and_gone_when_it_is_done) {
  EXPECT_EQ(told(true), "array_in_use");
  EXPECT_EQ(told(false), "") << "it may be read until the run takes it";
  ASSERT_TRUE(run_->begin());
  EXPECT_EQ(told(true), "array_in_use") << "while it runs";
  const bool is_on_disk = GetParam() == storage::Durability::kDurable;
  EXPECT_EQ(told(false), is_on_disk ? "" : "array_in_use") << "its memory is the run's";
  run_->finish();
  EXPECT_EQ(how_it_ended(id_), "done");
  EXPECT_EQ(told(true), "array_donated");
  EXPECT_EQ(told(false), "array_donated");
}

TEST_P(Donated, array_of_a_job_that_failed_or_was_cancelled_is_there_again) {
  ASSERT_TRUE(run_->begin());
  run_->fail(core::Error("invalid_argument", "by the test"));
  EXPECT_EQ(how_it_ended(id_), "invalid_argument");
  EXPECT_EQ(told(false), "");
  id_ = start(reads(true));
  run_ = engine_.next();
  runner().cancel_or_delete(id_, "ann");
  EXPECT_EQ(how_it_ended(id_), "cancelled");
  EXPECT_EQ(told(true), "") << "it is the next one's";
}

INSTANTIATE_TEST_SUITE_P(Arrays, Donated,
                         ::testing::Values(storage::Durability::kDurable, storage::Durability::kMemory),
                         [](const auto& given) { return std::string(storage::to_string(given.param)); });

// ---- retention ----

TEST_F(JobRunner, jobs_are_kept_for_a_time_that_the_clock_measures) {
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(start(request(kPlain)));
    const RunRef one = engine_.next();
    ASSERT_TRUE(one->begin());
    one->finish();
    EXPECT_EQ(how_it_ended(ids.back()), "done");
    advance(30min);
  }
  // They ended 90, 60 and 30 minutes ago.
  jobs::RetentionTime time(catalog(), clock_);
  const auto expire = [&] { return jobs::expire_jobs(catalog(), {.count = 0, .time = 61min}, time.now()); };
  EXPECT_EQ(expire(), 1);
  EXPECT_EQ(error_word([&] { view(ids[0]); }), "not_found");
  EXPECT_EQ(view(ids[1]).row.state, State::kDone);
  EXPECT_EQ(expire(), 0);
  advance(1h);
  EXPECT_EQ(expire(), 2);
}

}  // namespace
}  // namespace meshd::testing
