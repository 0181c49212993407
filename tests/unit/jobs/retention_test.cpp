#include "service/jobs/commit/retention.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace std::chrono_literals;

TEST(Retention, keys_of_finished_jobs_go_after_a_day) {
  const TempFolder folder(TempFolder::Where::kMemory);
  OpenStore store(folder.path());
  constexpr int kMany = 2500;
  store->catalog().write([](storage::Transaction& t) {
    t.insert_job(job_row("job_queued"));
    t.insert_idempotency({"ann", "run", "of a job that waits", "f", "job_queued", at(0)});
    for (int i = 0; i < kMany; ++i) t.insert_idempotency({"ann", "run", std::to_string(i), "f", "job_gone", at(0)});
  });
  EXPECT_EQ(jobs::expire_idempotency_keys(store->catalog(), at(0) + 24h), 0);
  EXPECT_EQ(jobs::expire_idempotency_keys(store->catalog(), at(1) + 24h), kMany);
  EXPECT_TRUE(
      store->catalog().read([](storage::Reader& r) { return r.idempotency("ann", "run", "of a job that waits"); }));
}

TEST(Retention, of_too_many_keys_of_a_principal_the_oldest_go) {
  const TempFolder folder(TempFolder::Where::kMemory);
  OpenStore store(folder.path());
  store->catalog().write([](storage::Transaction& t) {
    t.insert_job(job_row("job_queued"));
    t.insert_idempotency({"ann", "run", "of a job that waits", "f", "job_queued", at(0)});
    for (int i = 1; i <= 2500; ++i) t.insert_idempotency({"ann", "run", std::to_string(i), "f", "job_gone", at(i)});
    for (int i = 1; i <= 3; ++i) t.insert_idempotency({"bob", "run", std::to_string(i), "f", "job_gone", at(i)});
  });
  EXPECT_EQ(jobs::expire_idempotency_keys(store->catalog(), std::nullopt, 2501), 0);
  EXPECT_EQ(jobs::expire_idempotency_keys(store->catalog(), std::nullopt, 3), 2498);
  const auto has = [&](const char* who, const char* key) {
    return store->catalog().read([&](storage::Reader& r) { return r.idempotency(who, "run", key).has_value(); });
  };
  EXPECT_FALSE(has("ann", "2498"));
  EXPECT_TRUE(has("ann", "2499") && has("ann", "2500") && has("ann", "of a job that waits"));
  EXPECT_TRUE(has("bob", "1") && has("bob", "3"));
}

/// Two clocks that a test sets.
class TwoClocks final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime wall() const override { return wall_; }
  [[nodiscard]] core::SteadyTime steady() const override { return steady_; }
  void pass(std::chrono::hours time) {
    wall_ += time;
    steady_ += time;
  }
  void set_ahead(std::chrono::hours time) { wall_ += time; }

 private:
  core::WallTime wall_ = at(0) + std::chrono::hours(24 * 365 * 50);
  core::SteadyTime steady_{std::chrono::hours(1)};
};

