// What a start makes of what it finds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace storage;

class StorageRecovery : public ::testing::Test {
 protected:
  // Opens, lets `f` write, closes; what runs then is found by the next start as after a crash.
  void prepare(const std::function<void(Transaction&)>& f) {
    OpenStore store(folder_.path());
    store->catalog().write(f);
  }
  void prepare_array(const std::string& id) {
    OpenStore store(folder_.path());
    const CommittedBlob blob = put_blob(store->blobs(), id + ".v1.s0", "abcdef");
    store->catalog().write([&](Transaction& t) {
      t.insert_array(array_row(id));
      t.put_shard({id, 0, blob.ref});
    });
  }
  [[nodiscard]] std::string path_of(const std::string& name) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (entry.path().filename() == name) return entry.path().string();
    }
    return {};
  }
  TempFolder folder_{TempFolder::Where::kMemory};
};

JobRow running(std::string id, std::string session, int64_t number, int64_t attempt) {
  JobRow row = job_row(std::move(id), std::move(session), number);
  row.state = JobState::kRunning;
  row.attempt = attempt;
  row.started = at(7);
  return row;
}

TEST_F(StorageRecovery, a_reserve_that_has_not_its_space_is_made_anew) {
  const std::string path = folder_.path() + "/reserve";
  prepare([](Transaction&) {});
  const auto bytes = std::filesystem::file_size(path);
  EXPECT_EQ(bytes, static_cast<uintmax_t>(StoreOptions().reserve_bytes));
  std::filesystem::resize_file(path, 0);  // a crash right behind its creation
  OpenStore store(folder_.path());
  EXPECT_EQ(std::filesystem::file_size(path), bytes);
  std::filesystem::resize_file(path, 1);
  store->collect_garbage();
  EXPECT_EQ(std::filesystem::file_size(path), bytes);
}

TEST_F(StorageRecovery, running_jobs_are_queued_again_and_the_third_crash_fails_them) {
  prepare([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    t.insert_job(running("job_1", "ses_1", 1, 1));
    t.insert_job(running("job_2", "ses_1", 2, 3));
    t.insert_array(array_row("arr_1"));
    t.insert_array(array_row("arr_2"));
    t.reserve_array("arr_1", "job_1");
    t.reserve_array("arr_2", "job_2");
  });
  OpenStore store(folder_.path());
  EXPECT_EQ(store->recovery().requeued_jobs, 1);
  EXPECT_EQ(store->recovery().crashed_jobs, std::vector<std::string>{"job_2"});
  store->catalog().read([](Reader& r) {
    EXPECT_EQ(r.job("job_1", "ann")->state, JobState::kQueued);
    EXPECT_EQ(r.job("job_1", "ann")->attempt, 2);
    EXPECT_EQ(r.job("job_1", "ann")->started, std::nullopt);
    EXPECT_EQ(r.job("job_2", "ann")->state, JobState::kFailed);
    EXPECT_EQ(r.job("job_2", "ann")->error_code, "crashed");
    EXPECT_TRUE(r.job("job_2", "ann")->finished);
    EXPECT_EQ(r.array("arr_1")->reserved_by, "job_1");
    EXPECT_EQ(r.array("arr_2")->reserved_by, "");
    EXPECT_EQ(r.session("ses_1")->state, SessionState::kOpen);
  });
}

TEST_F(StorageRecovery, jobs_whose_cancellation_was_requested_are_over) {
  prepare([](Transaction& t) {
    SessionRow session = session_row("ses_1");
    session.on_error = OnError::kHalt;
    t.insert_session(session);
    t.insert_job(running("job_1", "ses_1", 1, 3));
    t.insert_job(job_row("job_2", "ses_1", 2));
    t.insert_job(running("job_3", "ses_1", 3, 1));
    JobRow done = running("job_4", "ses_1", 4, 1);
    t.insert_job(done);
    t.insert_array(array_row("arr_1"));
    t.reserve_array("arr_1", "job_1");
    for (const char* job : {"job_1", "job_2", "job_4"}) t.request_cancel(job, "ann");
    t.request_cancel("job_3", "bob");
    done.state = JobState::kDone;
    EXPECT_TRUE(t.update_job(done));
    EXPECT_TRUE(t.is_cancel_requested("job_4", "ann"));
    EXPECT_FALSE(t.is_cancel_requested("job_3", "ann"));
  });
  OpenStore store(folder_.path());
  EXPECT_EQ(store->recovery().cancelled_jobs, 2);
  EXPECT_TRUE(store->recovery().crashed_jobs.empty());
  store->catalog().read([](Reader& r) {
    for (const char* id : {"job_1", "job_2"}) {
      const auto job = r.job(id, "ann");
      EXPECT_EQ(job->state, JobState::kCancelled);
      EXPECT_EQ(job->error_code, "cancelled");
      EXPECT_EQ(job->request, "");
      EXPECT_TRUE(job->finished);
    }
    EXPECT_EQ(r.job("job_3", "ann")->state, JobState::kQueued);
    EXPECT_EQ(r.job("job_4", "ann")->state, JobState::kDone) << "it committed first";
    EXPECT_EQ(r.array("arr_1")->reserved_by, "");
    EXPECT_EQ(r.session("ses_1")->state, SessionState::kOpen);
  });
}

