// Opening: who may, what is refused, and what a clean or unclean end means.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "storage/database/migrations.h"
#include "tests/support/fault_plan.h"
#include "tests/support/old_database.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_vfs.h"

namespace meshd::testing {
namespace {

using namespace storage;

std::string detail_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const core::Error& error) {
    return error.detail();
  }
  return {};
}

// Copies the files of an open store, as a crash would leave them.
void copy_as_crashed(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to,
                        std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
}

TEST(StorageDatabase, second_instance_is_refused_with_a_clear_line) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const OpenStore first(folder.path());
  EXPECT_NE(detail_of([&] { const OpenStore second(folder.path()); }).find("in use by another meshd"),
            std::string::npos);
}

TEST(StorageDatabase, folder_is_free_again_after_the_store_is_closed) {
  const TempFolder folder(TempFolder::Where::kMemory);
  { const OpenStore first(folder.path()); }
  OpenStore second(folder.path());
  EXPECT_TRUE(second->recovery().was_clean);
}

TEST(StorageDatabase, newer_schema_is_refused_and_left_alone) {
  const TempFolder folder(TempFolder::Where::kMemory);
  { const OpenStore store(folder.path()); }
  const std::string path = folder.path() + "/meshd.db";
  execute(path, "PRAGMA user_version = 9999");
  const std::string detail = detail_of([&] { const OpenStore store(folder.path()); });
  EXPECT_NE(detail.find("schema is version 9999"), std::string::npos) << detail;
  EXPECT_NE(detail.find("knows up to " + std::to_string(migrations().size())), std::string::npos) << detail;
  execute(path, "PRAGMA user_version = " + std::to_string(migrations().size()));
  const OpenStore store(folder.path());
}

TEST(StorageDatabase, database_of_another_program_is_refused) {
  const TempFolder folder(TempFolder::Where::kMemory);
  execute(folder.path() + "/meshd.db", "CREATE TABLE t(x); PRAGMA user_version = 1");
  EXPECT_NE(detail_of([&] { const OpenStore store(folder.path()); }).find("not a database of meshd"),
            std::string::npos);
}

TEST(StorageDatabase, file_that_is_no_database_is_refused) {
  const TempFolder folder(TempFolder::Where::kMemory);
  std::ofstream(folder.path() + "/meshd.db") << std::string(5000, 'x');
  EXPECT_NE(detail_of([&] { const OpenStore store(folder.path()); }).find("damaged"), std::string::npos);
}

TEST(StorageDatabase, unclean_end_is_noticed_and_checked) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const TempFolder crashed(TempFolder::Where::kMemory);
  {
    OpenStore store(folder.path());
    store->catalog().write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
    copy_as_crashed(folder.path(), crashed.path());
  }
  OpenStore store(crashed.path());
  EXPECT_FALSE(store->recovery().was_clean);
  EXPECT_TRUE(store->catalog().read([](Reader& r) { return r.session("ses_1"); }));
}

TEST(StorageDatabase, damage_found_after_an_unclean_end_refuses_the_start) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const TempFolder crashed(TempFolder::Where::kMemory);
  {
    OpenStore store(folder.path());
    store->catalog().write([](Transaction& t) {
      for (int i = 0; i < 2000; ++i) t.insert_array(array_row("arr_" + std::to_string(10000 + i)));
    });
  }
  {
    const OpenStore store(folder.path());
    copy_as_crashed(folder.path(), crashed.path());
  }
  const std::string path = crashed.path() + "/meshd.db";
  // The middle of the file is a page of a table or an index; its header is made senseless.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto pages = static_cast<int64_t>(std::filesystem::file_size(path) / 4096);
  for (int64_t page = pages / 2; page < pages / 2 + 10; ++page) {
    file.seekp(page * 4096);
    file << std::string(64, '\x55');
  }
  file.close();
  EXPECT_NE(detail_of([&] { const OpenStore store(crashed.path()); }).find("damaged"), std::string::npos);
}

