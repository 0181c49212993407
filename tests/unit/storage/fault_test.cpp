// Walks through every call that a scenario makes into the system and lets each of them fail: the failure is a clean
// error or a fatal one, and whatever was acknowledged is there when the folder is opened again.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/support/fault_plan.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_file_system.h"
#include "tests/support/watched_vfs.h"

namespace meshd::testing {
namespace {

using namespace storage;

constexpr int kSteps = 6;

/// What a client was told.
struct Told {
  std::set<int> kept;     ///< arrays whose step was acknowledged
  std::set<int> refused;  ///< steps that were answered with an error that promises that nothing happened
  int failures = 0;
  bool fatal = false;
};

std::string array_id(int step) { return "arr_" + std::to_string(step); }
std::string payload(int step) { return std::string(static_cast<size_t>(1000 + step), static_cast<char>('a' + step)); }

// One step: a blob, then one transaction with array, shard, effect and job number, as a job's commit does.
void run_step(Store& store, int step) {
  std::vector<BlobWriter> writers;
  for (int shard = 0; shard < 2; ++shard) {
    writers.push_back(store.blobs().begin(array_id(step) + ".v1.s" + std::to_string(shard), 1000 + step));
    writers.back().write(0, as_bytes(payload(step)));
  }
  const std::vector<CommittedBlob> blobs = commit_blobs(std::move(writers));
  store.catalog().write([&](Transaction& t) {
    t.insert_array(array_row(array_id(step)));
    for (int shard = 0; shard < 2; ++shard) {
      t.put_shard({array_id(step), shard, blobs[static_cast<size_t>(shard)].ref});
    }
    const std::string job = "job_" + std::to_string(step);
    t.insert_job(job_row(job, "ses_1", t.next_job_number("ses_1")));
    std::vector<EffectRow> effects = {effect_row(job, 0, "[0]"), effect_row(job, 1, "[1]")};
    t.append_effects("ses_1", effects);
    if (step > 0 && step % 3 == 0) t.delete_array(array_id(step - 1));
  });
}

void run_scenario(Store& store, Told& told) {
  for (int step = 0; step < kSteps; ++step) {
    try {
      run_step(store, step);
      told.kept.insert(step);
      if (step > 0 && step % 3 == 0) told.kept.erase(step - 1);
      (void)store.collect_garbage();
      (void)store.catalog().read([](Reader& r) { return r.effects("ses_1", 0, 1000); });
    } catch (const core::Error& error) {
      ++told.failures;
      if (!told.kept.contains(step) && error.code() == core::ErrorCode("disk_full")) told.refused.insert(step);
    }
  }
}

// The rules that hold after any failure.
void check_after(const std::string& folder, const Told& told) {
  OpenStore store(folder);
  EXPECT_TRUE(store->recovery().damaged_arrays.empty());
  store->catalog().read([&](Reader& r) {
    const auto session = r.session("ses_1");
    ASSERT_TRUE(session);
    const auto log = r.effects("ses_1", 0, 1000);
    for (size_t i = 0; i < log.size(); ++i) EXPECT_EQ(log[i].sequence, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(session->last_sequence, static_cast<int64_t>(log.size()));
    const JobFilter filter{.session = "ses_1", .state = {}};
    const auto jobs = r.jobs("ann", filter, {});
    EXPECT_EQ(log.size(), 2 * jobs.items.size());
    for (size_t i = 0; i < jobs.items.size(); ++i)
      EXPECT_EQ(jobs.items[i].number, static_cast<int64_t>(jobs.items.size() - i));
    for (const int step : told.kept) {
      // The step after it may have deleted it without having been able to say so.
      const bool maybe_deleted = (step + 1) % 3 == 0 && r.array(array_id(step + 1)).has_value();
      EXPECT_TRUE(r.array(array_id(step)).has_value() || maybe_deleted) << "array of step " << step << " is lost";
    }
    for (const int step : told.refused) EXPECT_FALSE(r.array(array_id(step))) << "refused step " << step << " happened";
    for (const ArrayRow& array : r.arrays("ann", {}, {}).items) {
      const auto shards = r.shards(array.id);
      ASSERT_EQ(shards.size(), 2U);
      const int step = array.id.back() - '0';
      for (const ShardRow& shard : shards) EXPECT_EQ(read_blob(store->blobs(), shard.blob), payload(step));
    }
  });
  run_step(*store, 9);
}

class StorageFaults : public ::testing::TestWithParam<std::tuple<FaultReach, FaultKind>> {
 protected:
  // A folder with one session.
  static void prepare(const std::string& folder) {
    OpenStore store(folder);
    store->catalog().write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
  }
};

TEST_P(StorageFaults, nth_call_failing_loses_nothing_that_was_acknowledged) {
  const auto [reach, kind] = GetParam();
  FaultPlan plan;
  WatchedFileSystem files(plan);
  const WatchedVfs vfs(plan);
  const core::SystemClock clock;
  int64_t nth = 1;
  int fatal_runs = 0;
  for (;; ++nth) {
    const TempFolder folder(TempFolder::Where::kMemory);
    prepare(folder.path());
    Told told;
    {
      Store store({folder.path(), vfs.name(), [&](const std::string&) { told.fatal = true; }}, files, clock);
      plan.arm(nth, reach, kind);
      run_scenario(store, told);
      if (told.fatal) {
        EXPECT_FALSE(store.health().writable);
        EXPECT_EQ(error_word([&] { store.catalog().write([](Transaction&) {}); }), "storage_failed");
      } else if (plan.fired()) {
        plan.disarm();
        EXPECT_EQ(error_word([&] { run_step(store, 8); }), "") << "storage did not recover from call " << nth;
      }
    }
    const bool fired = plan.fired();
    plan.disarm();
    ASSERT_NO_FATAL_FAILURE(check_after(folder.path(), told)) << "call " << nth;
    ASSERT_FALSE(HasFailure()) << "call " << nth;
    fatal_runs += told.fatal ? 1 : 0;
    if (!fired) {
      EXPECT_EQ(told.failures, 0);
      break;
    }
  }
  EXPECT_GT(nth, 100);
  EXPECT_GE(fatal_runs, kind == FaultKind::kIo ? 10 : 0);
  RecordProperty("calls", static_cast<int>(nth - 1));
}

INSTANTIATE_TEST_SUITE_P(All, StorageFaults,
                         ::testing::Combine(::testing::Values(FaultReach::kOnce, FaultReach::kSticky),
                                            ::testing::Values(FaultKind::kIo, FaultKind::kNoSpace)),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param) == FaultReach::kOnce ? "once" : "sticky") +
                                  (std::get<1>(chosen.param) == FaultKind::kIo ? "_io" : "_no_space");
                         });

