// What fsck finds and what restore makes.
#include "storage/maintenance.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "storage/database/migrations.h"
#include "tests/support/fault_plan.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_file_system.h"

namespace meshd::testing {
namespace {

using namespace storage;

std::filesystem::path blob_file_in(const std::string& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder + "/blobs")) {
    if (entry.is_regular_file()) return entry.path();
  }
  return {};
}

class Maintenance : public ::testing::Test {
 protected:
  void SetUp() override {
    OpenStore store(data_);
    const CommittedBlob blob = put_blob(store->blobs(), "arr_1.v1.s0", "abcdef");
    ref_ = blob.ref;
    store->catalog().write([&](Transaction& t) {
      t.insert_array(array_row("arr_1"));
      t.put_shard({"arr_1", 0, ref_});
      t.insert_session(session_row("ses_1"));
      std::vector<EffectRow> rows = {effect_row("job_1", 0, "1"), effect_row("job_1", 1, "2")};
      t.append_effects("ses_1", rows);
    });
  }

  void execute(const std::string& sql) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open((data_ + "/meshd.db").c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
    sqlite3_close(handle);
  }

  /// The one problem that a check finds.
  std::string problem() {
    const CheckReport report = check(*files_, data_);
    EXPECT_EQ(report.problem_count, 1);
    return report.problems.empty() ? "" : report.problems[0];
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  std::string data_ = folder_.path() + "/data";
  std::string copy_ = folder_.path() + "/copy";
  std::unique_ptr<FileSystem> files_ = real_file_system();
  BlobRef ref_;
};

TEST_F(Maintenance, sound_folder_has_no_problems) {
  const CheckReport report = check(*files_, data_);
  EXPECT_EQ(report.problem_count, 0) << report.problems[0];
  EXPECT_EQ(report.schema_version, static_cast<int64_t>(migrations().size()));
  EXPECT_TRUE(report.has_counts);
  EXPECT_EQ(report.arrays, 1);
  EXPECT_EQ(report.shards, 1);
  EXPECT_EQ(report.bytes, 6);
  EXPECT_EQ(report.orphans, 0);
}

TEST_F(Maintenance, session_whose_removal_was_cut_off_is_no_problem) {
  {
    OpenStore store(data_);
    store->catalog().write([](Transaction& t) {
      std::vector<EffectRow> rows;
      for (int64_t i = 2; i < 1500; ++i) rows.push_back(effect_row("job_1", i, "3"));
      t.append_effects("ses_1", rows);
      t.delete_session("ses_1");
      ASSERT_TRUE(t.has_deleted_sessions());
    });
  }
  EXPECT_EQ(check(*files_, data_).problem_count, 0);
}

TEST_F(Maintenance, changed_byte_of_a_shard_is_found) {
  std::fstream file(blob_file_in(data_), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2);
  file << 'X';
  file.close();
  EXPECT_EQ(problem(), "array arr_1, shard 0: blob 'arr_1.v1.s0': page 0");
}

TEST_F(Maintenance, missing_file_of_a_shard_is_found) {
  std::filesystem::remove(blob_file_in(data_));
  EXPECT_EQ(problem(), "array arr_1, shard 0: blob 'arr_1.v1.s0': the file is missing");
}

TEST_F(Maintenance, gap_in_a_log_is_found) {
  execute("DELETE FROM effects WHERE sequence = 1");
  EXPECT_EQ(problem(), "session ses_1: its log should have the entries 1 to 2, but has 1 up to 2");
}

TEST_F(Maintenance, row_that_names_no_row_is_found) {
  execute("PRAGMA foreign_keys = OFF; DELETE FROM arrays");
  EXPECT_EQ(problem(), "a row of shards names a row of arrays that is not there");
}

TEST_F(Maintenance, other_schema_is_named_and_not_looked_into) {
  execute("PRAGMA user_version = 1");
  EXPECT_NE(problem().find("the schema is version 1, this build checks"), std::string::npos);
  EXPECT_FALSE(check(*files_, data_).has_counts);
}

TEST_F(Maintenance, file_of_no_array_is_counted_and_no_problem) {
  execute("DELETE FROM shards");
  const CheckReport report = check(*files_, data_);
  EXPECT_EQ(report.problem_count, 0);
  EXPECT_EQ(report.orphans, 1);
}

TEST_F(Maintenance, folder_in_use_or_without_data_is_refused) {
  EXPECT_EQ(error_word([&] { static_cast<void>(check(*files_, folder_.path())); }), "not_found");
  const OpenStore store(data_);
  EXPECT_EQ(error_word([&] { static_cast<void>(check(*files_, data_)); }), "storage_failed");
}

TEST_F(Maintenance, restored_folder_shares_no_file_with_the_backup) {
  OpenStore(data_)->backup_to(copy_);
  const std::string restored = folder_.path() + "/restored";
  EXPECT_EQ(restore(*files_, copy_, restored).bytes, 6);
  std::filesystem::remove_all(data_);
  std::fstream file(blob_file_in(copy_), std::ios::in | std::ios::out | std::ios::binary);
  file << "damage";
  file.close();
  OpenStore store(restored);
  EXPECT_EQ(read_blob(store->blobs(), ref_), "abcdef");
  EXPECT_EQ(store->catalog().read([](Reader& r) { return r.effects("ses_1", 0, 10); }).size(), 2U);
}

TEST_F(Maintenance, copy_has_no_file_that_no_row_names) {
  OpenStore store(data_);
  const CommittedBlob unnamed = put_blob(store->blobs(), "arr_2.v1.s0", "not in a row yet");
  store->backup_to(copy_);
  for (const char* ending : {"-wal", "-shm"}) EXPECT_FALSE(std::filesystem::exists(copy_ + "/meshd.db" + ending));
  const CheckReport report = check(*files_, copy_);
  EXPECT_EQ(report.problem_count, 0);
  EXPECT_EQ(report.shards, 1);
  EXPECT_EQ(report.orphans, 0);
}

TEST_F(Maintenance, damaged_backup_is_not_restored) {
  std::filesystem::remove(blob_file_in(data_));
  EXPECT_EQ(error_word([&] { restore(*files_, data_, copy_); }), "storage_failed");
  EXPECT_FALSE(std::filesystem::exists(copy_));
}

TEST_F(Maintenance, copy_that_fails_at_any_call_leaves_nothing_behind) {
  FaultPlan plan;
  WatchedFileSystem files(plan);
  const core::SystemClock clock;
  Store store({data_, {}, [](const std::string&) {}}, files, clock);
  int64_t nth = 1;
  for (;; ++nth) {
    plan.arm(nth, FaultReach::kOnce, FaultKind::kNoSpace);
    const std::string word = error_word([&] { store.backup_to(copy_); });
    const bool fired = plan.fired();
    plan.disarm();
    ASSERT_EQ(word, fired ? "disk_full" : "") << "call " << nth;
    if (!fired) break;
    ASSERT_TRUE(!std::filesystem::exists(copy_) || std::filesystem::is_empty(copy_)) << "call " << nth;
  }
  EXPECT_GT(nth, 5);
  EXPECT_EQ(check(*files_, copy_).problem_count, 0);
}

TEST_F(Maintenance, copy_that_was_cut_off_is_no_data) {
  OpenStore(data_)->backup_to(copy_);
  EXPECT_FALSE(std::filesystem::exists(copy_ + "/incomplete"));
  const std::ofstream mark(copy_ + "/incomplete");
  EXPECT_EQ(error_word([&] { static_cast<void>(check(*files_, copy_)); }), "storage_failed");
  EXPECT_EQ(error_word([&] { restore(*files_, copy_, folder_.path() + "/restored"); }), "storage_failed");
  EXPECT_EQ(error_word([&] { const OpenStore store(copy_); }), "storage_failed");
  EXPECT_EQ(error_word([&] { OpenStore(data_)->backup_to(copy_); }), "conflict");
}

TEST_F(Maintenance, folder_with_something_in_it_is_left_alone) {
  std::filesystem::create_directory(copy_);
  std::ofstream(copy_ + "/notes") << "mine";
  EXPECT_EQ(error_word([&] { restore(*files_, data_, copy_); }), "conflict");
  EXPECT_EQ(error_word([&] { OpenStore(data_)->backup_to(copy_); }), "conflict");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(copy_), {}), 1);
}

}  // namespace
}  // namespace meshd::testing