TEST(StorageDatabase, jobs_of_version_3_name_their_programs_afterwards) {
  const TempFolder folder(TempFolder::Where::kMemory);
  { const OpenStore store(folder.path()); }
  std::filesystem::remove(folder.path() + "/meshd.db");
  std::string sql;
  for (size_t step = 0; step < 3; ++step) sql += migrations()[step];
  const auto job = [&](const char* id, const char* state, const char* request) {
    sql += "INSERT INTO jobs VALUES('" + std::string(id) + "', NULL, 'ann', NULL, 0, '" + state +
           "', 1, '', '', 1, NULL, NULL, NULL, CAST('" + request + "' AS BLOB), x'');";
  };
  job("job_1", "queued", R"({"program": {"id": "prog_1"}, "arguments": []})");
  job("job_2", "running", R"({"session_mesh": {}, "body": {"program": {"id": "prog_2"}}})");
  job("job_3", "queued", R"({"program": {"text": "..."}, "arguments": []})");
  job("job_4", "done", R"({"program": {"id": "prog_4"}})");
  job("job_5", "queued", "no JSON");
  execute(folder.path() + "/meshd.db",
          "PRAGMA application_id = " + std::to_string(0x6d736864) + ";" + sql + "PRAGMA user_version = 3");
  OpenStore store(folder.path());
  std::vector<std::string> programs;
  for (const char* id : {"job_1", "job_2", "job_3", "job_4", "job_5"})
    programs.push_back(store->catalog().read([&](Reader& r) { return r.job(id, "ann"); })->program);
  EXPECT_EQ(programs, (std::vector<std::string>{"prog_1", "prog_2", "", "", ""}));
}

TEST(StorageDatabase, migration_cut_off_leaves_no_half_schema) {
  FaultPlan plan;
  const WatchedVfs vfs(plan);
  int64_t nth = 1;
  for (;; ++nth) {
    const TempFolder folder(TempFolder::Where::kMemory);
    const DatabaseOptions options{folder.path() + "/meshd.db", vfs.name(), [](const std::string&) {}};
    plan.arm(nth, FaultReach::kSticky, FaultKind::kIo);
    const std::string word = error_word([&] { const Database database(options); });
    const bool fired = plan.fired();
    plan.disarm();
    const Database database(options);
    EXPECT_EQ(database.schema_version(), static_cast<int64_t>(migrations().size()));
    if (!fired) break;
  }
  EXPECT_GT(nth, 10);
}

TEST(StorageDatabase, program_names_of_version_3_go_to_who_posted_first) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const std::string path = folder.path() + "/meshd.db";
  make_database(
      path, 3,
      "INSERT INTO program_contents VALUES('prog_1', 'stablehlo', 'net' || char(31) || 'mine' || char(31) || '[1]' "
      "|| char(31) || '[2]', 'text 1'), ('prog_2', 'stablehlo', 'plain' || char(31, 31, 31), 'text 2'), "
      "('prog_3', 'stablehlo', 'old', 'text 3');"
      "INSERT INTO programs VALUES('bob', 'prog_1', 2), ('ann', 'prog_1', 9), ('ann', 'prog_2', 3), "
      "('ann', 'prog_3', 3);"
      "INSERT INTO meta VALUES('clean', '1');");
  OpenStore store(folder.path());
  const auto row = [&](const char* id, const char* principal) {
    const auto found = store->catalog().read([&](Reader& r) { return r.program(id, principal); });
    return found ? std::vector<std::string>{found->name, found->doc, found->document, found->text}
                 : std::vector<std::string>{};
  };
  const std::string trees = std::string("[1]") + char(31) + "[2]";
  EXPECT_EQ((std::vector<std::string>{"net", "mine", trees, "text 1"}), row("prog_1", "bob"));
  EXPECT_EQ((std::vector<std::string>{"", "", trees, "text 1"}), row("prog_1", "ann"));
  EXPECT_EQ((std::vector<std::string>{"plain", "", "", "text 2"}), row("prog_2", "ann"));
  EXPECT_EQ((std::vector<std::string>{"old", "", "", "text 3"}), row("prog_3", "ann"));
}