TEST(StorageFault, opening_with_the_nth_call_failing_is_clean) {
  FaultPlan plan;
  WatchedFileSystem files(plan);
  const WatchedVfs vfs(plan);
  const core::SystemClock clock;
  const TempFolder folder(TempFolder::Where::kMemory);
  {
    OpenStore store(folder.path());
    store->catalog().write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
    run_step(*store, 0);
  }
  int64_t nth = 1;
  for (;; ++nth) {
    plan.arm(nth, FaultReach::kSticky, FaultKind::kIo);
    const std::string word = error_word([&] {
      const Store store({folder.path(), vfs.name(), [](const std::string&) {}}, files, clock);
    });
    const bool fired = plan.fired();
    plan.disarm();
    if (!fired) break;
    OpenStore store(folder.path());
    EXPECT_TRUE(store->catalog().read([](Reader& r) { return r.array("arr_0"); })) << nth;
  }
  EXPECT_GT(nth, 50);
}

TEST(StorageFault, full_disk_is_an_error_of_its_own_and_reads_go_on) {
  FaultPlan plan;
  const WatchedVfs vfs(plan);
  const TempFolder folder;
  std::string fatal;
  Database database({folder.path() + "/meshd.db", vfs.name(), [&](const std::string& reason) { fatal = reason; }});
  Catalog catalog(database);
  catalog.write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
  plan.arm(1, FaultReach::kSticky, FaultKind::kNoSpace, "sql_write");
  EXPECT_EQ(error_word([&] { catalog.write([](Transaction& t) { t.insert_array(array_row("arr_1")); }); }),
            "disk_full");
  EXPECT_FALSE(catalog.writable());
  EXPECT_TRUE(catalog.read([](Reader& r) { return r.session("ses_1"); }));
  EXPECT_FALSE(catalog.read([](Reader& r) { return r.array("arr_1"); }));
  plan.disarm();
  catalog.write([](Transaction& t) { t.insert_array(array_row("arr_1")); });
  EXPECT_TRUE(catalog.writable());
  EXPECT_EQ(fatal, "");
}