class RetentionTime : public ::testing::Test {
 protected:
  static constexpr std::chrono::hours kYears{24 * 365 * 10};
  /// True when the clock is believed as it is.
  bool believed() { return time_->now() == clock_.wall(); }
  void restart(std::chrono::hours off) {
    clock_.pass(off);
    time_ = std::make_unique<jobs::RetentionTime>(store_->catalog(), clock_, on_jump_);
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_{folder_.path()};
  TwoClocks clock_;
  std::vector<int64_t> jumps_;  // in hours
  const std::function<void(std::chrono::seconds)> on_jump_ = [this](std::chrono::seconds ahead) {
    jumps_.push_back(ahead.count() / 3600);
  };
  std::unique_ptr<jobs::RetentionTime> time_ =
      std::make_unique<jobs::RetentionTime>(store_->catalog(), clock_, on_jump_);
};

TEST_F(RetentionTime, passes_with_both_clocks) {
  for (int day = 0; day < 100; ++day, clock_.pass(23h)) EXPECT_TRUE(believed());
  clock_.pass(24h * 40);
  EXPECT_TRUE(believed()) << "the server ran, without a sweep";
  clock_.set_ahead(20h);
  EXPECT_TRUE(believed());
  EXPECT_TRUE(jumps_.empty());
}

TEST_F(RetentionTime, that_jumped_ahead_is_believed_after_a_day) {
  EXPECT_TRUE(believed());
  clock_.set_ahead(kYears);
  for (int hour = 0; hour < 24; ++hour, clock_.pass(1h)) EXPECT_EQ(time_->now(), std::nullopt) << hour;
  EXPECT_TRUE(believed());
  clock_.pass(1h);
  EXPECT_TRUE(believed());
  EXPECT_EQ(jumps_, std::vector<int64_t>{kYears.count()}) << "told once";
}

TEST_F(RetentionTime, that_is_set_right_again_is_believed_at_once) {
  EXPECT_TRUE(believed());
  clock_.set_ahead(kYears);
  EXPECT_FALSE(believed());
  clock_.pass(20h);
  clock_.set_ahead(kYears);  // a second jump is doubted from its own moment on
  EXPECT_FALSE(believed());
  clock_.pass(5h);
  EXPECT_FALSE(believed());
  clock_.set_ahead(-2 * kYears);
  EXPECT_TRUE(believed());
  EXPECT_EQ(jumps_.size(), 2U);
}

TEST_F(RetentionTime, that_jumped_back_is_believed_and_the_way_forth_is_not) {
  EXPECT_TRUE(believed());
  clock_.set_ahead(-kYears);
  EXPECT_TRUE(believed());
  clock_.set_ahead(kYears);
  EXPECT_FALSE(believed());
}

TEST_F(RetentionTime, goes_on_from_the_last_sweep_over_restarts) {
  restart(1h);
  EXPECT_TRUE(believed()) << "there was no sweep before";
  restart(23h);
  EXPECT_TRUE(believed());
  clock_.set_ahead(kYears);
  restart(0h);
  EXPECT_FALSE(believed());
  clock_.set_ahead(-kYears);
  restart(1h);
  EXPECT_TRUE(believed());
  restart(24h * 30);
  EXPECT_FALSE(believed()) << "it was off for a month: nobody knows";
  clock_.pass(24h);
  EXPECT_TRUE(believed());
}

class FinishedJobs : public ::testing::Test {
 protected:
  void add(const std::string& id, std::chrono::minutes finished, const std::string& principal = "ann",
           const std::string& answer = "") {
    storage::JobRow row = job_row(id);
    row.principal = principal;
    row.state = storage::JobState::kDone;
    row.finished = at(0) + finished;
    row.answer = answer;
    store_->catalog().write([&](storage::Transaction& t) { t.insert_job(row); });
  }
  std::string left(const std::string& principal = "ann") {
    std::string out;
    const auto jobs = store_->catalog().read([&](storage::Reader& r) { return r.jobs(principal, {}, {}); });
    for (const storage::JobRow& job : jobs.items) out += job.id + " ";
    return out;
  }
  int64_t expire(const jobs::JobRetention& kept, std::chrono::minutes now) {
    return jobs::expire_jobs(store_->catalog(), kept, at(0) + now);
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_{folder_.path()};
};

TEST_F(FinishedJobs, old_ones_and_those_beyond_the_count_go) {
  for (const auto& [id, finished] : {std::pair("job_a", 10min), {"job_b", 70min}, {"job_c", 80min}, {"job_d", 95min}})
    add(id, finished);
  EXPECT_EQ(expire({.count = 0, .time = 0s}, 100min), 0);
  EXPECT_EQ(expire({.count = 4, .time = 90min}, 100min), 0) << "job_a ended exactly 90 minutes ago";
  EXPECT_EQ(expire({.count = 4, .time = 89min}, 100min), 1);
  EXPECT_EQ(left(), "job_d job_c job_b ");
  EXPECT_EQ(expire({.count = 2, .time = 60min}, 100min), 1);
  EXPECT_EQ(left(), "job_d job_c ");
  EXPECT_EQ(expire({.count = 2, .time = 10min}, 100min), 1) << "the earlier end of the two counts";
  EXPECT_EQ(left(), "job_d ");
}

TEST_F(FinishedJobs, behind_so_many_bytes_of_newer_answers_they_go) {
  const std::string answer(100, 'x');
  for (const auto& [id, finished] : {std::pair("job_a", 10min), {"job_b", 20min}, {"job_c", 30min}, {"job_d", 40min}})
    add(id, finished, "ann", answer);
  add("job_e", 5min, "bob", answer);
  EXPECT_EQ(expire({.count = 0, .time = 0s, .answer_bytes = 301}, 100min), 0);
  EXPECT_EQ(expire({.count = 0, .time = 0s, .answer_bytes = 300}, 100min), 1);
  EXPECT_EQ(expire({.count = 3, .time = 0s, .answer_bytes = 101}, 100min), 1) << "job_b: 200 bytes are newer";
  EXPECT_EQ(left(), "job_d job_c ");
  EXPECT_EQ(expire({.count = 0, .time = 0s, .answer_bytes = 1}, 100min), 1) << "the newest stays, however large it is";
  EXPECT_EQ(left() + left("bob"), "job_d job_e ");
}

TEST_F(FinishedJobs, count_is_each_principals_own) {
  add("job_0", 1min, "");
  add("job_1", 2min, "");
  add("job_a", 1min);
  add("job_b", 2min);
  add("job_c", 1min, "bob");
  EXPECT_EQ(expire({.count = 1, .time = 0s}, 100min), 2);
  EXPECT_EQ(left("") + left() + left("bob"), "job_1 job_b job_c ");
}

TEST_F(FinishedJobs, those_that_wait_or_that_a_key_returns_stay) {
  add("job_a", 1min);
  add("job_b", 2min);
  store_->catalog().write([](storage::Transaction& t) {
    t.insert_job(job_row("job_queued"));
    t.insert_idempotency({"ann", "run", "k", "f", "job_a", at(0)});
    t.insert_idempotency({"bob", "run", "k", "f", "job_b", at(0)});
  });
  EXPECT_EQ(expire({.count = 0, .time = 1s}, 100min), 1);
  EXPECT_EQ(left(), "job_queued job_a ");
  EXPECT_EQ(jobs::expire_idempotency_keys(store_->catalog(), at(1) + 24h), 2);
  EXPECT_EQ(expire({.count = 0, .time = 1s}, 100min), 1);
  EXPECT_EQ(left(), "job_queued ");
}

TEST_F(FinishedJobs, transactions_are_bounded_by_jobs_and_by_bytes) {
  const auto commits = [&] { return store_->catalog().counters().transactions; };
  store_->catalog().write([](storage::Transaction& t) {
    storage::JobRow row = job_row("");
    row.state = storage::JobState::kDone;
    row.finished = at(1);
    for (int i = 0; i < 2500; ++i) {
      row.id = "job_" + std::to_string(i);
      t.insert_job(row);
    }
  });
  int64_t before = commits();
  EXPECT_EQ(expire({.count = 0, .time = 1s}, 100min), 2500);
  EXPECT_EQ(commits() - before, 3);
  for (const char* id : {"job_a", "job_b", "job_c", "job_d"}) add(id, 1min, "ann", std::string(5 << 20, 'x'));
  before = commits();
  EXPECT_EQ(expire({.count = 0, .time = 1s}, 100min), 4);
  EXPECT_EQ(commits() - before, 4) << "two have more than 8 MiB";
}

}  // namespace
}  // namespace meshd::testing
