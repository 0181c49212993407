// What leaves the database in the background leaves it in short transactions and in little memory, however much it is:
// finished jobs beyond what is kept, and the rows of deleted sessions.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "service/jobs/commit/retention.h"
#include "service/sessions/session_store.h"
#include "tests/support/effort.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

const int64_t kMany = by_effort(100'000, 1'000'000, 1'000'000);
constexpr int64_t kMostAtOnce = 1000;  // rows of a transaction
constexpr int64_t kMostOfSession = 500;
constexpr int64_t kMostMemory = int64_t{16} << 20;  // however many: 100,000 jobs with their answers are four times that

// A field of /proc/self/status, in bytes.
[[maybe_unused]] int64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// How much memory `f` took more than there was, at its most. Nothing where the system does not tell, or where a
// sanitizer keeps what was freed.
template <typename F>
int64_t peak_of(F&& f) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  f();
  return 0;
#else
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const int64_t before = status_bytes("VmRSS");
  f();
  return status_bytes("VmHWM") - before;
#endif
}

class ManyJobs : public ::testing::Test {
 protected:
  // Finished, one a second.
  void add_jobs(const std::string& session) {
    for (int64_t first = 0; first < kMany; first += kMostAtOnce) {
      store_->catalog().write([&](storage::Transaction& t) {
        storage::JobRow row = job_row("", session);
        row.state = storage::JobState::kDone;
        row.answer = std::string(512, 'a');
        for (int64_t i = first; i < first + kMostAtOnce; ++i) {
          row.id = "job_" + std::to_string(i);
          row.number = session.empty() ? 0 : i + 1;
          row.finished = at(0) + std::chrono::seconds(i);
          t.insert_job(row);
          if (session.empty()) continue;
          std::vector<storage::EffectRow> effects{effect_row(row.id, 0, "1")};
          t.append_effects(session, effects);
        }
      });
    }
  }
  int64_t left(const char* principal = "ann") {
    return store_->catalog().read([&](storage::Reader& r) { return r.count_of(storage::Counted::kJobs, principal); });
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_{folder_.path()};
};

TEST_F(ManyJobs, expire_by_count_and_age_in_bounded_memory) {
  add_jobs("");
  const int64_t before = store_->catalog().counters().transactions;
  int64_t gone = 0;
  const int64_t peak =
      peak_of([&] { gone = jobs::expire_jobs(store_->catalog(), {.count = kMany / 10, .time = {}}, std::nullopt); });
  EXPECT_EQ(gone, kMany - kMany / 10);
  EXPECT_EQ(store_->catalog().counters().transactions - before, gone / kMostAtOnce);
  EXPECT_LT(peak, kMostMemory);
  // Of those that are left, the ones older than an hour.
  const core::WallTime now = at(0) + std::chrono::seconds(kMany);
  gone = jobs::expire_jobs(store_->catalog(), {.count = 0, .time = std::chrono::hours(1)}, now);
  EXPECT_EQ(left(), 3600);
  EXPECT_EQ(gone, kMany / 10 - 3600);
}

TEST_F(ManyJobs, leave_with_their_session_in_bounded_memory) {
  store_->catalog().write([](storage::Transaction& t) { t.insert_session(session_row("ses_1")); });
  add_jobs("ses_1");
  EXPECT_EQ(left(), kMany);
  sessions::SessionStore sessions(store_->catalog(), core::SystemClock());
  int64_t parts = 0;
  const int64_t peak = peak_of([&] {
    sessions.remove("ses_1");
    EXPECT_EQ(left(), 0) << "nothing of it is visible from here on";
    parts = sessions.remove_deleted([] { return false; });
  });
  EXPECT_GE(parts, 2 * kMany / kMostOfSession - 1) << "jobs and effects, five hundred rows in a transaction";
  EXPECT_LE(parts, 2 * kMany / kMostOfSession + 2);
  EXPECT_LT(peak, kMostMemory);
  EXPECT_FALSE(store_->catalog().read([](storage::Reader& r) { return r.has_deleted_sessions(); }));
  EXPECT_FALSE(store_->catalog().read([](storage::Reader& r) { return r.next_with_finished_jobs(std::nullopt); }));
}

}  // namespace
}  // namespace meshd::testing