TEST(StorageDatabase, version_6_loses_unused_columns_and_keeps_its_rows) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const std::string path = folder.path() + "/meshd.db";
  make_database(
      path, 6,
      "INSERT INTO sessions VALUES('ses_1', 'ann', '', 'open', 'continue', 1, NULL, 1, 0, '{}');"
      "INSERT INTO jobs VALUES('job_1', NULL, 'ann', NULL, 0, 'done', 1, '', '', 1, 1, 1, NULL, x'', x'');"
      "INSERT INTO idempotency VALUES('ann', 'run', 'k', 'print', 'done', 200, 'job_1', 5, '', x'');"
      "INSERT INTO callbacks VALUES('ses_1', 1, 'job_1', 0, x'61', NULL, 7);"
      "INSERT INTO feeds VALUES('ses_1', 'in', 1, 3, x'62'); INSERT INTO feed_queues VALUES('ses_1', 'in', 1);");
  OpenStore store(folder.path());
  store->catalog().write([](Transaction& t) {
    const auto key = t.idempotency("ann", "run", "k");
    ASSERT_TRUE(key);
    EXPECT_EQ(key->fingerprint + " " + key->made, "print job_1");
    EXPECT_EQ(key->created, at(5));
    ASSERT_EQ(t.callbacks_of_job("job_1").size(), 1U);
    EXPECT_EQ(t.callbacks_of_job("job_1")[0].request, "a");
    ASSERT_EQ(t.infeeds("ses_1", "in", 0, 10).size(), 1U);
    EXPECT_EQ(t.infeeds("ses_1", "in", 0, 10)[0].content, "b");
    InfeedRow next{"ses_1", "in", 0, "c", at(9)};
    t.append_infeed(next);
    EXPECT_EQ(next.number, 2);
  });
}

TEST(StorageDatabase, version_7_loses_the_requests_of_finished_jobs_and_its_callback_numbers_go_on) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const std::string path = folder.path() + "/meshd.db";
  make_database(
      path, 7,
      "INSERT INTO sessions VALUES('ses_1', 'ann', '', 'open', 'continue', 1, NULL, 3, 0, '{}');"
      "INSERT INTO sessions VALUES('ses_2', 'ann', '', 'open', 'continue', 1, NULL, 1, 0, '{}');"
      "INSERT INTO jobs VALUES('job_1', 'ses_1', 'ann', NULL, 1, 'done', 1, '', '', 1, 1, 8, NULL, x'61', x'62');"
      "INSERT INTO jobs VALUES('job_2', 'ses_1', 'ann', NULL, 2, 'queued', 1, '', '', 1, 1, NULL, NULL, x'63', x'');"
      "INSERT INTO callbacks VALUES('ses_1', 4, 'job_2', 0, x'61', NULL, 7);");
  OpenStore store(folder.path());
  store->catalog().write([](Transaction& t) {
    EXPECT_EQ(t.job("job_1", "ann")->request + " " + t.job("job_1", "ann")->answer, " b");
    EXPECT_EQ(t.job("job_2", "ann")->request, "c") << "it has still to run";
    ASSERT_TRUE(t.finished_job("ann", 0));
    EXPECT_EQ(t.finished_job("ann", 0)->id, "job_1");
    EXPECT_FALSE(t.finished_job("ann", 1));
    CallbackRow next;
    next.session = "ses_1";
    next.job = "job_2";
    next.call = 1;
    EXPECT_EQ(t.insert_callback(next).number, 5);
    next.session = "ses_2";
    EXPECT_EQ(t.insert_callback(next).number, 1);
  });
}

TEST(StorageDatabase, settings_are_the_safe_ones) {
  const TempFolder folder(TempFolder::Where::kMemory);
  { const OpenStore store(folder.path()); }
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() + "/meshd.db").c_str(), &handle), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(handle,
                               "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
                               "AND strict = 0 AND name NOT LIKE 'sqlite_%'",
                               -1, &statement, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_step(statement), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(statement, 0), 0);
  sqlite3_finalize(statement);
  ASSERT_EQ(sqlite3_prepare_v2(handle, "PRAGMA journal_mode", -1, &statement, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_step(statement), SQLITE_ROW);
  EXPECT_STREQ(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)), "wal");
  sqlite3_finalize(statement);
  sqlite3_close(handle);
}