TEST_F(StorageRecovery, crashed_job_halts_a_session_that_halts_on_errors) {
  prepare([](Transaction& t) {
    SessionRow session = session_row("ses_1");
    session.on_error = OnError::kHalt;
    t.insert_session(session);
    t.insert_job(running("job_1", "ses_1", 1, 3));
    t.insert_job(job_row("job_2", "ses_1", 2));
  });
  OpenStore store(folder_.path());
  store->catalog().read([](Reader& r) {
    EXPECT_EQ(r.session("ses_1")->state, SessionState::kHalted);
    EXPECT_EQ(r.job("job_2", "ann")->state, JobState::kQueued);
  });
}

TEST_F(StorageRecovery, memory_arrays_are_lost_visibly_and_once) {
  prepare([](Transaction& t) {
    for (const char* id : {"arr_1", "arr_2"}) {
      ArrayRow row = array_row(id);
      row.durability = Durability::kMemory;
      t.insert_array(row);
    }
    t.consume_array("arr_2", "job_1");
    t.insert_array(array_row("arr_3", ArrayState::kPending));
  });
  {
    OpenStore store(folder_.path());
    EXPECT_EQ(store->recovery().lost_memory_arrays, 1);
    store->catalog().read([](Reader& r) {
      EXPECT_EQ(r.array("arr_1")->state, ArrayState::kLost);
      EXPECT_EQ(r.array("arr_1")->version, 2);
      EXPECT_NE(r.array("arr_1")->reason.find("memory"), std::string::npos);
      EXPECT_EQ(r.array("arr_2")->state, ArrayState::kDonated);
      EXPECT_EQ(r.array("arr_3")->state, ArrayState::kPending);
    });
  }
  OpenStore again(folder_.path());
  EXPECT_EQ(again->recovery().lost_memory_arrays, 0);
}

TEST_F(StorageRecovery, temporary_files_and_orphans_go_and_named_blobs_stay) {
  prepare_array("arr_1");
  {
    OpenStore store(folder_.path());
    const CommittedBlob orphan = put_blob(store->blobs(), "arr_2.v1.s0", "abcdef");
  }
  std::ofstream(folder_.path() + "/blobs/tmp/arr_3.v1.s0") << "half";
  OpenStore store(folder_.path());
  EXPECT_EQ(store->recovery().temporary_files, 1);
  EXPECT_EQ(store->recovery().orphans, 1);
  EXPECT_EQ(path_of("arr_2.v1.s0"), "");
  const auto shards = store->catalog().read([](Reader& r) { return r.shards("arr_1"); });
  EXPECT_EQ(read_blob(store->blobs(), shards.at(0).blob), "abcdef");
}

TEST_F(StorageRecovery, data_of_an_older_server_is_left_to_its_owner) {
  namespace fs = std::filesystem;
  prepare_array("arr_1");
  // As older servers left it: SQLite's own 0644.
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(folder_.path() + "/blobs", fs::perms(0755));
  fs::permissions(folder_.path() + "/meshd.db", fs::perms(0644));
  std::ofstream(folder_.path() + "/notes") << "somebody's";
  fs::permissions(folder_.path() + "/notes", fs::perms(0644));
  fs::create_symlink(folder_.path() + "/notes", folder_.path() + "/meshd.db.link");
  OpenStore store(folder_.path());
  EXPECT_TRUE(store->recovery().open_paths.empty());
  EXPECT_EQ(fs::perms(0700), fs::status(folder_.path()).permissions());
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    if (entry.path().stem() == "notes" || entry.is_symlink()) continue;
    EXPECT_EQ(fs::perms(entry.is_directory() ? 0700 : 0600), entry.status().permissions()) << entry.path();
  }
  EXPECT_EQ(fs::perms(0644), fs::status(folder_.path() + "/notes").permissions());
}

TEST_F(StorageRecovery, array_whose_file_is_torn_or_missing_is_lost_with_a_reason) {
  for (const char* id : {"arr_1", "arr_2", "arr_3"}) prepare_array(id);
  std::filesystem::resize_file(path_of("arr_1.v1.s0"), 3);
  std::filesystem::remove(path_of("arr_2.v1.s0"));
  OpenStore store(folder_.path());
  EXPECT_EQ(store->recovery().damaged_arrays, (std::vector<std::string>{"arr_1", "arr_2"}));
  store->catalog().read([](Reader& r) {
    EXPECT_EQ(r.array("arr_1")->state, ArrayState::kLost);
    EXPECT_NE(r.array("arr_2")->reason, "");
    EXPECT_EQ(r.array("arr_3")->state, ArrayState::kReady);
  });
}