TEST(StorageFault, commit_refused_for_want_of_space_does_not_come_back_after_a_crash) {
  FaultPlan plan;
  const WatchedVfs vfs(plan);
  const TempFolder folder;
  const TempFolder crashed;
  {
    Database database({folder.path() + "/meshd.db", vfs.name(), [](const std::string&) {}});
    Catalog catalog(database);
    catalog.write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
    // More pages than one piece of the shared index has: it must grow after the log was written and synced.
    plan.arm(1, FaultReach::kSticky, FaultKind::kNoSpace, "sql_shm");
    EXPECT_EQ(error_word([&] {
                catalog.write([](Transaction& t) {
                  std::vector<EffectRow> rows = {effect_row("job", 0, std::string(20 << 20, 'x'))};
                  t.append_effects("ses_1", rows);
                });
              }),
              "disk_full");
    EXPECT_TRUE(plan.fired());
    std::filesystem::copy(folder.path(), crashed.path(), std::filesystem::copy_options::recursive);
    plan.disarm();
  }
  Database database({crashed.path() + "/meshd.db", {}, [](const std::string&) {}});
  Catalog catalog(database);
  EXPECT_EQ(catalog.read([](Reader& r) { return r.session("ses_1"); })->last_sequence, 0);
}

TEST(StorageFault, sync_that_fails_while_committing_is_fatal_and_never_repeated) {
  FaultPlan plan;
  const WatchedVfs vfs(plan);
  const TempFolder folder;
  int fatal = 0;
  {
    Database database({folder.path() + "/meshd.db", vfs.name(), [&](const std::string&) { ++fatal; }});
    Catalog catalog(database);
    plan.arm(1, FaultReach::kOnce, FaultKind::kIo, "sql_sync");
    EXPECT_EQ(error_word([&] { catalog.write([](Transaction& t) { t.insert_array(array_row("arr_1")); }); }),
              "storage_failed");
    const int64_t syncs = plan.calls("sql_sync");
    EXPECT_EQ(error_word([&] { catalog.write([](Transaction& t) { t.insert_array(array_row("arr_2")); }); }),
              "storage_failed");
    EXPECT_EQ(plan.calls("sql_sync"), syncs);
    EXPECT_FALSE(catalog.writable());
  }
  EXPECT_EQ(fatal, 1);
}

TEST(StorageFault, checkpoint_that_cannot_sync_is_fatal) {
  FaultPlan plan;
  const WatchedVfs vfs(plan);
  const TempFolder folder;
  int fatal = 0;
  Database database({folder.path() + "/meshd.db", vfs.name(), [&](const std::string&) { ++fatal; }});
  Catalog catalog(database);
  catalog.write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
  // The commit's own sync is the first one; the second belongs to the checkpoint that it sets off.
  plan.arm(2, FaultReach::kOnce, FaultKind::kIo, "sql_sync");
  catalog.write([](Transaction& t) {
    std::vector<EffectRow> rows = {effect_row("job", 0, std::string(20 << 20, 'x'))};
    t.append_effects("ses_1", rows);
  });
  EXPECT_EQ(error_word([&] { catalog.write([](Transaction&) {}); }), "storage_failed");
  EXPECT_EQ(fatal, 1);
}

}  // namespace
}  // namespace meshd::testing