TEST(StorageDatabase, backup_opens_as_a_store_with_the_same_rows_and_blobs) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const TempFolder other(TempFolder::Where::kMemory);
  const std::string target = other.path() + "/backup";
  BlobRef ref;
  {
    OpenStore store(folder.path());
    const CommittedBlob blob = put_blob(store->blobs(), "arr_1.v1.s0", "abcdef");
    ref = blob.ref;
    store->catalog().write([&](Transaction& t) {
      t.insert_array(array_row("arr_1"));
      t.put_shard({"arr_1", 0, ref});
    });
    store->backup_to(target);
    store->catalog().write([](Transaction& t) { t.delete_array("arr_1"); });
    EXPECT_EQ(store->collect_garbage(), 0);  // `blob` still holds its pin
  }
  OpenStore copy(target);
  EXPECT_EQ(copy->recovery().damaged_arrays.size(), 0U);
  EXPECT_TRUE(copy->catalog().read([](Reader& r) { return r.array("arr_1"); }));
  EXPECT_EQ(read_blob(copy->blobs(), ref), "abcdef");
}

TEST(StorageDatabase, backup_taken_under_load_is_one_moment) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const TempFolder other(TempFolder::Where::kMemory);
  OpenStore store(folder.path());
  store->catalog().write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
  const auto add_array = [&](int number) {
    const std::string id = "arr_" + std::to_string(number);
    const CommittedBlob blob = put_blob(store->blobs(), id + ".s0", id);
    store->catalog().write([&](Transaction& t) {
      t.insert_array(array_row(id));
      t.put_shard({id, 0, blob.ref});
      std::vector<EffectRow> rows = {effect_row("job", number, id)};
      t.append_effects("ses_1", rows);
      if (number > 0) t.delete_array("arr_" + std::to_string(number - 1));
    });
    (void)store->collect_garbage();
  };
  add_array(0);
  {
    const std::jthread load([&](const std::stop_token& stop) {
      for (int number = 1; !stop.stop_requested(); ++number) add_array(number);
    });
    for (int round = 0; round < 5; ++round) store->backup_to(other.path() + "/" + std::to_string(round));
  }
  for (int round = 0; round < 5; ++round) {
    OpenStore copy(other.path() + "/" + std::to_string(round));
    EXPECT_TRUE(copy->recovery().damaged_arrays.empty());
    copy->catalog().read([&](Reader& r) {
      const int64_t last = r.session("ses_1")->last_sequence;
      const auto arrays = r.arrays("ann", {}, {}).items;
      ASSERT_EQ(arrays.size(), 1U);
      EXPECT_EQ(arrays[0].id, "arr_" + std::to_string(last - 1));
      EXPECT_EQ(read_blob(copy->blobs(), r.shards(arrays[0].id).at(0).blob), arrays[0].id);
    });
  }
}

TEST(StorageDatabase, backup_in_many_steps_is_one_moment) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const TempFolder other(TempFolder::Where::kMemory);
  OpenStore store(folder.path());
  store->catalog().write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    t.insert_session(session_row("ses_2"));
  });
  const auto append = [](Transaction& t, const std::string& session, int64_t step, std::string values) {
    std::vector<EffectRow> rows = {effect_row("job", step, std::move(values))};
    t.append_effects(session, rows);
  };
  constexpr int kRows = 80;  // 40 steps of the backup
  for (int step = 0; step < kRows; ++step)
    store->catalog().write([&](Transaction& t) { append(t, "ses_1", step, std::string(1 << 20, 'a')); });
  const auto logged = [](Reader& r) { return r.session("ses_2")->last_sequence; };
  int64_t before = 0, after = 0;
  {
    const std::jthread load([&](const std::stop_token& stop) {
      // Always as many in the first session as in the second, at its end and in the middle of the file.
      for (int step = 0; !stop.stop_requested(); ++step) {
        store->catalog().write([&](Transaction& t) {
          append(t, "ses_1", kRows + step, "x");
          append(t, "ses_2", step, std::string(5000, 'b'));
        });
      }
    });
    before = store->catalog().read(logged);
    store->backup_to(other.path() + "/copy");
    after = store->catalog().read(logged);
  }
  EXPECT_GE(after - before, 10) << "too few commits while the backup was made";
  OpenStore copy(other.path() + "/copy");
  copy->catalog().read([&](Reader& r) {
    const int64_t copied = logged(r);
    EXPECT_EQ(r.session("ses_1")->last_sequence, kRows + copied);
    EXPECT_GE(copied, before);
    EXPECT_LT(copied - before, (after - before) / 2) << "the moment of the copy is not that of its beginning";
  });
}

}  // namespace
}  // namespace meshd::testing