TEST_F(StorageRecovery, blobs_dropped_before_the_crash_are_collected_at_the_start) {
  prepare_array("arr_1");
  prepare([](Transaction& t) { t.consume_array("arr_1", "job_1"); });
  OpenStore store(folder_.path());
  EXPECT_EQ(store->recovery().orphans, 1);
  EXPECT_EQ(path_of("arr_1.v1.s0"), "");
}

TEST_F(StorageRecovery, blobs_dropped_are_collected_while_running) {
  prepare_array("arr_1");
  OpenStore store(folder_.path());
  store->catalog().write([](Transaction& t) { t.delete_array("arr_1"); });
  EXPECT_NE(path_of("arr_1.v1.s0"), "");
  EXPECT_EQ(store->collect_garbage(), 1);
  EXPECT_EQ(path_of("arr_1.v1.s0"), "");
}

TEST_F(StorageRecovery, blob_of_a_job_stays_while_it_waits_and_goes_with_it) {
  // By how they end: they wait still; a third crash; a cancellation; nobody wrote the row of the last one.
  const std::vector<std::string> jobs{"job_1", "job_2", "job_3", "job_4"};
  {
    OpenStore store(folder_.path());
    std::vector<CommittedBlob> blobs;
    for (const std::string& job : jobs) blobs.push_back(put_blob(store->blobs(), "request_" + job, "abcdef"));
    store->catalog().write([&](Transaction& t) {
      t.insert_session(session_row("ses_1"));
      for (size_t i = 0; i < 3; ++i) {
        JobRow row = running(jobs[i], "ses_1", static_cast<int64_t>(i) + 1, i == 1 ? 3 : 1);
        row.bytes = blobs[i].ref;
        t.insert_job(row);
      }
      t.request_cancel("job_3", "ann");
    });
    EXPECT_EQ(store->collect_garbage(), 0);
  }
  OpenStore store(folder_.path());
  EXPECT_EQ(store->recovery().orphans, 3);
  EXPECT_NE(path_of("request_job_1"), "");
  std::optional<JobRow> row = store->catalog().read([](Reader& r) { return r.job("job_1", "ann"); });
  ASSERT_TRUE(row && row->bytes);
  EXPECT_EQ(read_blob(store->blobs(), *row->bytes), "abcdef");
  row->state = JobState::kRunning;
  store->catalog().write([&](Transaction& t) { EXPECT_TRUE(t.update_job(*row)); });
  EXPECT_EQ(store->collect_garbage(), 0);
  row->state = JobState::kDone;
  store->catalog().write([&](Transaction& t) { EXPECT_TRUE(t.update_job(*row)); });
  EXPECT_FALSE(store->catalog().read([](Reader& r) { return r.job("job_1", "ann"); })->bytes);
  EXPECT_EQ(store->collect_garbage(), 1);
  EXPECT_EQ(path_of("request_job_1"), "");
}

TEST_F(StorageRecovery, blob_of_a_job_goes_when_it_is_deleted) {
  OpenStore store(folder_.path());
  const BlobRef one = put_blob(store->blobs(), "request_1", "abcdef").ref;
  const BlobRef two = put_blob(store->blobs(), "request_2", "abcdef").ref;
  store->catalog().write([&](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    JobRow row = job_row("job_1");
    row.bytes = one;
    t.insert_job(row);
    row = job_row("job_2", "ses_1", 1);
    row.bytes = two;
    t.insert_job(row);
  });
  EXPECT_EQ(store->collect_garbage(), 0);
  store->catalog().write([](Transaction& t) { t.delete_job("job_1", "ann"); });
  EXPECT_EQ(store->collect_garbage(), 1);
  store->catalog().write([](Transaction& t) { t.delete_session("ses_1"); });
  EXPECT_EQ(store->collect_garbage(), 1);
}

TEST_F(StorageRecovery, reservation_of_a_job_that_is_over_is_released) {
  prepare([](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    t.reserve_array("arr_1", "job_9");
  });
  OpenStore store(folder_.path());
  EXPECT_EQ(store->catalog().read([](Reader& r) { return r.array("arr_1"); })->reserved_by, "");
}

TEST_F(StorageRecovery, contents_that_nobody_sees_go) {
  prepare([](Transaction& t) {
    t.put_program({"prog_1", "ann", "stablehlo", "text", "{}", at(1)});
    JobRow job = running("job_1", "", 0, 3);
    job.program = "prog_1";
    t.insert_job(job);
    t.delete_program("prog_1", "ann");
    t.keep_mesh("mesh_1", "{}");
    t.put_mesh({"mesh_2", "ann", "{}", at(1)});
  });
  OpenStore store(folder_.path());
  store->catalog().read([](Reader& r) {
    EXPECT_FALSE(r.program_content("prog_1"));
    EXPECT_FALSE(r.mesh_document("mesh_1"));
    EXPECT_TRUE(r.mesh_document("mesh_2"));
  });
}

}  // namespace
}  // namespace meshd::testing
